//===- Addresses.cpp - From addresses to memory of the host ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Addresses.h"

#include "Check/Checker.h"

using namespace fp8emu;

Place fp8emu::takePlace(Modifiers &modifiers) {
  auto which =
      modifiers.takeOneOf({"global", "shared", "shared::cta", "shared::cluster",
                           "local", "param", "param::entry", "const"});
  if (!which)
    return Place::Generic;
  constexpr Place places[] = {
      Place::Global, Place::Shared, Place::Shared, Place::SharedCluster,
      Place::Local,  Place::Param,  Place::Param,  Place::Const};
  return places[*which];
}

uint64_t fp8emu::getAddress(Warp &warp, const Op &op, unsigned lane,
                            uint32_t row) {
  uint64_t base = op.flags & kWideAddress ? warp.row<uint64_t>(row)[lane]
                                          : warp.row<uint32_t>(row)[lane];
  return base + static_cast<uint64_t>(op.imm);
}

static const char *getVerb(Access access) {
  return access == Access::Read    ? "a read"
         : access == Access::Write ? "a write"
                                   : "an atomic operation";
}

/// The allocation of an address, which is most often that of the one before.
static const Allocation *findAllocation(Cluster &cluster, uint64_t address) {
  for (const Allocation &known : cluster.knownAllocations)
    if (address >= known.begin && address < known.end)
      return &known;
  Allocation found;
  if (!GlobalMemory::get().find(address, found)) {
    auto begin = reinterpret_cast<uint64_t>(cluster.grid.params.data());
    uint64_t end = begin + cluster.grid.params.size();
    if (address < begin || address >= end)
      return nullptr;
    found = {begin, end, /*writable=*/false};
  }
  Allocation &slot = cluster.knownAllocations[cluster.nextAllocation++ % 8];
  slot = found;
  return &slot;
}

uint8_t *fp8emu::resolveGlobal(Warp &warp, const Op &op, Mask lane,
                               uint64_t address, uint64_t bytes,
                               Access access) {
  const Allocation *found = findAllocation(warp.cta.cluster, address);
  if (!found || bytes > found->end - address)
    warp.fault(op, lane, kIllegalAddress,
               std::string(getVerb(access)) + " of " + std::to_string(bytes) +
                   " bytes at " + toHex(address) +
                   " of global memory is out of bounds: " +
                   GlobalMemory::get().describe(found ? found->end : address));
  if (access != Access::Read && !found->writable)
    warp.fault(op, lane, kIllegalAddress,
               std::string(getVerb(access)) + " at " + toHex(address) +
                   ", which may only be read");
  return reinterpret_cast<uint8_t *>(address);
}

SharedRange fp8emu::resolveShared(Warp &warp, const Op &op, Mask lane,
                                  uint64_t address, uint64_t bytes,
                                  unsigned align, bool anyBlock) {
  Cluster &cluster = warp.cta.cluster;
  uint64_t rank = address >> kRankShift;
  uint64_t offset = address & kSharedOffsetMask;
  if (rank >= cluster.ctas.size())
    warp.fault(op, lane, kIllegalAddress,
               toHex(address) + " is not in shared memory");
  if (!anyBlock && rank != warp.cta.rank)
    warp.fault(op, lane, kInvalidAddressSpace,
               "expected an address of the own block, " +
                   std::to_string(warp.cta.rank) + " of the cluster, but got " +
                   toHex(address) + " of block " + std::to_string(rank));
  if (offset < kSharedBase || offset + bytes > cluster.ctas[rank]->sharedBytes)
    warp.fault(op, lane, kIllegalAddress,
               std::to_string(bytes) + " bytes at " + toHex(offset) +
                   " of shared memory are out of bounds: the block has " +
                   toHex(kSharedBase) + " to " +
                   toHex(cluster.ctas[rank]->sharedBytes));
  if (offset % align != 0)
    warp.fault(op, lane, kMisalignedAddress,
               "expected an address in shared memory that is a multiple of " +
                   std::to_string(align) + ", but got " + toHex(offset));
  Cta &cta = *cluster.ctas[rank];
  if (cta.liveWarps == 0)
    warp.fault(op, lane, kIllegalAddress,
               "shared memory of block " + std::to_string(rank) +
                   " of the cluster, which has ended");
  return {&cta, static_cast<uint32_t>(offset)};
}

static uint8_t *resolveLane(Warp &warp, const Op &op, unsigned lane,
                            Place place, uint64_t address, unsigned bytes,
                            Access access) {
  Mask one = Mask{1} << lane;
  if (place == Place::Generic) {
    if (address >> 56 == kSharedWindow >> 56) {
      place = Place::SharedCluster;
      address -= kSharedWindow;
    } else if (address >> 56 == kLocalWindow >> 56) {
      place = Place::Local;
      address -= kLocalWindow;
    } else {
      place = Place::Global;
    }
  }
  const Grid &grid = warp.cta.cluster.grid;
  switch (place) {
  case Place::Shared:
  case Place::SharedCluster:
    return resolveShared(warp, op, one, address, bytes, bytes,
                         place == Place::SharedCluster)
        .data();
  case Place::Local: {
    uint64_t size = grid.program.localBytes;
    if (address >= size || bytes > size - address)
      warp.fault(op, one, kIllegalAddress,
                 std::to_string(bytes) + " bytes at " + toHex(address) +
                     " of local memory are out of bounds: the thread has " +
                     std::to_string(size));
    return warp.cta.local.data() + warp.getThread(lane) * size + address;
  }
  case Place::Param:
    if (address >= grid.params.size() || bytes > grid.params.size() - address)
      warp.fault(op, one, kIllegalAddress,
                 std::to_string(bytes) + " bytes at " + toHex(address) +
                     " of the parameters are out of bounds: there are " +
                     std::to_string(grid.params.size()));
    return const_cast<uint8_t *>(grid.params.data()) + address;
  default:
    if (address % bytes != 0)
      warp.fault(op, one, kMisalignedAddress,
                 "expected an address that is a multiple of " +
                     std::to_string(bytes) + ", but got " + toHex(address));
    return resolveGlobal(warp, op, one, address, bytes, access);
  }
}

void fp8emu::resolve(Warp &warp, const Op &op, Mask mask, uint32_t row,
                     unsigned bytes, Access access, uint8_t *(&host)[kLanes]) {
  auto place = static_cast<Place>(op.flags & kPlaceMask);
  if (place == Place::Global && (op.flags & kWideAddress)) {
    // Most often all lanes are in one allocation.
    const auto *base = warp.row<uint64_t>(row);
    uint64_t low = UINT64_MAX, high = 0, bits = 0;
    for (unsigned i = 0; i < kLanes; ++i) {
      uint64_t address = base[i] + static_cast<uint64_t>(op.imm);
      host[i] = reinterpret_cast<uint8_t *>(address);
      bool takes = mask >> i & 1;
      low = takes && address < low ? address : low;
      high = takes && address > high ? address : high;
      bits |= takes ? address : 0;
    }
    const Allocation *found = findAllocation(warp.cta.cluster, low);
    if (found && high < found->end && bytes <= found->end - high &&
        bits % bytes == 0 && (access == Access::Read || found->writable)) {
      if (Checker *checker = warp.cta.cluster.checker.get())
        checker->access(warp, op, mask, host, bytes, access);
      return;
    }
  }
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    host[lane] = resolveLane(warp, op, lane, place,
                             getAddress(warp, op, lane, row), bytes, access);
  }
  if (Checker *checker = warp.cta.cluster.checker.get())
    checker->access(warp, op, mask, host, bytes, access);
}

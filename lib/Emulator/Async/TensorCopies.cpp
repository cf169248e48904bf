//===- TensorCopies.cpp - Boxes of tensors, to and from shared memory -----===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "cp.async.bulk.tensor", tiled mode. What lies outside of the tensor
// is filled with zeros on its way in and dropped on its way out, and counts all
// the same.
//
//===----------------------------------------------------------------------===//

#include "Async/BulkCopies.h"
#include "Async/TensorMap.h"

using namespace fp8emu;

namespace {
/// A box at a place of a tensor.
struct Box {
  TensorMap map;
  int32_t at[5] = {};

  uint32_t rowBytes() const { return uint32_t{map.box[0]} * map.elementBytes; }
  uint32_t numRows() const {
    uint32_t rows = 1;
    for (unsigned i = 1; i < map.rank; ++i)
      rows *= map.box[i];
    return rows;
  }
  uint32_t bytes() const { return rowBytes() * numRows(); }
  /// Twice as large in shared memory.
  bool isPadded() const { return map.type == kPadded4; }
  /// What a barrier is told of.
  uint32_t copiedBytes() const { return isPadded() ? bytes() / 2 : bytes(); }

  /// Calls `row` with the row's number, the address of its first element that
  /// is in the tensor, and the range of its bytes that is.
  template <class F>
  void forEachRow(F row) const {
    int64_t extent = int64_t{map.lastIndex[0]} + 1;
    int64_t first = std::max<int64_t>(0, -int64_t{at[0]});
    int64_t end = std::min<int64_t>(map.box[0], extent - at[0]);
    bool empty = end <= first;
    for (uint32_t number = 0; number < numRows(); ++number) {
      uint32_t rest = number;
      uint64_t address = map.address;
      bool outside = empty;
      for (unsigned i = 1; i < map.rank; ++i) {
        int64_t index = int64_t{at[i]} + rest % map.box[i];
        rest /= map.box[i];
        outside |= index < 0 || index > map.lastIndex[i];
        address += static_cast<uint64_t>(index) * map.strides[i];
      }
      if (outside) {
        row(number, uint64_t{0}, 0u, 0u);
        continue;
      }
      address += static_cast<uint64_t>(at[0] + first) * map.elementBytes /
                 (isPadded() ? 2 : 1);
      row(number, address, static_cast<uint32_t>(first) * map.elementBytes,
          static_cast<uint32_t>(end) * map.elementBytes);
    }
  }
};
} // namespace

/// Pieces of 16 bytes, each where the swizzle has it.
template <class F>
static void forEachPiece(uint32_t offset, uint32_t begin, uint32_t end,
                         unsigned swizzle, F piece) {
  while (begin < end) {
    uint32_t next = std::min(end, (begin & ~15u) + 16);
    piece(begin, swizzleOffset(offset + begin, swizzle), next - begin);
    begin = next;
  }
}

static void loadBox(const Box &box, Cta &cta, uint32_t offset) {
  std::memset(cta.shared + offset, 0, box.bytes());
  box.forEachRow([&](uint32_t number, uint64_t address, uint32_t begin,
                     uint32_t end) {
    const auto *source = reinterpret_cast<const uint8_t *>(address);
    forEachPiece(offset + number * box.rowBytes(), begin, end, box.map.swizzle,
                 [&](uint32_t at, uint32_t target, uint32_t bytes) {
                   uint32_t scale = box.isPadded() ? 2 : 1;
                   std::memcpy(cta.shared + target,
                               source + (at - begin) / scale, bytes / scale);
                 });
  });
}

static void storeBox(const Box &box, const uint8_t *shared, uint32_t offset) {
  box.forEachRow([&](uint32_t number, uint64_t address, uint32_t begin,
                     uint32_t end) {
    auto *target = reinterpret_cast<uint8_t *>(address);
    forEachPiece(offset + number * box.rowBytes(), begin, end, box.map.swizzle,
                 [&](uint32_t at, uint32_t source, uint32_t bytes) {
                   std::memcpy(target + (at - begin),
                               shared + (source - offset), bytes);
                 });
  });
}

/// Calls `visit` with what a store reads of shared memory.
template <class F>
static void forEachStored(const Box &box, uint32_t offset, F visit) {
  box.forEachRow([&](uint32_t number, uint64_t, uint32_t begin, uint32_t end) {
    forEachPiece(offset + number * box.rowBytes(), begin, end, box.map.swizzle,
                 [&](uint32_t, uint32_t source, uint32_t bytes) {
                   visit(source, bytes);
                 });
  });
}

/// What a reduction adds to what is there.
static void addBox(const Box &box, const uint8_t *shared, uint32_t offset) {
  box.forEachRow([&](uint32_t number, uint64_t address, uint32_t begin,
                     uint32_t end) {
    auto *target = reinterpret_cast<uint8_t *>(address);
    forEachPiece(offset + number * box.rowBytes(), begin, end, box.map.swizzle,
                 [&](uint32_t at, uint32_t source, uint32_t bytes) {
                   for (uint32_t i = 0; i < bytes; i += 4) {
                     float old, more;
                     std::memcpy(&old, target + (at - begin) + i, 4);
                     std::memcpy(&more, shared + (source - offset) + i, 4);
                     old = canonical(old + more);
                     std::memcpy(target + (at - begin) + i, &old, 4);
                   }
                 });
  });
}

//===----------------------------------------------------------------------===//
// Issue
//===----------------------------------------------------------------------===//

/// Op::flags of tensor copies.
enum : uint32_t {
  kLoad = 1 << 8,
  kMulticast = 1 << 9,
  kAdd = 1 << 10,
  kPairSignals = 1 << 11, /* .cta_group::2 */
};

static Box getBox(Warp &warp, const Op &op, unsigned lane,
                  const uint32_t *rows) {
  Mask one = Mask{1} << lane;
  uint64_t address = getAddress(warp, rows, lane);
  const uint8_t *bytes =
      resolveGlobal(warp, op, one, address, 128, Access::Read);
  Box box;
  std::memcpy(&box.map, bytes, sizeof(box.map));
  if (box.map.magic != kTensorMapMagic)
    warp.fault(op, one, kIllegalInstruction,
               "expected a tensor map at " + toHex(address) +
                   ", but got other bytes");
  if (box.map.rank != op.count)
    warp.fault(op, one, kIllegalInstruction,
               "expected a tensor map of rank " + std::to_string(op.count) +
                   ", but got one of rank " + std::to_string(box.map.rank));
  if (box.isPadded() && !(op.flags & kLoad))
    warp.fault(op, one, kIllegalInstruction,
               "expected a load of elements of 4 bits in 16 bytes, but got a "
               "store");
  constexpr uint8_t float32 = 7;
  if ((op.flags & kAdd) && box.map.type != float32)
    warp.fault(op, one, kIllegalInstruction,
               "expected a tensor of f32, the only sums that are modelled");
  for (unsigned i = 0; i < op.count; ++i)
    box.at[i] = warp.row<int32_t>(rows[6 + i])[lane];
  if (box.map.type == kPacked4) {
    if (box.at[0] % 2 != 0)
      warp.fault(op, one, kMisalignedAddress,
                 "expected an even coordinate of elements of 4 bits, but got " +
                     std::to_string(box.at[0]));
    box.at[0] /= 2;
  }
  // Written nowhere, but so it is on an H200: of loads and of stores.
  if (box.at[0] * int64_t(box.map.elementBytes) % 16 != 0)
    warp.fault(op, one, kIllegalInstruction,
               "expected an innermost coordinate at a multiple of 16 bytes, "
               "but got " +
                   std::to_string(box.at[0]) + " elements of " +
                   std::to_string(box.map.elementBytes) + " bytes");
  // The tensor's last byte: maps outlive memory.
  uint64_t last = box.map.address + box.map.elementBytes - 1;
  for (unsigned i = 0; i < box.map.rank; ++i)
    last += box.map.lastIndex[i] * box.map.strides[i] /
            (i == 0 && box.isPadded() ? 2 : 1);
  resolveGlobal(warp, op, one, box.map.address, last - box.map.address + 1,
                op.flags & kLoad ? Access::Read : Access::Write);
  return box;
}

static SharedRange getRange(Warp &warp, const Op &op, unsigned lane,
                            const uint32_t *rows, const Box &box) {
  uint64_t address = getAddress(warp, rows + 3, lane);
  return resolveShared(warp, op, Mask{1} << lane, address, box.bytes(), 128,
                       /*anyBlock=*/op.flags & kLoad);
}

static void touchGlobal(Warp &warp, const Op &op, unsigned lane, const Box &box,
                        Access access, Announcement done) {
  Checker *checker = warp.cta.cluster.checker.get();
  if (checker &&
      checker->looksFor(kCheckLaunches | kCheckGlobal | kCheckUnwritten))
    box.forEachRow([&](uint32_t, uint64_t address, uint32_t begin,
                       uint32_t end) {
      uint64_t bytes = (end - begin) / (box.isPadded() ? 2 : 1);
      checker->touchGlobal(warp, op, lane, address, bytes, access);
      checker->touchUnwritten(warp, op, lane, address, bytes, access);
      checker->accessGlobalLater(warp, op, lane, address, bytes, access, done);
    });
}

static void load(Warp &warp, const Op &op, unsigned lane) {
  Cluster &cluster = warp.cta.cluster;
  const uint32_t *rows = &cluster.grid.program.rows[op.rows];
  Box box = getBox(warp, op, lane, rows);
  SharedRange range = getRange(warp, op, lane, rows, box);
  MBarrierRef barrier =
      findMBarrier(warp, op, lane, op.s[0], Place::SharedCluster);
  std::vector<MBarrierRef> barriers = {barrier};
  std::vector<SharedRange> targets = {range};
  if ((op.flags & kPairSignals) && cluster.ctas.size() % 2)
    warp.fault(op, Mask{1} << lane, kLaunchFailed,
               "expected a cluster of pairs of blocks for .cta_group::2, but "
               "got one of " +
                   std::to_string(cluster.ctas.size()));
  if (op.flags & kMulticast) {
    uint32_t mask = warp.row<uint16_t>(op.s[1])[lane];
    std::vector<MBarrierRef> places =
        multicastBarriers(warp, op, lane, barrier, mask);
    barriers = places;
    // Tell, of each pair, the one which is where the given barrier is.
    if (op.flags & kPairSignals)
      for (MBarrierRef &each : barriers)
        each.cta =
            cluster.ctas[(each.cta->rank & ~1u) | (barrier.cta->rank & 1)]
                .get();
    targets.clear();
    for (const MBarrierRef &each : places) {
      // The same place in each block that is to have it.
      uint64_t address = each.cta->getSharedAddress(range.offset);
      targets.push_back(resolveShared(warp, op, Mask{1} << lane, address,
                                      box.bytes(), 128, /*anyBlock=*/true));
    }
  }
  if (Counts *counts = cluster.grid.counts.get())
    counts->loaded += uint64_t{box.copiedBytes()} * targets.size();
  writeLater(warp, op, lane, targets, barriers, box.bytes());
  touchGlobal(warp, op, lane, box, Access::Read, announce(barrier));
  AsyncOp copy;
  copy.line = cluster.grid.program.getLine(op);
  auto completion = std::make_shared<Completion>(IssuePlace(warp, op, lane),
                                                 barriers, box.copiedBytes());
  copy.advance = [=, copied = false]() mutable {
    if (copied)
      return completion->advance();
    for (const SharedRange &target : targets)
      loadBox(box, *target.cta, target.offset);
    copied = true;
    return true;
  };
  cluster.queue.push(std::move(copy));
}

static void store(Warp &warp, const Op &op, unsigned lane) {
  Cluster &cluster = warp.cta.cluster;
  const uint32_t *rows = &cluster.grid.program.rows[op.rows];
  Box box = getBox(warp, op, lane, rows);
  SharedRange range = getRange(warp, op, lane, rows, box);
  BulkTicket ticket = joinBulkGroup(warp, lane);
  if (Counts *counts = cluster.grid.counts.get())
    counts->stored += box.bytes();
  touchGlobal(warp, op, lane, box,
              op.flags & kAdd ? Access::Atomic : Access::Write,
              ticket.announcementOfWrites());
  if (Checker *checker = cluster.checker.get())
    forEachStored(box, range.offset, [&](uint32_t offset, uint32_t bytes) {
      checker->accessLater(warp, op, Mask{1} << lane, *range.cta, offset, bytes,
                           kAsyncProxy, ticket.announcement());
    });
  AsyncOp copy;
  copy.line = cluster.grid.program.getLine(op);
  copy.advance = [=, buffer = std::vector<uint8_t>(),
                  add = bool(op.flags & kAdd)]() mutable {
    if (buffer.empty()) {
      buffer.assign(range.data(), range.data() + box.bytes());
      ticket.readDone();
      return true;
    }
    if (add)
      addBox(box, buffer.data(), range.offset);
    else
      storeBox(box, buffer.data(), range.offset);
    ticket.writeDone();
    return false;
  };
  cluster.queue.push(std::move(copy));
}

static Step copyTensor(Warp &warp, const Op &op, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    if (op.flags & kLoad)
      load(warp, op, lane);
    else
      store(warp, op, lane);
  }
  return Step::Next;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static const Operand &getCoordinates(Decoder &decoder, const Operand &tensor,
                                     unsigned rank) {
  if (tensor.kind != Operand::Memory || tensor.elements.size() != 2 ||
      tensor.elements[1].elements.size() != rank)
    decoder.fail("expected [map, {coordinates}] with " + std::to_string(rank) +
                 " coordinates");
  return tensor.elements[1];
}

void fp8emu::decodeTensorCopy(Decoder &decoder, Modifiers &modifiers, Op &op) {
  auto rank = modifiers.takeOneOf({"1d", "2d", "3d", "4d", "5d"});
  if (!rank)
    decoder.fail("expected a rank");
  op.count = static_cast<uint16_t>(*rank + 1);
  modifiers.take("tile");
  // A reduction's type is the map's: f32 is what there is.
  if (modifiers.take("reduce")) {
    if (!modifiers.take("add"))
      decoder.fail("expected .add");
    op.flags |= kAdd;
  }
  bool isLoad = modifiers.has("mbarrier::complete_tx::bytes");
  modifiers.take("global");
  modifiers.takeOneOf({"shared::cta", "shared::cluster"});
  if (isLoad && modifiers.take("cta_group::2"))
    op.flags |= kPairSignals;
  else
    modifiers.take("cta_group::1");
  if (!modifiers.take(isLoad ? "mbarrier::complete_tx::bytes" : "bulk_group"))
    decoder.fail("expected a completion mechanism");
  bool multicast = modifiers.take("multicast::cluster");
  bool hint = modifiers.take("L2::cache_hint");
  op.flags |= (isLoad ? kLoad : 0) | (multicast ? kMulticast : 0);
  decoder.expectOperands((isLoad ? 3 : 2) + multicast + hint);
  const Operand &tensor = decoder.operand(isLoad ? 1 : 0);
  const Operand &shared = decoder.operand(isLoad ? 0 : 1);
  const Operand &coordinates = getCoordinates(decoder, tensor, op.count);
  std::vector<uint32_t> rows;
  decoder.addAddress(rows, tensor);
  decoder.addAddress(rows, shared);
  for (const Operand &coordinate : coordinates.elements)
    rows.push_back(decoder.sourceBits(coordinate, 32));
  op.rows = decoder.addRows(rows);
  if (isLoad) {
    Decoder::Address barrier = decoder.address(decoder.operand(2));
    op.s[0] = barrier.row;
    op.imm = barrier.offset;
    op.flags |= barrier.wide ? kWideAddress : 0;
    if (multicast)
      op.s[1] = decoder.sourceBits(decoder.operand(3), 16);
  }
  op.handler = copyTensor;
}

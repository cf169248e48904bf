//===- TensorAllocation.cpp - Columns of tensor memory --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Tensor Memory Allocation and Management Instructions". Each block
// has all columns of a multiprocessor: that others have to wait for them is
// not modelled.
//
//===----------------------------------------------------------------------===//

#include "TensorMemory.h"

using namespace fp8emu;

TensorMemory &fp8emu::getTensorMemory(Cta &cta) {
  if (!cta.tensorMemory)
    cta.tensorMemory = std::make_shared<TensorMemory>();
  return *cta.tensorMemory;
}

const TensorMemory::Allocation *TensorMemory::find(uint32_t column,
                                                   uint32_t columns) const {
  for (const Allocation &allocation : allocations)
    if (column >= allocation.column &&
        column + columns <= allocation.column + allocation.columns)
      return &allocation;
  return nullptr;
}

static bool isFree(const TensorMemory &memory, uint32_t column,
                   uint32_t columns) {
  for (const TensorMemory::Allocation &other : memory.allocations)
    if (column < other.column + other.columns &&
        other.column < column + columns)
      return false;
  return true;
}

int TensorMemory::findFree(Cluster &cluster, const TensorMemory &a,
                           const TensorMemory &b, uint32_t columns) {
  std::vector<uint32_t> places;
  for (uint32_t at = 0; at + columns <= kTensorColumns; at += columns)
    if (isFree(a, at, columns) && isFree(b, at, columns))
      places.push_back(at);
  if (places.empty())
    return -1;
  // Nobody is promised the first.
  bool first = cluster.grid.settings.order == Order::Eager;
  auto count = static_cast<uint32_t>(places.size());
  return static_cast<int>(places[first ? 0 : cluster.random(count)]);
}

TensorBlocks fp8emu::getTensorBlocks(Warp &warp, const Op &op, Mask lane,
                                     unsigned group) {
  Cluster &cluster = warp.cta.cluster;
  if (group == 1)
    return {{&warp.cta, nullptr}, 1};
  if (cluster.ctas.size() % 2)
    warp.fault(op, lane, kLaunchFailed,
               "expected a cluster of pairs of blocks for .cta_group::2, but "
               "got one of " +
                   std::to_string(cluster.ctas.size()));
  uint32_t even = warp.cta.rank & ~1u;
  TensorBlocks pair{{cluster.ctas[even].get(), cluster.ctas[even + 1].get()},
                    2};
  for (Cta *cta : pair)
    if (cta->liveWarps == 0)
      warp.fault(op, lane, kLaunchFailed,
                 "expected both blocks of the pair, but block " +
                     std::to_string(cta->rank) + " has ended");
  return pair;
}

void fp8emu::requireAllocated(Warp &warp, const Op &op, Mask lanes, Cta &cta,
                              uint32_t column, uint32_t columns,
                              const char *what) {
  const TensorMemory &memory = getTensorMemory(cta);
  // Two allocations beside each other are as good as one.
  uint32_t end = column + columns;
  bool found = true;
  for (uint32_t at = column; at < end && found;) {
    found = false;
    for (const TensorMemory::Allocation &allocation : memory.allocations)
      if (at >= allocation.column &&
          at < allocation.column + allocation.columns) {
        at = allocation.column + allocation.columns;
        found = true;
        break;
      }
  }
  if (found)
    return;
  std::string text = std::string(what) + " in columns " +
                     std::to_string(column) + " to " + std::to_string(end - 1) +
                     " of tensor memory";
  if (&cta != &warp.cta)
    text += " of block " + std::to_string(cta.rank) + " of the cluster";
  text += ", which are not all allocated: ";
  if (memory.allocations.empty())
    text += "none are";
  for (size_t i = 0; i < memory.allocations.size(); ++i) {
    const TensorMemory::Allocation &allocation = memory.allocations[i];
    text += (i ? ", " : "") + std::to_string(allocation.column) + " to " +
            std::to_string(allocation.column + allocation.columns - 1);
  }
  if (!memory.allocations.empty())
    text += " are";
  warp.fault(op, lanes, kIllegalAddress, text);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

static void grant(Warp &warp, const Op &op, Cta &cta, uint32_t column,
                  uint32_t columns) {
  TensorMemory &memory = getTensorMemory(cta);
  memory.allocations.push_back({column, columns, &op});
  memory.last = columns;
  std::fill_n(memory.words.begin() +
                  static_cast<std::ptrdiff_t>(column * kTensorLanes),
              columns * kTensorLanes, 0xffffffff);
  if (Checker *checker = warp.cta.cluster.checker.get())
    checker->clearTensor(cta, column, columns);
}

static uint32_t getColumns(Warp &warp, const Op &op, Mask mask) {
  auto columns =
      getUniform<uint32_t>(warp, op, mask, op.s[1], "a number of columns");
  if (columns < 32 || columns > kTensorColumns || (columns & (columns - 1)))
    warp.fault(op, mask, kLaunchFailed,
               "expected a power of two from 32 to 512 columns, but got " +
                   std::to_string(columns));
  return columns;
}

static Step allocate(Warp &warp, const Op &op, Mask mask) {
  Cluster &cluster = warp.cta.cluster;
  uint32_t columns = getColumns(warp, op, mask);
  TensorBlocks blocks = getTensorBlocks(warp, op, mask, op.count);
  TensorMemory &memory = getTensorMemory(warp.cta);
  TensorMemory &other = getTensorMemory(
      *blocks.blocks[op.count == 2 && blocks.blocks[0] == &warp.cta]);
  TensorMemory::Request &request = memory.request;
  if (memory.relinquished)
    warp.fault(op, mask, kLaunchFailed,
               "expected no allocation after "
               "tcgen05.relinquish_alloc_permit");
  if (cluster.grid.settings.strict && columns > memory.last)
    warp.fault(op, mask, kLaunchFailed,
               "expected at most the " + std::to_string(memory.last) +
                   " columns of the allocation before, but got " +
                   std::to_string(columns));
  // One after the other.
  if (request.open && request.owner != &warp)
    return Step::Wait;
  if (!request.open) {
    request = {true, false, columns, 0, &warp};
    cluster.notify();
  }
  if (!request.granted) {
    if (!other.request.open)
      return Step::Wait;
    if (other.request.columns != columns)
      warp.fault(
          op, mask, kLaunchFailed,
          "expected both blocks of a pair to allocate as much, but got " +
              std::to_string(columns) + " columns and " +
              std::to_string(other.request.columns));
    int found = TensorMemory::findFree(cluster, memory, other, columns);
    if (found < 0)
      return Step::Wait;
    for (Cta *cta : blocks) {
      TensorMemory::Request &each = getTensorMemory(*cta).request;
      each.granted = true;
      each.column = static_cast<uint32_t>(found);
      grant(warp, op, *cta, each.column, columns);
    }
    cluster.notify();
  }
  uint32_t column = request.column;
  request = {};
  cluster.notify();
  // One lane's, as an ordinary store.
  uint8_t *host[kLanes];
  Mask one = mask & -mask;
  resolve(warp, op, one, op.s[0], 4, Access::Write, host);
  std::memcpy(host[__builtin_ctz(one)], &column, 4);
  return Step::Next;
}

static Step deallocate(Warp &warp, const Op &op, Mask mask) {
  TensorAddress at(getUniform<uint32_t>(warp, op, mask, op.s[0], "an address"));
  uint32_t columns = getColumns(warp, op, mask);
  TensorMemory &memory = getTensorMemory(warp.cta);
  for (size_t i = 0; i < memory.allocations.size(); ++i) {
    TensorMemory::Allocation &allocation = memory.allocations[i];
    if (allocation.column != at.column || allocation.columns != columns ||
        at.lane != 0)
      continue;
    if (Checker *checker = warp.cta.cluster.checker.get())
      checker->accessTensor(warp, op, mask, warp.cta,
                            {at.column, columns, kAllTensorLanes},
                            TensorUse::Free, {});
    memory.allocations.erase(memory.allocations.begin() +
                             static_cast<std::ptrdiff_t>(i));
    warp.cta.cluster.notify();
    return Step::Next;
  }
  warp.fault(op, mask, kLaunchFailed,
             "expected what was allocated, but got " + std::to_string(columns) +
                 " columns of tensor memory from " + std::to_string(at.column) +
                 ", lane " + std::to_string(at.lane));
}

static Step relinquish(Warp &warp, const Op &op, Mask mask) {
  TensorMemory &memory = getTensorMemory(warp.cta);
  if (memory.request.open)
    warp.fault(op, mask, kLaunchFailed,
               "expected no allocation that another warp waits for");
  memory.relinquished = true;
  return Step::Next;
}

void Cta::reportTensorLeaks(const Warp &warp) const {
  if (!tensorMemory || tensorMemory->allocations.empty())
    return;
  const TensorMemory::Allocation &leaked = tensorMemory->allocations[0];
  warp.fault(*leaked.op, warp.live, kLaunchFailed,
             std::to_string(leaked.columns) +
                 " columns of tensor memory from " +
                 std::to_string(leaked.column) +
                 " on were not deallocated before the block ended");
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

unsigned fp8emu::takeGroup(Decoder &decoder, Modifiers &modifiers) {
  auto group = modifiers.takeOneOf({"cta_group::1", "cta_group::2"});
  if (!group)
    decoder.fail("expected .cta_group::1 or .cta_group::2");
  unsigned &known = decoder.program.tensorGroup;
  if (known && known != *group + 1)
    decoder.fail("expected one .cta_group in all of a kernel, but got both");
  known = *group + 1;
  return known;
}

void fp8emu::decodeAllocation(Decoder &decoder, Modifiers &modifiers, Op &op,
                              std::string_view what) {
  op.count = static_cast<uint16_t>(takeGroup(decoder, modifiers));
  if (!modifiers.take("sync") || !modifiers.take("aligned"))
    decoder.fail("expected .sync.aligned");
  op.aligned = true;
  if (what == "relinquish_alloc_permit") {
    decoder.expectOperands(0);
    op.handler = relinquish;
    return;
  }
  if (what == "alloc")
    op.flags = static_cast<uint32_t>(takePlace(modifiers));
  if (!modifiers.take("b32"))
    decoder.fail("expected .b32");
  decoder.expectOperands(2);
  op.s[1] = decoder.sourceBits(decoder.operand(1), 32);
  if (what == "alloc") {
    Decoder::Address address = decoder.address(decoder.operand(0));
    op.s[0] = address.row;
    op.imm = address.offset;
    op.flags |= address.wide ? kWideAddress : 0;
    op.handler = allocate;
  } else {
    op.s[0] = decoder.sourceBits(decoder.operand(0), 32);
    op.handler = deallocate;
  }
}

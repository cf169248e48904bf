//===- TensorLoads.cpp - Between registers and tensor memory --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Tensor Memory Data Movement Instructions". Loads and stores take
// place late. Who uses a load's registers waits for them (PTX ISA, "Register
// dependencies, same thread"); that tensor memory has been read by then, others
// know from tcgen05.wait::ld alone.
//
//===----------------------------------------------------------------------===//

#include "TensorMemory.h"

using namespace fp8emu;

namespace {
enum class Shape : uint8_t { L32x32, L16x64, L16x128, L16x256, L16x32x2 };

struct Spot {
  unsigned lane, column;
};
} // namespace

/// The place of a thread's register: the lane, from the address's on, and the
/// column (PTX ISA, "Data Movement Shape").
static Spot locate(Shape shape, unsigned t, unsigned i, unsigned split) {
  switch (shape) {
  case Shape::L32x32:
    return {t, i};
  case Shape::L16x64:
    return {t / 4 + 8 * (t % 2), 2 * i + t / 2 % 2};
  case Shape::L16x128:
    return {t / 4 + 8 * (i % 2), t % 4 + 4 * (i / 2)};
  case Shape::L16x256:
    return {t / 4 + 8 * (i / 2 % 2), 2 * (t % 4) + i % 2 + 8 * (i / 4)};
  case Shape::L16x32x2:
    return {t % 16, i + (t >= 16 ? split : 0)};
  }
  return {};
}

namespace fp8emu {
/// A load or store that has been issued.
struct TensorMove {
  Cta *cta;
  Warp *warp;
  const uint32_t *rows;
  unsigned count;
  Shape shape;
  bool isLoad, packed; /* two halves of a register are two columns */
  unsigned split;
  TensorAddress address;
  std::vector<uint32_t> values; /* of a store, those of a register's lanes */
  bool done = false;

  uint32_t &word(unsigned i, unsigned lane, unsigned part) const;
  void perform();
};
} // namespace fp8emu

uint32_t &TensorMove::word(unsigned i, unsigned lane, unsigned part) const {
  Spot at = locate(shape, lane, i, split);
  unsigned column = packed ? 2 * at.column + part : at.column;
  return getTensorMemory(*cta).word(address.lane + at.lane,
                                    address.column + column);
}

void TensorMove::perform() {
  if (done)
    return;
  done = true;
  for (unsigned i = 0; i < count; ++i) {
    auto *row = warp->row<uint32_t>(rows[i]);
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      if (isLoad) {
        row[lane] = word(i, lane, 0);
        if (packed)
          row[lane] = (row[lane] & 0xffff) | word(i, lane, 1) << 16;
        continue;
      }
      uint32_t value = values[size_t{i} * kLanes + lane];
      word(i, lane, 0) = packed ? value & 0xffff : value;
      if (packed)
        word(i, lane, 1) = value >> 16;
    }
  }
  std::erase_if(warp->tensor.moves, [this](auto &m) { return &*m == this; });
}

void fp8emu::settleLoads(Warp &warp, const Op &op) {
  const Program &program = warp.cta.cluster.grid.program;
  auto index = static_cast<size_t>(&op - program.ops.data());
  for (uint32_t i = program.firstOperand[index];
       i < program.firstOperand[index + 1]; ++i) {
    uint32_t row = program.operands[i].row;
    for (size_t m = 0; m < warp.tensor.moves.size(); ++m) {
      auto move = warp.tensor.moves[m];
      if (move->isLoad && std::find(move->rows, move->rows + move->count,
                                    row) != move->rows + move->count) {
        move->perform();
        --m;
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

static unsigned countColumns(const TensorMove &move) {
  unsigned columns = 0;
  for (unsigned lane : {0u, 31u})
    columns = std::max(columns,
                       locate(move.shape, lane, move.count - 1, 0).column + 1);
  return move.packed ? 2 * columns : columns;
}

static uint8_t getLanes(const TensorMove &move) {
  unsigned first = move.address.lane / 16;
  return static_cast<uint8_t>((move.shape == Shape::L32x32 ? 3u : 1u) << first);
}

/// A warp has the quarter of the lanes that its number gives it.
static void checkLanes(Warp &warp, const Op &op, Mask mask, TensorMove &move) {
  unsigned quarter = warp.index % 4;
  bool strict = warp.cta.cluster.grid.settings.strict;
  // What others write there a chip does not look at.
  if (!strict)
    move.address.lane = 32 * quarter + move.address.lane % 32;
  unsigned within = move.address.lane % 32;
  bool aligned = within == 0 || (within == 16 && move.shape != Shape::L32x32);
  if (move.address.lane / 32 != quarter || !aligned)
    warp.fault(op, mask, kIllegalAddress,
               "expected an address at lane " + std::to_string(32 * quarter) +
                   (move.shape == Shape::L32x32
                        ? ""
                        : " or " + std::to_string(32 * quarter + 16)) +
                   " of tensor memory from warp " + std::to_string(warp.index) +
                   " of the block, but got lane " +
                   std::to_string(move.address.lane));
}

static Step moveTensor(Warp &warp, const Op &op, Mask mask) {
  Cluster &cluster = warp.cta.cluster;
  auto move = std::make_shared<TensorMove>(TensorMove{
      &warp.cta,
      &warp,
      &cluster.grid.program.rows[op.rows],
      op.count,
      static_cast<Shape>(op.flags & 7),
      bool(op.flags & 8),
      bool(op.flags & 16),
      op.width ? static_cast<unsigned>(op.s[1]) : 0,
      TensorAddress(static_cast<uint32_t>(
          getUniform<uint32_t>(warp, op, mask, op.s[0], "an address") +
          op.imm)),
      {}});
  checkLanes(warp, op, mask, *move);
  unsigned columns = countColumns(*move);
  const char *what = move->isLoad ? "a load" : "a store";
  std::pair<uint32_t, uint32_t> parts[] = {
      {move->address.column, columns},
      {move->address.column + move->split, columns}};
  WarpTensorState &tensor = warp.tensor;
  Checker *checker = cluster.checker.get();
  if (checker && !tensor.moveAgent) {
    tensor.moveAgent = checker->addAgent();
    checker->addAgent();
  }
  for (unsigned i = 0; i < 1u + (move->shape == Shape::L16x32x2); ++i) {
    auto [column, count] = parts[i];
    requireAllocated(warp, op, mask, warp.cta, column, count, what);
    if (!checker)
      continue;
    Announcement done{tensor.moveAgent + !move->isLoad,
                      tensor.waits[!move->isLoad] + 1};
    checker->accessTensor(
        warp, op, mask, warp.cta, {column, count, getLanes(*move)},
        move->isLoad ? TensorUse::Load : TensorUse::Store, done);
  }
  for (unsigned i = 0; i < move->count; ++i) {
    auto *row = warp.row<uint32_t>(move->rows[i]);
    if (move->isLoad)
      std::memset(row, 0xff, sizeof(uint32_t) * kLanes);
    else
      move->values.insert(move->values.end(), row, row + kLanes);
  }
  if (Counts *counts = cluster.grid.counts.get(); counts && move->isLoad)
    counts->taken += sizeof(uint32_t) * kLanes * move->count;
  tensor.moves.push_back(move);
  AsyncOp work;
  work.line = cluster.grid.program.getLine(op);
  work.advance = [move] {
    move->perform();
    return false;
  };
  cluster.queue.push(std::move(work));
  return Step::Next;
}

static Step waitForMoves(Warp &warp, const Op &op, Mask mask) {
  bool ofLoads = op.flags;
  if (Counts *counts = warp.cta.cluster.grid.counts.get())
    counts->waits += ofLoads;
  WarpTensorState &tensor = warp.tensor;
  for (size_t i = 0; i < tensor.moves.size();)
    if (auto move = tensor.moves[i]; move->isLoad == ofLoads)
      move->perform();
    else
      ++i;
  uint32_t time = ++tensor.waits[!ofLoads];
  if (Checker *checker = warp.cta.cluster.checker.get();
      checker && tensor.moveAgent)
    checker->learn(warp, mask, {tensor.moveAgent + !ofLoads, time});
  warp.cta.cluster.notify();
  return Step::Next;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

void fp8emu::decodeTensorLoad(Decoder &decoder, Modifiers &modifiers, Op &op,
                              bool isLoad) {
  if (!modifiers.take("sync") || !modifiers.take("aligned"))
    decoder.fail("expected .sync.aligned");
  auto shape = modifiers.takeOneOf(
      {"32x32b", "16x64b", "16x128b", "16x256b", "16x32bx2"});
  auto number = modifiers.takeOneOf(
      {"x1", "x2", "x4", "x8", "x16", "x32", "x64", "x128"});
  if (!shape || !number || !modifiers.take("b32"))
    decoder.fail("expected a shape, a number and .b32");
  bool packed = modifiers.take(isLoad ? "pack::16b" : "unpack::16b");
  bool split = static_cast<Shape>(*shape) == Shape::L16x32x2;
  decoder.expectOperands(split ? 3 : 2);
  const Operand &values = decoder.operand(isLoad ? 0 : split ? 2 : 1);
  const Operand &where = decoder.operand(isLoad ? 1 : 0);
  Decoder::Address address = decoder.address(where);
  if (address.wide)
    decoder.fail("expected an address of 32 bits");
  op.s[0] = address.row;
  op.imm = address.offset;
  if (split) {
    int64_t distance = decoder.immediate(decoder.operand(isLoad ? 2 : 1));
    if (distance < 0 || distance >= kTensorColumns)
      decoder.fail("expected a distance from 0 to 511, but got " +
                   std::to_string(distance));
    op.s[1] = static_cast<uint32_t>(distance);
    op.width = 1;
  }
  std::vector<uint32_t> rows;
  for (const Operand *value : decoder.elements(values))
    rows.push_back(isLoad ? decoder.destination(*value, 32)
                          : decoder.sourceBits(*value, 32));
  constexpr unsigned each[] = {1, 1, 2, 4, 1};
  size_t count = size_t{each[*shape]} << *number;
  if (count > 128)
    decoder.fail("expected a number that this shape has");
  if (rows.size() != count)
    decoder.fail("expected " + std::to_string(count) + " registers, but got " +
                 std::to_string(rows.size()));
  op.rows = decoder.addRows(rows);
  op.count = static_cast<uint16_t>(count);
  op.flags = *shape | (isLoad ? 8 : 0) | (packed ? 16 : 0);
  op.aligned = true;
  op.handler = moveTensor;
}

void fp8emu::decodeTensorWait(Decoder &decoder, Modifiers &modifiers, Op &op,
                              bool ofLoads) {
  if (!modifiers.take("sync") || !modifiers.take("aligned"))
    decoder.fail("expected .sync.aligned");
  decoder.expectOperands(0);
  op.flags = ofLoads;
  op.aligned = true;
  op.handler = waitForMoves;
}

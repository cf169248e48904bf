//===- TensorFills.cpp - From shared to tensor memory ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "tcgen05.cp".
//
//===----------------------------------------------------------------------===//

#include "InstructionDescriptor.h"
#include "TensorMemory.h"

using namespace fp8emu;

namespace {
/// Rows of so many units of 16 bytes, and the 32 lanes that each 32 rows go to.
struct FillShape {
  const char *name, *multicast;
  unsigned rows, units;
  uint8_t quarters[4]; /* of 32 rows: one bit for each 32 lanes */
};
} // namespace

static constexpr FillShape kShapes[] = {
    {"128x256b", "", 128, 2, {1, 2, 4, 8}},
    {"128x128b", "", 128, 1, {1, 2, 4, 8}},
    {"64x128b", "warpx2::02_13", 64, 1, {5, 10}},
    {"64x128b", "warpx2::01_23", 64, 1, {3, 12}},
    {"32x128b", "warpx4", 32, 1, {15}},
};

static void fill(Warp &warp, const Op &op, unsigned lane) {
  Cluster &cluster = warp.cta.cluster;
  Mask one = Mask{1} << lane;
  const FillShape &shape = kShapes[op.flags];
  const uint32_t *rows = &cluster.grid.program.rows[op.rows];
  TensorAddress at(static_cast<uint32_t>(warp.row<uint32_t>(op.s[0])[lane] +
                                         static_cast<uint32_t>(op.imm)));
  Descriptor source(0);
  if (std::string wrong =
          decodeDescriptor(getAddress(warp, rows, lane), source);
      !wrong.empty())
    warp.fault(op, one, kIllegalInstruction, wrong);
  if (at.lane != 0)
    warp.fault(op, one, kIllegalAddress,
               "expected an address at lane 0 of tensor memory, but got lane " +
                   std::to_string(at.lane));
  unsigned columns = 4 * shape.units;
  TensorBlocks blocks = getTensorBlocks(warp, op, one, op.count);
  TensorIssue issue = issueTensorWork(warp, lane);
  if (Counts *counts = cluster.grid.counts.get())
    ++counts->fills;
  Checker *checker = cluster.checker.get();
  for (Cta *cta : blocks) {
    requireAllocated(warp, op, one, *cta, at.column, columns, "a copy");
    for (unsigned row = 0; row < shape.rows; ++row)
      for (unsigned unit = 0; unit < shape.units; ++unit) {
        uint32_t address = source.locateK(row, 16 * unit);
        if (address < kSharedBase || address + 16 > cta->sharedBytes)
          warp.fault(op, one, kIllegalAddress,
                     "a copy of " + toHex(address) +
                         " of shared memory is out of bounds: the block has " +
                         toHex(kSharedBase) + " to " + toHex(cta->sharedBytes));
        if (checker)
          checker->accessLater(warp, op, one, *cta, address, 16, kAsyncProxy,
                               issue.done);
      }
    if (checker)
      checker->accessTensor(warp, op, one, *cta,
                            {at.column, columns, kAllTensorLanes},
                            TensorUse::Fill, issue.done);
  }
  AsyncOp work;
  work.stream = issue.stream;
  work.line = cluster.grid.program.getLine(op);
  work.advance = [&warp, &op, &shape, at, source, blocks, one]() mutable {
    for (Cta *cta : blocks) {
      requireAllocated(warp, op, one, *cta, at.column, 4 * shape.units,
                       "a copy");
      TensorMemory &memory = getTensorMemory(*cta);
      for (unsigned row = 0; row < shape.rows; ++row)
        for (unsigned unit = 0; unit < shape.units; ++unit) {
          uint32_t words[4];
          std::memcpy(words, cta->shared + source.locateK(row, 16 * unit), 16);
          for (unsigned quarter = 0; quarter < 4; ++quarter)
            for (unsigned i = 0; i < 4; ++i)
              if (shape.quarters[row / 32] >> quarter & 1)
                memory.word(32 * quarter + row % 32, at.column + 4 * unit + i) =
                    words[i];
        }
    }
    return false;
  };
  cluster.queue.push(std::move(work));
}

static Step fillLanes(Warp &warp, const Op &op, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1)
    fill(warp, op, static_cast<unsigned>(__builtin_ctz(rest)));
  return Step::Next;
}

void fp8emu::decodeTensorFill(Decoder &decoder, Modifiers &modifiers, Op &op) {
  op.count = static_cast<uint16_t>(takeGroup(decoder, modifiers));
  for (const FillShape &shape : kShapes) {
    bool named = modifiers.has(shape.name);
    if (!named || (*shape.multicast && !modifiers.has(shape.multicast)))
      continue;
    modifiers.take(shape.name);
    modifiers.take(shape.multicast);
    op.flags = static_cast<uint32_t>(&shape - kShapes);
    op.handler = fillLanes;
    break;
  }
  if (!op.handler)
    decoder.fail("expected a shape that is modelled, and its .warpx");
  decoder.expectOperands(2);
  Decoder::Address address = decoder.address(decoder.operand(0));
  if (address.wide)
    decoder.fail("expected an address of 32 bits");
  op.s[0] = address.row;
  op.imm = address.offset;
  std::vector<uint32_t> rows;
  decoder.addAddress(rows, decoder.operand(1));
  op.rows = decoder.addRows(rows);
}

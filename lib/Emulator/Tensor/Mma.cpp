//===- Mma.cpp - mma.sync -------------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A product of one warp, whose operands and sums are in registers. 8-bit types
// are multiplied in two ways, which depend on the device and not on the module:
//
// - on Ada, which has an instruction for them: 16 products at a time, with the
//   sums of wgmma. That is what others have published; no Ada was at hand;
// - on sm_120, which has one too: all 32 at once, with the sums of tcgen05.mma.
//   That is what others have published, and no such GPU was at hand;
// - on Hopper, for which the driver makes code of the same PTX, and as far as
//   is known on sm_100: as two products of f16 from zero, of each k that is 0
//   or 1 in 4 and of the others, to whose result the accumulator is added. An
//   H200 gave these words (test/Emulator/mma.py).
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"
#include "Tensor/Fragments.h"

using namespace fp8emu;

static constexpr unsigned kColumns = 8, kSums = 4, kRowsOfA = 4, kRowsOfB = 2;

static void multiplyBytes(const Operands &operands, unsigned arch,
                          float *sums) {
  if (arch < 90)
    return multiplyAccumulateHalves(operands, sums);
  if (arch >= 120)
    return multiplyAccumulateWide(operands, sums);
  float products[kWarpRows * kColumns] = {};
  multiplyAccumulateAsHalf(operands, products);
  for (unsigned i = 0; i < kWarpRows * kColumns; ++i)
    sums[i] = canonical(sums[i] + products[i]);
}

static Step multiply(Warp &warp, const Op &op, Mask) {
  const Grid &grid = warp.cta.cluster.grid;
  const uint32_t *rows = &grid.program.rows[op.rows];
  Operands operands;
  operands.typeA = static_cast<Element>(op.flags & 7);
  operands.typeB = static_cast<Element>(op.flags >> 3 & 7);
  operands.columns = kColumns;
  readFragments(warp, rows + kSums, operands.a);
  readColumns(warp, rows + kSums + kRowsOfA, operands.b);
  float sums[kWarpRows * kColumns];
  const uint32_t *rowsOfC = rows + kSums + kRowsOfA + kRowsOfB;
  for (unsigned i = 0; i < kSums; ++i)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      sums[locateSum(i, lane, kColumns)] = warp.row<float>(rowsOfC[i])[lane];
  if (!grid.settings.exact)
    multiplyAccumulatePlain(operands, /*fresh=*/false, sums);
  else if (getBytes(operands.typeA) == 1)
    multiplyBytes(operands, grid.settings.arch, sums);
  else
    multiplyAccumulate(operands, /*fresh=*/false, sums);
  for (unsigned i = 0; i < kSums; ++i)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      warp.row<float>(rows[i])[lane] = sums[locateSum(i, lane, kColumns)];
  return Step::Next;
}

static void decodeMma(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (!modifiers.take("sync") || !modifiers.take("aligned") ||
      modifiers.empty())
    decoder.fail("expected .sync.aligned and a shape");
  if (modifiers.take("block_scale"))
    return decodeScaledMma(decoder, modifiers, op);
  std::string_view shape = modifiers.takeNext();
  if (!modifiers.take("row") || !modifiers.take("col"))
    decoder.fail("expected .row.col");
  std::vector<std::string_view> types;
  while (!modifiers.empty())
    types.push_back(modifiers.takeNext());
  if (types.size() != 4 || types[0] != "f32" || types[3] != "f32")
    decoder.fail("expected sums of f32, and two types between them");
  Element typeA = takeElement(decoder, types[1]);
  Element typeB = takeElement(decoder, types[2]);
  if (!goTogether(typeA, typeB))
    decoder.fail("expected types that go together");
  std::string expected = "m16n8k" + std::to_string(32 / getBytes(typeA));
  if (shape != expected)
    decoder.fail("expected a shape " + expected + ", but got " +
                 std::string(shape));
  decoder.expectTargetFrom(getBytes(typeA) == 1 ? 89 : 80);
  decoder.expectOperands(4);
  std::vector<uint32_t> rows;
  const size_t counts[] = {kSums, kRowsOfA, kRowsOfB, kSums};
  for (size_t i = 0; i < 4; ++i) {
    auto elements = decoder.elements(decoder.operand(i));
    if (elements.size() != counts[i])
      decoder.fail("expected " + std::to_string(counts[i]) +
                   " registers, but got " + std::to_string(elements.size()));
    for (const Operand *element : elements)
      rows.push_back(i == 0 ? decoder.destination(*element, 32)
                            : decoder.sourceBits(*element, 32));
  }
  op.rows = decoder.addRows(rows);
  op.flags = static_cast<uint32_t>(typeA) | static_cast<uint32_t>(typeB) << 3;
  op.usesTensorCore = true;
  op.aligned = true;
  op.handler = multiply;
}

void fp8emu::addMma(DecodeTable &table) { table["mma"] = decodeMma; }

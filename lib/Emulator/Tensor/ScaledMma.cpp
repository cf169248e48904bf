//===- ScaledMma.cpp - mma.sync with factors of blocks --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// What sm_120 and sm_121 have (PTX ISA, "Warp-level matrix instructions with
// block scaling"). A row's factors are bytes of one lane's register: of A those
// of rows 0-7 and 8-15 are in two neighbouring lanes of each four, of B those
// of a column in one. Numbers in the instruction say which lanes and bytes.
// Sums are taken to be those of tcgen05.mma: no such GPU was at hand.
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"
#include "Tensor/Fragments.h"
#include "TensorCore/BlockDot.h"

#include <memory>

using namespace fp8emu;

static constexpr unsigned kColumns = 8, kSums = 4, kRowsOfA = 4, kRowsOfB = 2;

namespace {
/// Where in Program::rows an operand begins.
enum Operands : unsigned {
  kA = kSums,
  kB = kA + kRowsOfA,
  kC = kB + kRowsOfB,
  kFactorsOfA = kC + kSums,
  kFactorsOfB
};

/// What the instruction says, in the bits of Op::imm.
struct ScaledMma {
  uint8_t typeA = 0, typeB = 0;
  uint8_t scale = 0, factors = 0;
  uint8_t byteA = 0, threadA = 0, byteB = 0, threadB = 0;
};
} // namespace

/// Codes of a row of 32 bytes, one a byte.
static void unpack(Element type, const uint8_t (&row)[32], uint8_t *codes) {
  if (getBits(type) == 8) {
    std::memcpy(codes, row, 32);
    return;
  }
  for (unsigned i = 0; i < 32; ++i) {
    codes[2 * i] = row[i] & 15;
    codes[2 * i + 1] = row[i] >> 4;
  }
}

static void readFactors(const uint32_t *words, unsigned lane, unsigned byte,
                        unsigned count, uint8_t *factors) {
  for (unsigned i = 0; i < count; ++i)
    factors[i] = static_cast<uint8_t>(words[lane] >> 8 * (byte + i));
}

static Step multiply(Warp &warp, const Op &op, Mask) {
  const Grid &grid = warp.cta.cluster.grid;
  const uint32_t *rows = &grid.program.rows[op.rows];
  ScaledMma mma;
  static_assert(sizeof(mma) == sizeof(op.imm));
  std::memcpy(&mma, &op.imm, sizeof(mma));
  BlockProducts products;
  products.typeA = static_cast<Element>(mma.typeA);
  products.typeB = static_cast<Element>(mma.typeB);
  products.products = 256 / getBits(products.typeA);
  products.columns = kColumns;
  products.scale = static_cast<ScaleType>(mma.scale);
  products.factors = mma.factors;
  products.exact = grid.settings.exact;
  uint8_t a[kWarpRows][32], b[kColumns][32];
  readFragments(warp, rows + kA, a);
  readColumns(warp, rows + kB, b);
  uint8_t codes[kColumns][kRowBytes] = {}, factors[kColumns][kMaxFactors] = {};
  const auto *wordsOfB = warp.row<uint32_t>(rows[kFactorsOfB]);
  for (unsigned n = 0; n < kColumns; ++n) {
    unpack(products.typeB, b[n], codes[n]);
    readFactors(wordsOfB, 4 * n + mma.threadB, mma.byteB, mma.factors,
                factors[n]);
  }
  auto block = std::make_unique<BlockSums>(products);
  block->setColumns(codes, factors);
  const auto *wordsOfA = warp.row<uint32_t>(rows[kFactorsOfA]);
  float sums[kWarpRows * kColumns];
  for (unsigned i = 0; i < kSums; ++i)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      sums[locateSum(i, lane, kColumns)] = warp.row<float>(rows[kC + i])[lane];
  for (unsigned m = 0; m < kWarpRows; ++m) {
    uint8_t row[kRowBytes] = {}, factorsOfRow[kMaxFactors] = {};
    unpack(products.typeA, a[m], row);
    readFactors(wordsOfA, m % 8 * 4 + 2 * mma.threadA + m / 8, mma.byteA,
                mma.factors, factorsOfRow);
    block->addRow(row, factorsOfRow, /*fresh=*/false, 0, kColumns,
                  sums + size_t{m} * kColumns);
  }
  for (unsigned i = 0; i < kSums; ++i)
    for (unsigned lane = 0; lane < kLanes; ++lane)
      warp.row<float>(rows[i])[lane] = sums[locateSum(i, lane, kColumns)];
  return Step::Next;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

/// The kind, and what goes with it.
static void decodeKind(Decoder &decoder, Modifiers &modifiers, ScaledMma &mma) {
  auto kind =
      modifiers.takeOneOf({"kind::mxf8f6f4", "kind::mxf4", "kind::mxf4nvf4"});
  auto vector =
      modifiers.takeOneOf({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X"});
  auto scale = modifiers.takeOneOf({"ue8m0", "ue4m3"});
  if (!kind || !vector || !scale)
    decoder.fail("expected a kind, a number of factors and their type");
  bool fits = *kind == 0   ? *vector == 0 && *scale == 0
              : *kind == 1 ? *vector == 1 && *scale == 0
                           : *vector == *scale + 1;
  if (!fits)
    decoder.fail("expected factors that the kind has");
  mma.factors = static_cast<uint8_t>(1u << *vector);
  mma.scale =
      static_cast<uint8_t>(*scale == 0 ? ScaleType::UE8M0 : ScaleType::UE4M3);
  bool isFP4 = *kind != 0;
  std::string shape = isFP4 ? "m16n8k64" : "m16n8k32";
  if (!modifiers.take(shape))
    decoder.fail("expected a shape " + shape);
  if (!modifiers.take("row") || !modifiers.take("col"))
    decoder.fail("expected .row.col");
  std::vector<std::string_view> types;
  while (!modifiers.empty())
    types.push_back(modifiers.takeNext());
  if (types.size() != 4 || types[0] != "f32" || types[3] != "f32")
    decoder.fail("expected sums of f32, and two types between them");
  uint8_t *out[] = {&mma.typeA, &mma.typeB};
  for (unsigned i = 0; i < 2; ++i) {
    if (isFP4 && types[i + 1] != "e2m1")
      decoder.fail("expected e2m1, but got " + std::string(types[i + 1]));
    Element type = isFP4 ? Element::E2M1 : takeElement(decoder, types[i + 1]);
    if (!isFP4 && getBits(type) != 8)
      decoder.fail("expected types of 8 bits");
    *out[i] = static_cast<uint8_t>(type);
  }
}

/// Which bytes of which lanes are factors.
static void decodeSelector(Decoder &decoder, const Operand &operand,
                           unsigned factors, int64_t threads, uint8_t &byte,
                           uint8_t &thread) {
  auto numbers = decoder.elements(operand);
  if (numbers.size() != 2)
    decoder.fail("expected the numbers of a byte and of a thread");
  int64_t first = decoder.immediate(*numbers[0]),
          lane = decoder.immediate(*numbers[1]);
  if (first < 0 || first > 4 - factors || first % factors != 0)
    decoder.fail("expected a byte that factors begin with, but got " +
                 std::to_string(first));
  if (lane < 0 || lane >= threads)
    decoder.fail("expected a thread from 0 to " + std::to_string(threads - 1) +
                 ", but got " + std::to_string(lane));
  byte = static_cast<uint8_t>(first);
  thread = static_cast<uint8_t>(lane);
}

void fp8emu::decodeScaledMma(Decoder &decoder, Modifiers &modifiers, Op &op) {
  bool isLater = decoder.program.module->target.substr(0, 6) == "sm_121";
  decoder.expectTarget(isLater ? 121 : 120, "af");
  ScaledMma mma;
  decodeKind(decoder, modifiers, mma);
  decoder.expectOperands(8);
  std::vector<uint32_t> rows;
  const std::pair<size_t, size_t> counts[] = {
      {0, kSums}, {1, kRowsOfA}, {2, kRowsOfB}, {3, kSums}, {4, 1}, {6, 1}};
  for (auto [index, count] : counts) {
    auto elements = decoder.elements(decoder.operand(index));
    if (elements.size() != count)
      decoder.fail("expected " + std::to_string(count) +
                   " registers, but got " + std::to_string(elements.size()));
    for (const Operand *element : elements)
      rows.push_back(index == 0 ? decoder.destination(*element, 32)
                                : decoder.sourceBits(*element, 32));
  }
  decodeSelector(decoder, decoder.operand(5), mma.factors, 2, mma.byteA,
                 mma.threadA);
  decodeSelector(decoder, decoder.operand(7), mma.factors, 4, mma.byteB,
                 mma.threadB);
  std::memcpy(&op.imm, &mma, sizeof(mma));
  op.rows = decoder.addRows(rows);
  op.usesTensorCore = true;
  op.aligned = true;
  op.handler = multiply;
}

//===- FusionRotate.cpp - Rotations of 16 in registers --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Step b of the fast transform makes a sum and a difference of any two elements
// whose places differ in bit b alone. The first steps are those of what a
// thread has, of its columns or its rows; the others' second elements come from
// lanes beside, or below.

#include "FusionValues.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kSize = HadamardOp::kSize;
static constexpr int32_t kSign = INT32_MIN;

/// `value` with its sign changed where `sign` (i32) has it.
static Value flip(KernelBuilder &b, Value value, Value sign) {
  Value bits = arith::BitcastOp::create(b, b.getI32Type(), value);
  return arith::BitcastOp::create(b, b.getF32Type(), b.bitXor(bits, sign));
}

/// Bit `bit` of `word` as the sign of a number.
static Value getSign(KernelBuilder &b, Value word, int64_t bit) {
  return b.bitAnd(arith::ShLIOp::create(b, word, b.i32(31 - bit)), kSign);
}

/// `word` as it is here: LLVM moves what one branch alone reads into the
/// branch, and of a rotated element the two that it is the sum of are more to
/// keep.
static Value pin(KernelBuilder &b, Value word) {
  return LLVM::InlineAsmOp::create(
             b, b.getI32Type(), word, "mov.b32 $0, $1;", "=r,r",
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None,
             LLVM::AsmDialectAttr::get(b.getContext(),
                                       LLVM::AsmDialect::AD_ATT),
             /*operand_attrs=*/ArrayAttr())
      .getRes();
}

/// What a thread has of 16, those that follow each other in places, becomes
/// that of the rotated. `number` says which part it has, and the thread of the
/// next part is `distance` lanes away.
void FusionValues::rotate(HadamardOp op, MutableArrayRef<Value> values,
                          Value number, int64_t distance) {
  auto size = static_cast<int64_t>(values.size());
  Value signs = b.i32(op.getSigns());
  if (size < kSize)
    signs = arith::ShRUIOp::create(b, signs, b.mul(number, size));
  for (auto [i, value] : llvm::enumerate(values)) {
    auto place = static_cast<int64_t>(i);
    if (size < kSize)
      value = flip(b, value, getSign(b, signs, place));
    else if (op.getSigns() >> place & 1)
      value = arith::NegFOp::create(b, value);
  }
  for (int64_t step = 1; step < size; step *= 2)
    for (int64_t i = 0; i < size; ++i) {
      if (i & step)
        continue;
      Value first = values[i], second = values[i + step];
      values[i] = arith::AddFOp::create(b, first, second);
      values[i + step] = arith::SubFOp::create(b, first, second);
    }
  for (int64_t bit = 0; size << bit < kSize; ++bit) {
    Value upper = getSign(b, number, bit);
    for (Value &value : values) {
      Value other = shuffle(value, distance << bit);
      value = arith::AddFOp::create(b, other, flip(b, value, upper));
    }
  }
  for (Value &value : values)
    value = b.mulF(value, b.f32(0.25f));
}

/// The elements of a place that are rotated; what is outside counts as zeros.
SmallVector<Value> FusionValues::getRotated(HadamardOp op, int64_t row,
                                            int64_t chunk) {
  bool isAlongRows = spec.isTransposed(*spec.layouts.lookup(op.getResult()));
  int64_t extent = isAlongRows ? spec.rows : spec.columns;
  SmallVector<Value> values = get(op.getSource(), row, chunk);
  // Whole blocks are outside as a whole.
  if (!ShapedType::isDynamic(extent) && extent % kSize == 0)
    return values;
  for (auto [e, value] : llvm::enumerate(values))
    if (Value inside =
            isAlongRows ? tile.isRowInside(row)
                        : tile.isColumnInside(chunk, static_cast<int64_t>(e)))
      value = b.select(inside, value, b.f32(0.0f));
  return values;
}

/// All rows of a thread at once, two columns after two others, so that few are
/// in registers as numbers.
void FusionValues::rotateRows(HadamardOp op, int64_t chunk) {
  Type type = op.getResult().getType().getElementType();
  int64_t numRows = tile.getRows(), step = type.isF32() ? 1 : 2;
  Value number = b.bitAnd(tile.laneDown, kSize / numRows - 1);
  SmallVector<SmallVector<Value>> rows, rotated(numRows);
  for (int64_t row = 0; row < numRows; ++row)
    rows.push_back(getRotated(op, row, chunk));
  for (int64_t first = 0; first < kChunk; first += step) {
    SmallVector<SmallVector<Value>> columns;
    for (int64_t e = first; e < first + step; ++e) {
      columns.push_back(
          llvm::map_to_vector(rows, [&](auto &row) { return row[e]; }));
      rotate(op, columns.back(), number, config.getLanes());
    }
    for (int64_t row = 0; row < numRows; ++row)
      llvm::append_range(
          rotated[row],
          pack(llvm::map_to_vector(columns,
                                   [&](auto &values) { return values[row]; }),
               type));
  }
  for (int64_t row = 0; row < numRows; ++row)
    words[{op.getResult().getAsOpaquePointer(), row, chunk}] =
        llvm::map_to_vector(rotated[row],
                            [&](Value word) { return pin(b, word); });
}

SmallVector<Value> FusionValues::evaluateRotation(HadamardOp op, int64_t row,
                                                  int64_t chunk) {
  Type type = op.getResult().getType().getElementType();
  std::tuple key{op.getResult().getAsOpaquePointer(), row, chunk};
  if (spec.isTransposed(*spec.layouts.lookup(op.getResult()))) {
    if (words.count(key) == 0)
      rotateRows(op, chunk);
  } else {
    SmallVector<Value> values = getRotated(op, row, chunk);
    rotate(op, values, b.bitAnd(tile.laneAcross, kSize / kChunk - 1),
           /*distance=*/1);
    words[key] = pack(values, type);
  }
  return unpack(words.at(key), type);
}

//===- Promotion.cpp - Factors in f32 that change along K -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Promotion.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

static constexpr int64_t kFactorBytes = 4;

Promotion::Promotion(const MatmulContext &kernel, const Tile &tile)
    : kernel(kernel), b(kernel.b) {
  if (kernel.layout.rowScales)
    addCopy(tile, /*ofRows=*/true, /*number=*/0);
  if (kernel.layout.colScales)
    for (int64_t number = 0; number < (kernel.spec.isDual() ? 2 : 1); ++number)
      addCopy(tile, /*ofRows=*/false, number);
}

void Promotion::addCopy(const Tile &tile, bool ofRows, int64_t number) {
  const MatmulLayout &layout = kernel.layout;
  int64_t count = layout.rowScales;
  if (!ofRows)
    count = layout.colScales / (kernel.spec.isDual() ? 2 : 1);
  int64_t offset = ofRows ? layout.offsetRowScales : layout.offsetColScales;
  copies.emplace_back(
      kernel, tile,
      ScaleFactorCopy::Source{ofRows != kernel.config.getSwapAb(), number,
                              layout.rows.getBlockK()},
      ScaleFactorCopy::Stages{kernel.shared,
                              offset + number * count * kFactorBytes,
                              layout.getScaleStride(ofRows), count},
      kernel.lane);
}

void Promotion::copy(Value k, Value stage) const {
  for (auto [i, copy] : llvm::enumerate(copies))
    b.ifThen(b.equal(kernel.warp, static_cast<int64_t>(i)),
             [&, &copy = copy] { copy.copy(k, stage); });
}

Value Promotion::getPlace(Value stage, bool ofRows) const {
  const MatmulLayout &layout = kernel.layout;
  return b.offset(
      kernel.shared,
      b.add(b.mul(stage, layout.getScaleStride(ofRows)),
            ofRows ? layout.offsetRowScales : layout.offsetColScales));
}

Promotion::RowFactors Promotion::loadRows(Value stage, int64_t subtile) const {
  if (!kernel.layout.rowScales)
    return {};
  Type f32 = b.getF32Type();
  Value place = getPlace(stage, /*ofRows=*/true);
  Value row = b.add(kernel.getWarpRow(), subtile * kernel.layout.subtileStride);
  if (kernel.getRowSpec().scale == ScaleBlock::Block128) {
    Value factor =
        b.load(b.offset(place, b.mul(b.div(row, 128), kFactorBytes)), f32);
    return {factor, factor};
  }
  row = b.add(row, b.shiftRight(kernel.lane, 2));
  Value address = b.offset(place, b.mul(row, kFactorBytes));
  return {b.load(address, f32),
          b.load(b.offset(address, b.i32(8 * kFactorBytes)), f32)};
}

Promotion::ColFactors Promotion::loadCols(Value stage, int64_t col) const {
  if (!kernel.layout.colScales)
    return {};
  Type f32 = b.getF32Type();
  Value place = getPlace(stage, /*ofRows=*/false), first = kernel.getWarpCol();
  col = kernel.getColOffset(col);
  if (kernel.getColSpec().scale == ScaleBlock::Block128) {
    // Factors of one tensor, which a tile of fewer columns has one of.
    int64_t cols = kernel.spec.getResultCols(kernel.config.getCols());
    int64_t ofTensor = col / cols * llvm::divideCeil(cols, 128);
    Value inTensor = b.i32(col % cols);
    if (first)
      inTensor = b.add(first, inTensor);
    Value number = b.add(b.div(inTensor, 128), ofTensor);
    Value factor = b.load(b.offset(place, b.mul(number, kFactorBytes)), f32);
    return {factor, factor, factor, factor};
  }
  ColFactors factors;
  Value pair = b.mul(b.bitAnd(kernel.lane, 3), 2 * kFactorBytes);
  if (first)
    pair = b.add(pair, b.mul(first, kFactorBytes));
  for (int64_t half : {0, 1}) {
    Value loaded =
        b.load(b.offset(place, b.add(pair, (col + 8 * half) * kFactorBytes)),
               VectorType::get({2}, f32));
    for (int64_t i : {0, 1})
      factors[2 * half + i] =
          LLVM::ExtractElementOp::create(b, loaded, b.i32(i));
  }
  return factors;
}

void Promotion::add(ArrayRef<Value> product, const RowFactors &ofRows,
                    const ColFactors &ofCols,
                    MutableArrayRef<Value> sums) const {
  for (auto [i, term, sum] : llvm::enumerate(product, sums)) {
    Value factor = ofRows[i / 2 % 2], ofCol = ofCols[i / 4 * 2 + i % 2];
    if (factor && ofCol)
      factor = b.mulF(factor, ofCol);
    else if (ofCol)
      factor = ofCol;
    sum = factor
              ? Value(LLVM::FMAOp::create(b, b.getF32Type(), term, factor, sum))
              : Value(arith::AddFOp::create(b, term, sum));
  }
}

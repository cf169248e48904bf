//===- Factors.cpp - Factors of blocks that tensor cores multiply ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Factors.h"
#include "../Matmul/MatmulArguments.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

static constexpr int64_t kWordBytes = 4;

FactorLoader::FactorLoader(const MatmulContext &kernel, const Tile &tile,
                           bool ofRows, int64_t number)
    : kernel(kernel), b(kernel.b) {
  const MatmulLayout &layout = kernel.layout;
  bool isA = ofRows != kernel.config.getSwapAb();
  StringRef argument = isA ? "scale_a" : "scale_b";
  std::string name = getNameOfResult(argument, number);
  words = layout.factorWords;
  int64_t rows =
      (ofRows ? layout.rows : layout.colsPart).getBytes() / kRowBytes;
  count = rows * words;
  offset = (ofRows ? layout.offsetRowFactors : layout.offsetColFactors) +
           number * count * kWordBytes;
  stride = ofRows ? layout.getRowFactorBytes() : layout.getColFactorBytes();
  word = b.rem(kernel.thread, words);
  first = b.add(isA ? tile.m : tile.n, b.div(kernel.thread, words));
  end = kernel.getParam(tile, isA ? "m" : "n");
  strideRow = kernel.getParam(tile, name, ".stride_row");
  Value index = b.mul(b.widen(first), strideRow);
  if (kernel.spec.hasBatch(argument))
    index = b.add(index, b.mul(b.widen(tile.batch),
                               kernel.getParam(tile, name, ".stride_batch")));
  base = b.element(kernel.getParam(tile, name, ".ptr"), index, b.getI8Type());
  wordsOfRow =
      b.div(kernel.getParam("k"), kWordBytes * kernel.spec.a.getFactorK());
}

void FactorLoader::copy(Value k, Value stage) const {
  int64_t threads = kernel.config.getThreads();
  Value to =
      b.offset(kernel.shared, b.add(b.add(b.mul(stage, stride), b.i32(offset)),
                                    b.mul(kernel.thread, kWordBytes)));
  Value at = b.add(b.mul(k, words), word);
  Value from = b.offset(base, b.widen(b.mul(at, kWordBytes)));
  Value step = b.mul(strideRow, threads / words);
  Value isInK = b.less(at, wordsOfRow);
  for (int64_t i = 0; i < count; i += threads) {
    auto copyWord = [&] {
      Value isInside = b.less(b.add(first, i / words), end);
      Value bytes =
          b.select(b.bitAnd(isInside, isInK), b.i32(kWordBytes), b.i32(0));
      NVVM::CpAsyncOp::create(b, b.offset(to, b.i32(i * kWordBytes)), from,
                              kWordBytes, NVVM::LoadCacheModifierKind::CA,
                              bytes);
    };
    if (i + threads <= count)
      copyWord();
    else
      b.ifThen(b.less(kernel.thread, b.i32(count - i)), copyWord);
    from = b.offset(from, step);
  }
}

Value FactorWords::load(Value stage, int64_t first, int64_t step) const {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  int64_t words = layout.factorWords;
  Value row =
      b.add(b.shiftRight(kernel.lane, 2), b.mul(b.bitAnd(kernel.lane, 1), 8));
  if (Value ofWarp = ofRows ? kernel.getWarpRow() : kernel.getWarpCol())
    row = b.add(row, ofWarp);
  Value place = b.mul(stage, ofRows ? layout.getRowFactorBytes()
                                    : layout.getColFactorBytes());
  int64_t offset =
      (ofRows ? layout.offsetRowFactors : layout.offsetColFactors) +
      kWordBytes * (first * words + step * layout.factorsOfStep / 4);
  place = b.add(b.add(place, b.mul(row, words * kWordBytes)), b.i32(offset));
  return b.load(b.offset(kernel.shared, place), b.getI32Type());
}

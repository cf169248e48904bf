//===- RowCopies.cpp - Rows of attention to shared memory -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RowCopies.h"
#include "../Blocks/ExpandCodes.h"
#include "../Blocks/Rounding.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

static constexpr int64_t kChunkBytes = 16;

RowSource RowSource::get(KernelBuilder &b,
                         llvm::function_ref<Value(const Twine &)> getParam,
                         StringRef name, Type element, int64_t sequence,
                         Value head) {
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  auto getStride = [&](int64_t dim) {
    return b.mul(getParam(name + ".stride" + Twine(dim)), bytes);
  };
  Value ofHead = b.mul(b.widen(head), getStride(3 - sequence));
  return {b.offset(getParam(name + ".ptr"), ofHead), getStride(0),
          getStride(sequence)};
}

void RowCopier::forEachChunk(
    const SwizzledMatrix &matrix,
    llvm::function_ref<void(Value row, Value chunk)> body) const {
  int64_t chunksOfRow = matrix.rowBytes / kChunkBytes;
  int64_t chunks = matrix.rows * chunksOfRow;
  for (int64_t first = 0; first < chunks; first += threads) {
    auto doOne = [&] {
      Value number = b.add(thread, first);
      body(b.div(number, chunksOfRow), b.rem(number, chunksOfRow));
    };
    if (first + threads <= chunks)
      doOne();
    else
      b.ifThen(b.less(thread, b.i32(chunks - first)), doOne);
  }
}

static Value getPlace(KernelBuilder &b, const RowSource &source, Value batch,
                      Value line, Value bytes) {
  Value at = b.add(b.mul(b.widen(batch), source.strideBatch),
                   b.mul(b.widen(line), source.strideRow));
  return b.offset(source.base, b.add(at, b.widen(bytes)));
}

void RowCopier::copy(const RowSource &source, const SwizzledMatrix &matrix,
                     Value place, Find find) const {
  forEachChunk(matrix, [&](Value row, Value chunk) {
    auto [batch, line, isThere] = find(row);
    Value from = getPlace(b, source, batch, line, b.mul(chunk, kChunkBytes));
    Value to = b.offset(shared, b.add(place, matrix.locate(b, row, chunk)));
    NVVM::CpAsyncOp::create(b, to, from, kChunkBytes,
                            NVVM::LoadCacheModifierKind::CG,
                            b.select(isThere, b.i32(kChunkBytes), b.i32(0)));
  });
}

void RowCopier::convert(const RowSource &source, Type type,
                        const SwizzledMatrix &matrix, Value place,
                        Find find) const {
  forEachChunk(matrix, [&](Value row, Value chunk) {
    auto [batch, line, isThere] = find(row);
    Value from = getPlace(b, source, batch, line, b.mul(chunk, 8));
    Value codes = b.loadConstant(from, VectorType::get({2}, b.getI32Type()));
    Value numbers =
        LLVM::UndefOp::create(b, VectorType::get({4}, b.getI32Type()));
    for (int64_t i : {0, 1}) {
      Value word = LLVM::ExtractElementOp::create(b, codes, b.i32(i));
      word = b.select(isThere, word, b.i32(0));
      for (auto [j, pair] :
           llvm::enumerate(convertCodes(b, word, type, matrix.elementType)))
        numbers = LLVM::InsertElementOp::create(
            b, numbers, pair, b.i32(2 * i + static_cast<int64_t>(j)));
    }
    Value to = b.offset(shared, b.add(place, matrix.locate(b, row, chunk)));
    LLVM::StoreOp::create(b, numbers, to, /*alignment=*/kChunkBytes);
  });
}

void mma::storeRow(KernelBuilder &b, Type type, ArrayRef<Value> sums,
                   int64_t half, Value address, Value lane, bool areOddLast,
                   Value factor) {
  // A lane has four neighbours, or two.
  int64_t run = areOddLast ? 4 : 2;
  Value column = b.mul(b.bitAnd(lane, 3), run);
  address = b.element(address, b.widen(column), type);
  for (size_t first = 0; first < sums.size(); first += 2 * run) {
    Value words =
        LLVM::UndefOp::create(b, VectorType::get({run / 2}, b.getI32Type()));
    for (int64_t i = 0; i < run / 2; ++i) {
      size_t at = first + 2 * half + i, next = areOddLast ? at + 4 : at + 1;
      Value pair = roundPair(b, type, b.mulF(sums[at], factor),
                             b.mulF(sums[next], factor));
      words = LLVM::InsertElementOp::create(
          b, words, LLVM::BitcastOp::create(b, b.getI32Type(), pair), b.i32(i));
    }
    LLVM::StoreOp::create(
        b, words, b.offset(address, b.i64(static_cast<int64_t>(first) * 4)),
        /*alignment=*/2 * run);
  }
}

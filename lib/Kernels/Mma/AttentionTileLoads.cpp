//===- AttentionTileLoads.cpp - Attention: rows to shared memory ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionTileLoads.h"
#include "../Attention/AttentionLoads.h"
#include "../Attention/AttentionRows.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

static constexpr int64_t kChunkBytes = 16;

namespace {
/// Where rows of an operand begin.
struct RowSource {
  /// The head's first element of batch 0, bytes from one batch and from one row
  /// to the next (i64).
  Value base, strideBatch, strideRow;
};
} // namespace

static RowSource getSource(const AttentionContext &kernel, StringRef name,
                           Type element, Value head) {
  KernelBuilder &b = kernel.b;
  int64_t sequence = kernel.spec.getSequenceDim();
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  auto getStride = [&](int64_t dim) {
    return b.mul(kernel.getParam((name + ".stride" + Twine(dim)).str()), bytes);
  };
  Value ofHead = b.mul(b.widen(head), getStride(3 - sequence));
  return {b.offset(kernel.getParam(name.str() + ".ptr"), ofHead), getStride(0),
          getStride(sequence)};
}

/// Copies rows of `matrix` to byte `place` (i32); `find` gives the batch and
/// the row in it (i32) of a row of the tile, and whether it is there (i1).
static void copyRows(const AttentionContext &kernel, const RowSource &source,
                     const SwizzledMatrix &matrix, Value place,
                     llvm::function_ref<std::array<Value, 3>(Value row)> find) {
  KernelBuilder &b = kernel.b;
  int64_t threads = kernel.config.getThreads();
  int64_t chunksOfRow = matrix.rowBytes / kChunkBytes;
  int64_t chunks = matrix.rows * chunksOfRow;
  for (int64_t first = 0; first < chunks; first += threads) {
    auto copyOne = [&] {
      Value number = b.add(kernel.thread, first);
      Value row = b.div(number, chunksOfRow);
      Value chunk = b.rem(number, chunksOfRow);
      auto [batch, line, isThere] = find(row);
      Value at = b.add(b.mul(b.widen(batch), source.strideBatch),
                       b.mul(b.widen(line), source.strideRow));
      at = b.add(at, b.widen(b.mul(chunk, kChunkBytes)));
      Value to =
          b.offset(kernel.shared, b.add(place, matrix.locate(b, row, chunk)));
      NVVM::CpAsyncOp::create(b, to, b.offset(source.base, at), kChunkBytes,
                              NVVM::LoadCacheModifierKind::CG,
                              b.select(isThere, b.i32(kChunkBytes), b.i32(0)));
    };
    if (first + threads <= chunks)
      copyOne();
    else
      b.ifThen(b.less(kernel.thread, b.i32(chunks - first)), copyOne);
  }
}

void mma::copyQueries(const AttentionContext &kernel,
                      const AttentionTile &tile) {
  KernelBuilder &b = kernel.b;
  copyRows(kernel, getSource(kernel, "q", kernel.spec.q, tile.head),
           kernel.memory.q, b.i32(kernel.memory.offsetQ),
           [&](Value row) -> std::array<Value, 3> {
             Value query = b.add(tile.query, row);
             Value isThere = b.less(query, kernel.tiles.getQueries());
             // What is not read may not lie beyond the tensor either.
             return {tile.batch, b.select(isThere, query, b.i32(0)), isThere};
           });
}

void mma::copyKeysAndValues(const AttentionContext &kernel,
                            const AttentionTile &tile, Value number,
                            Value stage) {
  KernelBuilder &b = kernel.b;
  const AttentionMemory &memory = kernel.memory;
  Value first = b.mul(number, kernel.tileK);
  auto find = [&](Value row) -> std::array<Value, 3> {
    Value key = b.add(first, row);
    Value isThere = isBefore(b, key, tile.keys);
    if (tile.start)
      isThere =
          b.bitAnd(isThere, b.bitXor(isBefore(b, key, tile.start), b.i1(true)));
    if (tile.origin)
      key = b.add(key, tile.origin);
    key = b.select(isThere, key, b.i32(0));
    auto [batch, line] = findKey(kernel, tile, key);
    return {batch, line, isThere};
  };
  for (auto [name, element, matrix, offset] :
       {std::tuple{"k", kernel.spec.k, &memory.k, memory.offsetK},
        {"v", kernel.spec.v, &memory.v, memory.offsetV}})
    copyRows(kernel, getSource(kernel, name, element, tile.headOfK), *matrix,
             kernel.getPlace(*matrix, offset, stage), find);
}

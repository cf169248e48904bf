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
#include "RowCopies.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

static RowSource getSource(const AttentionContext &kernel, StringRef name,
                           Type element, Value head) {
  return RowSource::get(
      kernel.b,
      [&](const Twine &param) { return kernel.getParam(param.str()); }, name,
      element, kernel.spec.getSequenceDim(), head);
}

static RowCopier getCopier(const AttentionContext &kernel) {
  return {kernel.b, kernel.shared, kernel.thread, kernel.config.getThreads()};
}

void mma::copyQueries(const AttentionContext &kernel,
                      const AttentionTile &tile) {
  KernelBuilder &b = kernel.b;
  getCopier(kernel).copy(
      getSource(kernel, "q", kernel.spec.q, tile.head), kernel.memory.q,
      b.i32(kernel.memory.offsetQ), [&](Value row) -> std::array<Value, 3> {
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
    getCopier(kernel).copy(getSource(kernel, name, element, tile.headOfK),
                           *matrix, kernel.getPlace(*matrix, offset, stage),
                           find);
}

//===- Transpose.cpp - Transposes by squares of vectors -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Transpose.h"
#include "ScalarBody.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace mlir::fp8;

/// Bytes of a vector that every target has, and of a line of the cache.
static constexpr int64_t kVectorBytes = 16;
static constexpr int64_t kLineBytes = 64;

namespace {
class TransposeBuilder {
public:
  TransposeBuilder(RewriterBase &b, linalg::TransposeOp op)
      : b(b), loc(op.getLoc()), source(op.getInput()), target(op.getInit()) {}

  void build();

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  }
  Value roundDown(Value size, int64_t step);
  void loop(Value from, Value to, int64_t step,
            llvm::function_ref<void(Value)> body);
  Value load(Value row, Value column, Type type);
  void store(Value value, Value row, Value column);
  void buildSquare(Value row, Value column);
  void buildElement(Value row, Value column);
  /// The indices of an element: those of the batch, and two more.
  SmallVector<Value> getIndices(Value row, Value column) {
    SmallVector<Value> indices(batch);
    indices.append({row, column});
    return indices;
  }

  RewriterBase &b;
  Location loc;
  Value source, target;
  int64_t lanes = 0;
  SmallVector<Value> batch;
};
} // namespace

Value TransposeBuilder::roundDown(Value size, int64_t step) {
  AffineExpr extent = b.getAffineSymbolExpr(0);
  return getValueOrCreateConstantIndexOp(
      b, loc,
      affine::makeComposedFoldedAffineApply(
          b, loc, extent.floorDiv(step) * step, OpFoldResult(size)));
}

void TransposeBuilder::loop(Value from, Value to, int64_t step,
                            llvm::function_ref<void(Value)> body) {
  auto op = scf::ForOp::create(b, loc, from, to, index(step));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(op.getBody());
  body(op.getInductionVar());
}

void TransposeBuilder::buildElement(Value row, Value column) {
  Value element =
      memref::LoadOp::create(b, loc, source, getIndices(row, column));
  memref::StoreOp::create(b, loc, element, target, getIndices(column, row));
}

/// As many rows as a vector has elements. Each step interleaves those of the
/// first half with those of the second; after log2 of their number each vector
/// has a column.
void TransposeBuilder::buildSquare(Value row, Value column) {
  auto type = VectorType::get(
      lanes, cast<MemRefType>(source.getType()).getElementType());
  auto advance = [&](Value start, int64_t i) -> Value {
    return arith::AddIOp::create(b, loc, start, index(i));
  };
  SmallVector<Value> vectors;
  for (int64_t i = 0; i < lanes; ++i)
    vectors.push_back(vector::LoadOp::create(
        b, loc, type, source, getIndices(advance(row, i), column)));
  SmallVector<int64_t> low, high;
  for (int64_t i = 0; i < lanes / 2; ++i) {
    low.append({i, lanes + i});
    high.append({lanes / 2 + i, lanes + lanes / 2 + i});
  }
  for (int64_t done = 1; done < lanes; done *= 2) {
    SmallVector<Value> next;
    for (int64_t i = 0; i < lanes / 2; ++i)
      for (ArrayRef<int64_t> mask : {ArrayRef(low), ArrayRef(high)})
        next.push_back(vector::ShuffleOp::create(b, loc, vectors[i],
                                                 vectors[i + lanes / 2], mask));
    vectors = std::move(next);
  }
  for (int64_t i = 0; i < lanes; ++i)
    vector::StoreOp::create(b, loc, vectors[i], target,
                            getIndices(advance(column, i), row));
}

void TransposeBuilder::build() {
  auto type = cast<MemRefType>(source.getType());
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  lanes = kVectorBytes / bytes;
  int64_t line = kLineBytes / bytes;
  int64_t batchRank = type.getRank() - 2;
  Value zero = index(0);
  auto getSize = [&](int64_t dim) {
    return b.createOrFold<memref::DimOp>(loc, source, dim);
  };
  for (int64_t dim = 0; dim < batchRank; ++dim) {
    auto op = scf::ForOp::create(b, loc, zero, getSize(dim), index(1));
    batch.push_back(op.getInductionVar());
    b.setInsertionPointToStart(op.getBody());
  }
  Value rows = getSize(batchRank), columns = getSize(batchRank + 1);
  Value fullRows = roundDown(rows, lanes);
  Value fullColumns = roundDown(columns, lanes);
  // A line of the result is written at once: columns that are a power of two
  // apart would not all stay in the cache.
  loop(zero, fullRows, line, [&](Value first) {
    AffineExpr start = b.getAffineSymbolExpr(0), end = b.getAffineSymbolExpr(1);
    Value last = getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineMin(
            b, loc, AffineMap::get(0, 2, {start + line, end}, b.getContext()),
            {OpFoldResult(first), OpFoldResult(fullRows)}));
    loop(zero, fullColumns, lanes, [&](Value column) {
      loop(first, last, lanes, [&](Value row) { buildSquare(row, column); });
    });
  });
  // What is left to the right, and below.
  loop(fullColumns, columns, 1, [&](Value column) {
    loop(zero, fullRows, 1, [&](Value row) { buildElement(row, column); });
  });
  loop(zero, columns, 1, [&](Value column) {
    loop(fullRows, rows, 1, [&](Value row) { buildElement(row, column); });
  });
}

/// Whether neighbours of the last dimension are neighbours in memory.
static bool hasUnitStride(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  return succeeded(type.getStridesAndOffset(strides, offset)) &&
         strides.back() == 1;
}

LogicalResult fp8::lowerTranspose(RewriterBase &b, linalg::TransposeOp op) {
  auto source = dyn_cast<MemRefType>(op.getInput().getType());
  auto target = dyn_cast<MemRefType>(op.getInit().getType());
  if (!source || !target || source.getRank() < 2)
    return failure();
  Type element = source.getElementType();
  if (!element.isIntOrFloat() ||
      !llvm::is_contained({8, 16, 32}, element.getIntOrFloatBitWidth()))
    return failure();
  SmallVector<int64_t> swapped =
      llvm::to_vector(llvm::seq<int64_t>(0, source.getRank()));
  std::swap(swapped[source.getRank() - 1], swapped[source.getRank() - 2]);
  if (op.getPermutation() != ArrayRef(swapped) || !hasUnitStride(source) ||
      !hasUnitStride(target))
    return failure();
  TransposeBuilder(b, op).build();
  return success();
}

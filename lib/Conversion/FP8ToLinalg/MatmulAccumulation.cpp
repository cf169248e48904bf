//===- MatmulAccumulation.cpp - How products are added up -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulAccumulation.h"
#include "Blocks.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

AffineMap MatmulOperand::getFactorMap(OpBuilder &builder) const {
  int64_t rank = type.getRank();
  SmallVector<AffineExpr> exprs;
  for (int64_t dim = 0; dim < rank; ++dim) {
    int64_t extent = type.getBlock()[dim];
    // The rows of B are the columns of the result.
    int64_t loop = dim == rank - 2 && isB ? rank - 1 : dim;
    if (extent == ScaledType::kWhole || dim == rank - 1)
      exprs.push_back(builder.getAffineConstantExpr(0));
    else
      exprs.push_back(builder.getAffineDimExpr(loop).floorDiv(extent));
  }
  if (isTransposed)
    std::swap(exprs.back(), exprs[exprs.size() - 2]);
  return AffineMap::get(rank, 0, exprs, builder.getContext());
}

/// [batch,] row and column of a matrix among the loops [batch,] M, N and K.
static SmallVector<AffineExpr> getLoops(OpBuilder &b, int64_t rank, int64_t row,
                                        int64_t column) {
  int64_t batch = rank - 2;
  SmallVector<AffineExpr> exprs;
  if (batch)
    exprs.push_back(b.getAffineDimExpr(0));
  exprs.push_back(b.getAffineDimExpr(batch + row));
  exprs.push_back(b.getAffineDimExpr(batch + column));
  return exprs;
}

static AffineMap getMap(OpBuilder &b, int64_t rank,
                        ArrayRef<AffineExpr> exprs) {
  return AffineMap::get(rank + 1, 0, exprs, b.getContext());
}

static AffineMap getResultMap(OpBuilder &b, int64_t rank) {
  return getMap(b, rank, getLoops(b, rank, 0, 1));
}

/// Maps loops to the operand's values.
static AffineMap getValueMap(OpBuilder &b, const MatmulOperand &operand,
                             int64_t rank) {
  SmallVector<AffineExpr> exprs = getLoops(b, rank, operand.isB ? 1 : 0, 2);
  SmallVector<AffineExpr> permuted(exprs);
  for (auto [from, to] : llvm::enumerate(operand.permutation))
    permuted[to] = exprs[from];
  return getMap(b, rank, permuted);
}

/// Maps loops to its factors, all of K.
static AffineMap getBlockMap(OpBuilder &b, const MatmulOperand &operand,
                             int64_t rank) {
  SmallVector<AffineExpr> exprs = getLoops(b, rank, operand.isB ? 1 : 0, 2);
  for (auto [expr, extent] : llvm::zip_equal(exprs, operand.type.getBlock()))
    expr = extent == ScaledType::kWhole ? b.getAffineConstantExpr(0)
                                        : expr.floorDiv(extent);
  if (operand.isTransposed)
    std::swap(exprs.back(), exprs[exprs.size() - 2]);
  return getMap(b, rank, exprs);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

static OpFoldResult getSize(OpBuilder &b, Location loc,
                            const MatmulOperand &operand, int64_t dim) {
  return tensor::getMixedSize(b, loc, operand.values, operand.permutation[dim]);
}

/// Where the sum of nothing stands.
static Value buildZeros(OpBuilder &b, Location loc, const MatmulOperand &lhs,
                        const MatmulOperand &rhs, int64_t rank) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < rank - 1; ++dim)
    sizes.push_back(getSize(b, loc, lhs, dim));
  sizes.push_back(getSize(b, loc, rhs, rank - 2));
  Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  return linalg::FillOp::create(b, loc, constantF32(b, loc, 0.0f), empty)
      .getResult(0);
}

/// The part of an operand or of its factors from `offset` of a dimension on.
static Value buildSlice(OpBuilder &b, Location loc, Value source, int64_t dim,
                        OpFoldResult offset, OpFoldResult size) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
  SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
  offsets[dim] = offset;
  sizes[dim] = size;
  RankedTensorType type = tensor::ExtractSliceOp::inferResultType(
      cast<RankedTensorType>(source.getType()), sizes);
  return createSlice(b, loc, type, source, offsets, sizes);
}

/// Element by element, in f32.
static Value addElements(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  auto type = cast<RankedTensorType>(lhs.getType());
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, lhs), type.getElementType());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  auto sum = linalg::GenericOp::create(
      b, loc, empty.getType(), ValueRange{lhs, rhs}, empty,
      ArrayRef{identity, identity, identity},
      SmallVector<utils::IteratorType>(type.getRank(),
                                       utils::IteratorType::parallel),
      [](OpBuilder &b, Location loc, ValueRange args) {
        linalg::YieldOp::create(
            b, loc,
            arith::AddFOp::create(b, loc, args[0], args[1]).getResult());
      });
  return sum.getResult(0);
}

Value fp8::widenToF32(OpBuilder &b, Location loc, Value tensor) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getElementType().isF32())
    return tensor;
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, tensor), b.getF32Type());
  AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
  auto wide = linalg::GenericOp::create(
      b, loc, empty.getType(), tensor, empty, ArrayRef{identity, identity},
      SmallVector<utils::IteratorType>(type.getRank(),
                                       utils::IteratorType::parallel),
      [](OpBuilder &b, Location loc, ValueRange args) {
        linalg::YieldOp::create(b, loc, toF32(b, loc, args[0]));
      });
  return wide.getResult(0);
}

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

Value fp8::buildContract(OpBuilder &b, Location loc, const MatmulOperand &lhs,
                         const MatmulOperand &rhs, int64_t rank,
                         std::optional<TensorCoreAccumulation> sums) {
  Value init = buildZeros(b, loc, lhs, rhs, rank);
  auto contract = linalg::ContractOp::create(
      b, loc, TypeRange{init.getType()}, ValueRange{lhs.values, rhs.values},
      ValueRange{init},
      b.getAffineMapArrayAttr({getValueMap(b, lhs, rank),
                               getValueMap(b, rhs, rank),
                               getResultMap(b, rank)}));
  if (sums)
    sums->set(contract);
  return contract->getResult(0);
}

Value fp8::buildBlockedSums(OpBuilder &b, Location loc,
                            const MatmulOperand &lhs, const MatmulOperand &rhs,
                            int64_t rank, const TensorCoreAccumulation &sums) {
  TensorCoreAccumulation ofBlock = sums;
  ofBlock.parts = 1;
  ofBlock.isPromoted = false;
  ofBlock.sumK = 0;
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value extentK =
      getValueOrCreateConstantIndexOp(b, loc, getSize(b, loc, lhs, rank - 1));
  Value blockK = constant(sums.getSumK());
  auto countBlocks = [&](int64_t extent) {
    return b.createOrFold<arith::CeilDivUIOp>(loc, extentK, constant(extent));
  };
  // Parts begin with a block, which may have several sums.
  Value blocks = countBlocks(sums.blockK);
  int64_t perBlock = sums.blockK / sums.getSumK();
  auto bound = [&](int64_t part) -> Value {
    Value block = b.createOrFold<arith::DivUIOp>(
        loc, b.createOrFold<arith::MulIOp>(loc, blocks, constant(part)),
        constant(sums.parts));
    if (perBlock == 1)
      return block;
    return b.createOrFold<arith::MinUIOp>(
        loc, b.createOrFold<arith::MulIOp>(loc, block, constant(perBlock)),
        countBlocks(sums.getSumK()));
  };
  Value zeros = buildZeros(b, loc, lhs, rhs, rank);
  auto addPart = [&](int64_t part) {
    auto loop = scf::ForOp::create(b, loc, bound(part), bound(part + 1),
                                   constant(1), ValueRange{zeros});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value block = loop.getInductionVar();
    Value first = arith::MulIOp::create(b, loc, block, blockK);
    Value size = arith::MinUIOp::create(
        b, loc, blockK, arith::SubIOp::create(b, loc, extentK, first));
    auto take = [&](const MatmulOperand &operand) {
      MatmulOperand taken = operand;
      taken.values = buildSlice(b, loc, operand.values,
                                operand.permutation.back(), first, size);
      return taken;
    };
    SmallVector<Value> inputs{
        buildContract(b, loc, take(lhs), take(rhs), rank, ofBlock)};
    SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(rank)};
    for (const MatmulOperand *operand : {&lhs, &rhs}) {
      inputs.push_back(buildSlice(b, loc, operand->factors,
                                  operand->isTransposed ? rank - 2 : rank - 1,
                                  block, b.getIndexAttr(1)));
      maps.push_back(operand->getFactorMap(b));
    }
    maps.push_back(b.getMultiDimIdentityMap(rank));
    Value carried = loop.getRegionIterArg(0);
    auto next = linalg::GenericOp::create(
        b, loc, carried.getType(), inputs, carried, maps,
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
        [](OpBuilder &b, Location loc, ValueRange args) {
          Value factor = arith::MulFOp::create(b, loc, toF32(b, loc, args[1]),
                                               toF32(b, loc, args[2]));
          linalg::YieldOp::create(
              b, loc,
              math::FmaOp::create(b, loc, args[0], factor, args[3])
                  .getResult());
        });
    scf::YieldOp::create(b, loc, next.getResults());
    return loop.getResult(0);
  };
  Value total = addPart(0);
  for (int64_t part = 1; part < sums.parts; ++part)
    total = addElements(b, loc, total, addPart(part));
  return total;
}

Value fp8::buildScaledSums(OpBuilder &b, Location loc, const MatmulOperand &lhs,
                           const MatmulOperand &rhs, int64_t rank,
                           const TensorCoreAccumulation &sums) {
  Value init = buildZeros(b, loc, lhs, rhs, rank);
  SmallVector<Value> inputs;
  SmallVector<AffineMap> maps;
  for (const MatmulOperand *operand : {&lhs, &rhs}) {
    inputs.push_back(operand->values);
    maps.push_back(getValueMap(b, *operand, rank));
    inputs.push_back(widenToF32(b, loc, operand->factors));
    maps.push_back(getBlockMap(b, *operand, rank));
  }
  maps.push_back(getResultMap(b, rank));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  iterators.push_back(utils::IteratorType::reduction);
  auto generic = linalg::GenericOp::create(
      b, loc, init.getType(), inputs, init, maps, iterators,
      [](OpBuilder &b, Location loc, ValueRange args) {
        auto multiply = [&](Value lhs, Value rhs) -> Value {
          return arith::MulFOp::create(b, loc, lhs, rhs);
        };
        Value product =
            multiply(multiply(args[0], args[1]), multiply(args[2], args[3]));
        linalg::YieldOp::create(
            b, loc,
            arith::AddFOp::create(b, loc, args[4], product).getResult());
      });
  sums.set(generic);
  return generic.getResult(0);
}

//===- CanonicalGemm.cpp - Contractions in one canonical form -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

/// Maps of A, B and the result over the loops (batch, m, n, k).
static SmallVector<AffineMap> getCanonicalMaps(MLIRContext *context,
                                               bool batch) {
  auto mapOf = [&](unsigned row, unsigned column) {
    SmallVector<AffineExpr> exprs;
    if (batch)
      exprs.push_back(getAffineDimExpr(0, context));
    exprs.push_back(getAffineDimExpr(batch + row, context));
    exprs.push_back(getAffineDimExpr(batch + column, context));
    return AffineMap::get(batch + 3, 0, exprs, context);
  };
  return {mapOf(0, 2), mapOf(1, 2), mapOf(0, 1)};
}

bool fp8::isCanonical(linalg::ContractOp contract) {
  SmallVector<AffineMap> maps = contract.getIndexingMapsArray();
  unsigned loops = maps[0].getNumDims();
  return (loops == 3 || loops == 4) &&
         maps == getCanonicalMaps(contract.getContext(), loops == 4);
}

//===----------------------------------------------------------------------===//
// Building
//===----------------------------------------------------------------------===//

/// Groups of loops in the order in which they index a canonical operand.
using LoopGroups = SmallVector<SmallVector<unsigned, 2>, 3>;

/// Loops that index `operand`, outermost dimension first.
static SmallVector<unsigned> getLoops(const Contraction &contraction,
                                      OpOperand *operand) {
  SmallVector<unsigned> loops;
  linalg::LinalgOp op = contraction.op;
  for (AffineExpr expr : op.getMatchingIndexingMap(operand).getResults())
    loops.push_back(cast<AffineDimExpr>(expr).getPosition());
  return loops;
}

static LoopGroups getGroups(const Contraction &contraction,
                            ArrayRef<unsigned> rows,
                            ArrayRef<unsigned> columns) {
  LoopGroups groups;
  if (!contraction.dims.batch.empty())
    groups.emplace_back(contraction.dims.batch);
  groups.emplace_back(rows.begin(), rows.end());
  groups.emplace_back(columns.begin(), columns.end());
  return groups;
}

/// Permutation p such that dimension i of the grouped operand is dimension
/// p[i] of `operand`.
static SmallVector<int64_t> getPermutation(ArrayRef<unsigned> loops,
                                           const LoopGroups &groups) {
  SmallVector<int64_t> permutation;
  for (ArrayRef<unsigned> group : groups)
    for (unsigned loop : group)
      permutation.push_back(llvm::find(loops, loop) - loops.begin());
  return permutation;
}

static Value transpose(OpBuilder &builder, Location loc, Value tensor,
                       ArrayRef<int64_t> permutation) {
  if (isIdentityPermutation(permutation))
    return tensor;
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes = applyPermutation(
      tensor::getMixedSizes(builder, loc, tensor), permutation);
  Value empty =
      tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  return linalg::TransposeOp::create(builder, loc, tensor, empty, permutation)
      .getResult()[0];
}

/// Reassociation from the grouped to the canonical shape; empty groups have no
/// source dimension.
static SmallVector<ReassociationIndices>
getReassociation(const LoopGroups &groups) {
  SmallVector<ReassociationIndices> reassociation;
  int64_t next = 0;
  for (ArrayRef<unsigned> group : groups) {
    if (group.empty())
      continue;
    ReassociationIndices indices;
    for (size_t i = 0; i < group.size(); ++i)
      indices.push_back(next++);
    reassociation.push_back(indices);
  }
  return reassociation;
}

/// Reassociation that inserts (or removes) a unit dimension for every empty
/// group.
static SmallVector<ReassociationIndices>
getUnitReassociation(const LoopGroups &groups) {
  SmallVector<ReassociationIndices> reassociation;
  ReassociationIndices pending;
  for (auto [index, group] : llvm::enumerate(groups)) {
    pending.push_back(index);
    if (!group.empty()) {
      reassociation.push_back(pending);
      pending.clear();
    }
  }
  if (!pending.empty() && !reassociation.empty())
    llvm::append_range(reassociation.back(), pending);
  return reassociation;
}

static bool hasEmptyGroup(const LoopGroups &groups) {
  return llvm::any_of(groups, [](const auto &group) { return group.empty(); });
}

/// The tensor of `operand` as [batch x] rows x columns.
static Value buildCanonical(RewriterBase &rewriter,
                            const Contraction &contraction, OpOperand *operand,
                            const LoopGroups &groups) {
  Location loc = contraction.op.getLoc();
  SmallVector<unsigned> loops = getLoops(contraction, operand);
  Value tensor =
      transpose(rewriter, loc, operand->get(), getPermutation(loops, groups));
  if (loops.size() > getReassociation(groups).size())
    tensor = tensor::CollapseShapeOp::create(rewriter, loc, tensor,
                                             getReassociation(groups));
  if (!hasEmptyGroup(groups))
    return tensor;
  // Unit dimensions for the groups that have no loop.
  SmallVector<OpFoldResult> sizes;
  SmallVector<OpFoldResult> present =
      tensor::getMixedSizes(rewriter, loc, tensor);
  SmallVector<int64_t> shape;
  auto type = cast<RankedTensorType>(tensor.getType());
  unsigned next = 0;
  for (ArrayRef<unsigned> group : groups) {
    sizes.push_back(group.empty() ? rewriter.getIndexAttr(1) : present[next]);
    shape.push_back(group.empty() ? 1 : type.getShape()[next]);
    next += !group.empty();
  }
  return tensor::ExpandShapeOp::create(rewriter, loc, type.clone(shape), tensor,
                                       getUnitReassociation(groups), sizes);
}

Value fp8::buildCanonicalA(RewriterBase &rewriter,
                           const Contraction &contraction) {
  return buildCanonical(
      rewriter, contraction, contraction.getOperandA(),
      getGroups(contraction, contraction.dims.m, contraction.dims.k));
}

Value fp8::buildCanonicalB(RewriterBase &rewriter,
                           const Contraction &contraction) {
  return buildCanonical(
      rewriter, contraction, contraction.getOperandB(),
      getGroups(contraction, contraction.dims.n, contraction.dims.k));
}

/// Whether `operand` lies in memory as `groups` say.
static bool liesAs(const Contraction &contraction, OpOperand *operand,
                   const LoopGroups &groups) {
  return isIdentityPermutation(
      getPermutation(getLoops(contraction, operand), groups));
}

static StoredOperand buildStored(RewriterBase &rewriter,
                                 const Contraction &contraction,
                                 OpOperand *operand, ArrayRef<unsigned> rows) {
  ArrayRef<unsigned> k = contraction.dims.k;
  LoopGroups canonical = getGroups(contraction, rows, k);
  LoopGroups transposed = getGroups(contraction, k, rows);
  bool isTransposed = !liesAs(contraction, operand, canonical) &&
                      liesAs(contraction, operand, transposed);
  return {buildCanonical(rewriter, contraction, operand,
                         isTransposed ? transposed : canonical),
          isTransposed};
}

StoredOperand fp8::buildStoredA(RewriterBase &rewriter,
                                const Contraction &contraction) {
  return buildStored(rewriter, contraction, contraction.getOperandA(),
                     contraction.dims.m);
}

StoredOperand fp8::buildStoredB(RewriterBase &rewriter,
                                const Contraction &contraction) {
  return buildStored(rewriter, contraction, contraction.getOperandB(),
                     contraction.dims.n);
}

static LoopGroups getResultGroups(const Contraction &contraction) {
  return getGroups(contraction, contraction.dims.m, contraction.dims.n);
}

bool fp8::hasCanonicalResult(const Contraction &contraction) {
  return liesAs(contraction, contraction.op.getDpsInitOperand(0),
                getResultGroups(contraction));
}

Value fp8::buildCanonicalInit(RewriterBase &rewriter,
                              const Contraction &contraction) {
  return castElements(rewriter, contraction.op.getLoc(),
                      buildCanonical(rewriter, contraction,
                                     contraction.op.getDpsInitOperand(0),
                                     getResultGroups(contraction)),
                      rewriter.getF32Type());
}

Value fp8::castElements(OpBuilder &builder, Location loc, Value tensor,
                        Type elementType) {
  auto type = cast<RankedTensorType>(tensor.getType());
  if (type.getElementType() == elementType)
    return tensor;
  Value empty = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, tensor), elementType);
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  SmallVector<utils::IteratorType> iterators(type.getRank(),
                                             utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    // bf16 and f16 have the same width and no cast between them: go through
    // f32, which holds both exactly.
    Value value = args[0];
    if (type.getElementTypeBitWidth() < 32)
      value = arith::ExtFOp::create(b, loc, b.getF32Type(), value);
    if (elementType != value.getType())
      value = arith::TruncFOp::create(b, loc, elementType, value);
    linalg::YieldOp::create(b, loc, value);
  };
  return linalg::GenericOp::create(builder, loc, empty.getType(), tensor, empty,
                                   ArrayRef{identity, identity}, iterators,
                                   body)
      .getResult(0);
}

Value fp8::addElements(OpBuilder &builder, Location loc, Value lhs, Value rhs) {
  auto type = cast<RankedTensorType>(lhs.getType());
  AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
  Value empty = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, rhs),
      type.getElementType());
  auto sum = linalg::GenericOp::create(
      builder, loc, empty.getType(), ValueRange{lhs, rhs}, empty,
      ArrayRef{identity, identity, identity},
      SmallVector<utils::IteratorType>(type.getRank(),
                                       utils::IteratorType::parallel),
      [](OpBuilder &b, Location loc, ValueRange args) {
        Value sum = arith::AddFOp::create(b, loc, args[0], args[1]);
        linalg::YieldOp::create(b, loc, sum);
      });
  return sum.getResult(0);
}

bool fp8::isKnownZero(Value tensor) {
  // Looks through what only moves zeros around.
  while (Operation *op = tensor.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp, tensor::CastOp,
             linalg::TransposeOp>(op))
      break;
    tensor = op->getOperand(0);
  }
  auto isZero = [](Value value) {
    return matchPattern(value, m_AnyZeroFloat());
  };
  if (auto fill = tensor.getDefiningOp<linalg::FillOp>())
    return isZero(fill.value());
  return isZero(tensor);
}

/// f32 tensor of zeros, [batch x] M x N for `a` and `b`.
static Value buildZero(OpBuilder &builder, Location loc, Value a, Value b) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, a);
  sizes.back() = tensor::getMixedSize(builder, loc, b, sizes.size() - 2);
  Value empty =
      tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type());
  Value zero =
      arith::ConstantOp::create(builder, loc, builder.getF32FloatAttr(0.0f));
  return linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
}

Value fp8::buildResult(RewriterBase &rewriter, const Contraction &contraction,
                       Value product) {
  linalg::LinalgOp op = contraction.op;
  Location loc = op.getLoc();
  OpOperand *init = op.getDpsInitOperand(0);
  auto resultType = cast<RankedTensorType>(init->get().getType());
  LoopGroups groups = getResultGroups(contraction);
  // Narrow first, so that what is moved is small.
  Value result =
      castElements(rewriter, loc, product, resultType.getElementType());
  SmallVector<unsigned> loops = getLoops(contraction, init);
  SmallVector<int64_t> permutation = getPermutation(loops, groups);
  if (hasEmptyGroup(groups)) {
    SmallVector<ReassociationIndices> units = getUnitReassociation(groups);
    result = tensor::CollapseShapeOp::create(rewriter, loc, result, units);
  }
  SmallVector<ReassociationIndices> reassociation = getReassociation(groups);
  if (loops.size() > reassociation.size()) {
    SmallVector<OpFoldResult> initSizes =
        tensor::getMixedSizes(rewriter, loc, init->get());
    SmallVector<OpFoldResult> sizes = applyPermutation(initSizes, permutation);
    SmallVector<int64_t> shape =
        applyPermutation(resultType.getShape(), permutation);
    result = tensor::ExpandShapeOp::create(
        rewriter, loc, resultType.clone(shape), result, reassociation, sizes);
  }
  result =
      transpose(rewriter, loc, result, invertPermutationVector(permutation));
  if (result.getType() != resultType)
    result = tensor::CastOp::create(rewriter, loc, resultType, result);
  return result;
}

CanonicalResult fp8::buildCanonicalContract(RewriterBase &rewriter,
                                            const Contraction &contraction,
                                            Value a, Value b) {
  Location loc = contraction.op.getLoc();
  Value acc = isKnownZero(contraction.getInit())
                  ? buildZero(rewriter, loc, a, b)
                  : buildCanonicalInit(rewriter, contraction);
  ArrayAttr maps = rewriter.getAffineMapArrayAttr(
      getCanonicalMaps(rewriter.getContext(), !contraction.dims.batch.empty()));
  auto contract =
      linalg::ContractOp::create(rewriter, loc, TypeRange{acc.getType()},
                                 ValueRange{a, b}, ValueRange{acc}, maps);
  return {contract, buildResult(rewriter, contraction, contract->getResult(0))};
}

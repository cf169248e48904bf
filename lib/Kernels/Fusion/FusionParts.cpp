//===- FusionParts.cpp - Fusions from a fusion ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionParts.h"
#include "fp8/Analysis/FusionLayouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

//===----------------------------------------------------------------------===//
// Parts of a fusion
//===----------------------------------------------------------------------===//

Operation *fp8::getTerminator(FusionOp op) {
  return op.getBody().front().getTerminator();
}

void fp8::walkOperands(Operation *op,
                       llvm::function_ref<void(Value)> callback) {
  llvm::for_each(op->getOperands(), callback);
  llvm::SetVector<Value> used;
  getUsedValuesDefinedAbove(op->getRegions(), used);
  llvm::for_each(used, callback);
}

llvm::SmallPtrSet<Operation *, 16> fp8::getSlice(ArrayRef<Value> values,
                                                 const KnownValues &known) {
  llvm::SmallPtrSet<Operation *, 16> slice;
  std::function<void(Value)> visit = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op && !known.contains(value) && slice.insert(op).second)
      walkOperands(op, visit);
  };
  llvm::for_each(values, visit);
  return slice;
}

FusionOp fp8::extractFusion(FusionOp op, ArrayRef<Value> yields,
                            const KnownValues &known) {
  Block &body = op.getBody().front();
  llvm::SmallPtrSet<Operation *, 16> slice = getSlice(yields, known);
  // What the part reads, in the body and outside.
  KnownValues inputs;
  auto addIfRead = [&](Value value) {
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == &body)
      inputs[value] = op.getInputs()[argument.getArgNumber()];
    else if (auto found = known.find(value); found != known.end())
      inputs[value] = found->second;
  };
  for (Operation &inner : body)
    if (slice.contains(&inner))
      walkOperands(&inner, addIfRead);
  llvm::for_each(yields, addIfRead);

  OpBuilder b(op);
  SmallVector<Value> outside =
      llvm::map_to_vector(inputs, [](auto &input) { return input.second; });
  auto part =
      FusionOp::create(b, op.getLoc(), TypeRange(ValueRange(yields)), outside);
  Block *block =
      b.createBlock(&part.getBody(), {}, TypeRange(ValueRange(outside)),
                    SmallVector<Location>(outside.size(), op.getLoc()));
  IRMapping mapping;
  for (auto [input, argument] : llvm::zip_equal(inputs, block->getArguments()))
    mapping.map(input.first, argument);
  for (Operation &inner : body)
    if (slice.contains(&inner))
      b.clone(inner, mapping);
  YieldOp::create(b, op.getLoc(), llvm::map_to_vector(yields, [&](Value value) {
                    return mapping.lookup(value);
                  }));
  return part;
}

static void eraseIfDead(Operation *op) {
  if (!op || !isOpTriviallyDead(op))
    return;
  SmallVector<Value> operands(op->getOperands());
  op->erase();
  for (Value operand : operands)
    eraseIfDead(operand.getDefiningOp());
}

void fp8::eraseFusion(FusionOp op) {
  SmallVector<Value> inputs(op.getInputs());
  op.erase();
  for (Value input : inputs)
    if (input.getType().isIndex())
      eraseIfDead(input.getDefiningOp());
}

//===----------------------------------------------------------------------===//
// Parts of a reduction
//===----------------------------------------------------------------------===//

static bool isTakenWhole(ArrayRef<int64_t> domain, int64_t dim) {
  return !ShapedType::isDynamic(domain[dim]) && domain[dim] <= kPart;
}

std::optional<int64_t> fp8::getPartDim(const FusionLayout &result,
                                       ArrayRef<int64_t> domain) {
  auto rank = static_cast<int64_t>(domain.size());
  int64_t dim = result.block.back() == kWhole ? rank - 1 : rank - 2;
  if (dim < 0 || result.block[dim] != kWhole)
    return std::nullopt;
  // Several batches with few rows are reduced one by one first.
  bool hasMore = llvm::count(result.block, kWhole) > 1 && domain[dim] != 1;
  return isTakenWhole(domain, dim) && !hasMore ? std::nullopt
                                               : std::optional(dim);
}

static ReductionParts buildAmaxParts(OpBuilder &b, AmaxOp op,
                                     ArrayRef<int64_t> domain, int64_t dim,
                                     int64_t part) {
  SmallVector<int64_t> block(op.getBlock().size(), 1);
  block[dim] = isTakenWhole(domain, dim) ? kWhole : part;
  auto parts = AmaxOp::create(b, op.getLoc(), op.getSource(), block,
                              op.getPropagateNan());
  auto whole = AmaxOp::create(b, op.getLoc(), parts.getAmax(), op.getBlock(),
                              op.getPropagateNan());
  return {parts, whole};
}

/// The number of parts of `part` elements along `dim`, which becomes an input
/// if it is not known.
static std::optional<OpFoldResult>
countParts(FusionOp op, ArrayRef<int64_t> domain, int64_t dim, int64_t part) {
  OpBuilder b(op);
  if (!ShapedType::isDynamic(domain[dim]))
    return OpFoldResult(b.getIndexAttr(llvm::divideCeil(domain[dim], part)));
  for (Value input : op.getInputs()) {
    auto type = dyn_cast<RankedTensorType>(input.getType());
    if (!type || type.getShape() != domain)
      continue;
    Location loc = op.getLoc();
    Value parts = tensor::DimOp::create(b, loc, input, dim);
    if (part != 1)
      parts = arith::CeilDivUIOp::create(
          b, loc, parts, arith::ConstantIndexOp::create(b, loc, part));
    op.getInputsMutable().append(parts);
    return OpFoldResult(
        op.getBody().front().addArgument(b.getIndexType(), loc));
  }
  return std::nullopt;
}

static std::optional<ReductionParts> buildSumParts(OpBuilder &b, FusionOp op,
                                                   linalg::GenericOp sum,
                                                   ArrayRef<int64_t> domain,
                                                   int64_t dim, int64_t part) {
  Location loc = sum.getLoc();
  auto rank = static_cast<int64_t>(domain.size());
  bool isWhole = isTakenWhole(domain, dim);
  SmallVector<OpFoldResult> sizes;
  SmallVector<AffineExpr> places;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == dim && isWhole)
      continue;
    AffineExpr place = b.getAffineDimExpr(i);
    if (i == dim)
      place = place.floorDiv(part);
    std::optional<OpFoldResult> size =
        countParts(op, domain, i, i == dim ? part : 1);
    if (!size)
      return std::nullopt;
    sizes.push_back(*size);
    places.push_back(place);
  }
  Operation *combiner = getCombiner(sum);
  float start = isa<arith::AddFOp>(combiner)
                    ? 0.0f
                    : -std::numeric_limits<float>::infinity();
  Value first = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(start));
  Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  Value init = linalg::FillOp::create(b, loc, first, empty).getResult(0);

  // The same reduction, with a result for each part.
  SmallVector<AffineMap> maps = sum.getIndexingMapsArray();
  AffineMap result = std::exchange(
      maps.back(), AffineMap::get(rank, 0, places, b.getContext()));
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  loops[dim] = utils::IteratorType::reduction;
  auto parts = linalg::GenericOp::create(b, loc, init.getType(),
                                         sum.getInputs(), init, maps, loops);
  IRMapping mapping;
  sum.getRegion().cloneInto(&parts.getRegion(), mapping);

  // Their reduction, whose loops are those that they have.
  loops = sum.getIteratorTypesArray();
  if (isWhole) {
    loops.erase(loops.begin() + dim);
    for (int64_t i = dim + 1; i < rank; ++i)
      result = result.replace(b.getAffineDimExpr(i), b.getAffineDimExpr(i - 1),
                              rank, 0);
    result = AffineMap::get(rank - 1, 0, result.getResults(), b.getContext());
  }
  AffineMap identity = b.getMultiDimIdentityMap(loops.size());
  auto whole = linalg::GenericOp::create(
      b, loc, sum.getResultTypes(), parts.getResults(), sum.getOutputs(),
      ArrayRef{identity, result}, loops,
      [&](OpBuilder &body, Location loc, ValueRange arguments) {
        Operation *combined = body.clone(*combiner);
        combined->setOperands({arguments[1], arguments[0]});
        linalg::YieldOp::create(body, loc, combined->getResults());
      });
  return ReductionParts{parts, whole};
}

std::optional<ReductionParts> fp8::buildParts(FusionOp op, Operation *reduction,
                                              ArrayRef<int64_t> domain,
                                              int64_t dim, int64_t part) {
  OpBuilder b(reduction);
  auto amax = dyn_cast<AmaxOp>(reduction);
  if (!amax)
    return buildSumParts(b, op, cast<linalg::GenericOp>(reduction), domain, dim,
                         part);
  if (cast<RankedTensorType>(amax.getSource().getType()).getShape() != domain)
    return std::nullopt;
  return buildAmaxParts(b, amax, domain, dim, part);
}

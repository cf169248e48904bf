//===- LowerContraction.cpp - Warps that add up products ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../LinalgToLoops/ScalarBody.h"
#include "Combiner.h"
#include "StridedKernels.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::fp8;

/// The reduction loop that is longest, as far as is known; of equals the
/// innermost, along which inputs lie closest.
static unsigned getLongest(linalg::LinalgOp op, ArrayRef<unsigned> reductions) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto getExtent = [&](unsigned dim) {
    return ShapedType::isDynamic(extents[dim])
               ? std::numeric_limits<int64_t>::max()
               : extents[dim];
  };
  unsigned longest = reductions.front();
  for (unsigned dim : reductions)
    if (getExtent(dim) >= getExtent(longest))
      longest = dim;
  return longest;
}

/// Results that a warp has of a dimension, and all warps that fill a GPU.
static constexpr int64_t kMaxRows = 8;
static constexpr int64_t kMaxColumns = 4;
static constexpr int64_t kEnoughWarps = 2048;
/// Results of an element that are worth a copy of its tensor.
static constexpr int64_t kFewResults = 16;

namespace {
/// A warp has some rows by some columns, so that what it reads serves several
/// results. Of each its lanes take turns along the longest reduction loop: a
/// CPU that adds up as a GPU does has this order (fp8rt_gemm_warp).
class ContractionBuilder : IndexBuilder {
public:
  ContractionBuilder(RewriterBase &b, LaunchBuilder &launches,
                     linalg::LinalgOp op, const Combiner &combiner)
      : IndexBuilder(b, op.getLoc()), b(b), launches(launches), op(op),
        loc(op.getLoc()), combiner(combiner),
        ranges(op.createLoopRanges(b, loc)), together(ranges.size(), 1) {}

  void build();

private:
  void chooseTogether(ArrayRef<unsigned> parallel);
  SmallVector<SmallVector<Value>> getPlaces(ArrayRef<unsigned> parallel,
                                            ArrayRef<Value> indices);

  RewriterBase &b;
  LaunchBuilder &launches;
  linalg::LinalgOp op;
  Location loc;
  const Combiner &combiner;
  SmallVector<Range> ranges;
  /// Iterations of each loop that one warp has.
  SmallVector<int64_t> together;
};
} // namespace

/// No more than there are, and than leaves the GPU its warps. What is not known
/// is one.
void ContractionBuilder::chooseTogether(ArrayRef<unsigned> parallel) {
  FailureOr<linalg::ContractionDimensions> dims =
      linalg::inferContractionDims(op);
  if (failed(dims))
    return;
  auto raise = [&](ArrayRef<unsigned> some, int64_t most) {
    if (some.empty())
      return;
    std::optional<int64_t> size = getConstantIntValue(ranges[some.back()].size);
    if (size)
      together[some.back()] =
          std::min<int64_t>(most, llvm::PowerOf2Ceil(*size));
  };
  raise(dims->m, kMaxRows);
  raise(dims->n, kMaxColumns);
  int64_t warps = 1;
  for (unsigned dim : parallel)
    warps *= getConstantIntValue(ranges[dim].size).value_or(kEnoughWarps);
  for (int64_t &count : together)
    while (count > 1 &&
           warps < kEnoughWarps * std::accumulate(together.begin(),
                                                  together.end(), int64_t{1},
                                                  std::multiplies<>()))
      count /= 2;
}

/// The indices of each of a warp's results: those beyond the last are its
/// again.
SmallVector<SmallVector<Value>>
ContractionBuilder::getPlaces(ArrayRef<unsigned> parallel,
                              ArrayRef<Value> indices) {
  SmallVector<SmallVector<Value>> places(1, SmallVector<Value>(ranges.size()));
  for (auto [dim, index] : llvm::zip_equal(parallel, indices)) {
    SmallVector<SmallVector<Value>> next;
    Value size = get(ranges[dim].size);
    std::optional<int64_t> known = getConstantIntValue(ranges[dim].size);
    Value first =
        together[dim] == 1 ? index : multiply(index, constant(together[dim]));
    for (ArrayRef<Value> place : places)
      for (int64_t number = 0; number < together[dim]; ++number) {
        Value iv = number == 0 ? first : add(first, constant(number));
        if (number > 0 && *known % together[dim] != 0)
          iv = arith::MinUIOp::create(
              b, loc, iv, arith::SubIOp::create(b, loc, size, constant(1)));
        next.emplace_back(place);
        next.back()[dim] = iv;
      }
    places = std::move(next);
  }
  return places;
}

void ContractionBuilder::build() {
  SmallVector<unsigned> parallel, reductions;
  op.getParallelDims(parallel);
  op.getReductionDims(reductions);
  chooseTogether(parallel);
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim : parallel)
    sizes.push_back(affine::makeComposedFoldedAffineApply(
        b, loc, b.getAffineSymbolExpr(0).ceilDiv(together[dim]),
        ranges[dim].size));
  sizes.push_back(b.getIndexAttr(kWarpSize));
  SmallVector<Value> indices =
      launches.build(loc, op->getName().stripDialect(), sizes);
  Value lane = indices.pop_back_val();
  Range &shared = ranges[getLongest(op, reductions)];
  shared.offset = lane;
  shared.stride = b.getIndexAttr(kWarpSize);

  ScalarBody body(b, op);
  Type type = getElementTypeOrSelf(op.getDpsInits().front());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  SmallVector<SmallVector<Value>> places = getPlaces(parallel, indices);
  SmallVector<Value> ivs = places.front();
  SmallVector<Value> sums = body.buildLoops(
      ranges, reductions, ivs, SmallVector<Value>(places.size(), zero),
      [&](ArrayRef<Value> inner, ValueRange carried) {
        SmallVector<Value> next;
        for (auto [place, sum] : llvm::zip_equal(places, carried)) {
          SmallVector<Value> own(place);
          for (unsigned dim : reductions)
            own[dim] = inner[dim];
          llvm::append_range(next, body.inlineBody(own, sum));
        }
        return next;
      });
  for (Value &sum : sums) {
    sum = combiner.widen(b, loc, sum);
    for (int64_t distance = kWarpSize / 2; distance > 0; distance /= 2)
      sum = combiner.combine(b, loc, sum,
                             combiner.shuffle(b, loc, sum, distance));
  }
  branch(isZero(lane), [&] {
    SmallVector<Value> inits;
    for (ArrayRef<Value> place : places)
      inits.push_back(combiner.widen(b, loc, body.loadInits(place).front()));
    for (auto [place, init, sum] : llvm::zip_equal(places, inits, sums))
      body.storeInits(
          combiner.narrow(b, loc, combiner.combine(b, loc, init, sum)), place);
  });
}

/// The permutation that takes what `op` sums up over to the end of an input
/// that serves many results; none where it is there, or they are too few.
static std::optional<SmallVector<int64_t>>
findPermutation(linalg::LinalgOp op, OpOperand *input, unsigned shared) {
  AffineMap map = op.getMatchingIndexingMap(input);
  auto type = cast<MemRefType>(input->get().getType());
  std::optional<unsigned> place =
      map.getResultPosition(getAffineDimExpr(shared, op.getContext()));
  if (!map.isProjectedPermutation() || !place ||
      *place + 1 == map.getNumResults() || !type.hasStaticShape())
    return std::nullopt;
  int64_t results = 1;
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  for (unsigned dim : parallel)
    if (!map.isFunctionOfDim(dim))
      results *= ShapedType::isDynamic(extents[dim]) ? 1 : extents[dim];
  if (results < kFewResults)
    return std::nullopt;
  SmallVector<int64_t> permutation;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (dim != *place)
      permutation.push_back(dim);
  permutation.push_back(*place);
  return permutation;
}

void fp8::lowerContraction(
    RewriterBase &b, LaunchBuilder &launches, linalg::LinalgOp op,
    const Combiner &combiner,
    llvm::function_ref<void(linalg::LinalgOp)> lowerOther) {
  Location loc = op.getLoc();
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  unsigned shared = getLongest(op, reductions);
  SmallVector<Value> inputs(op.getDpsInputs()), copies;
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  for (OpOperand *input : op.getDpsInputOperands()) {
    std::optional<SmallVector<int64_t>> permutation =
        findPermutation(op, input, shared);
    if (!permutation)
      continue;
    unsigned number = input->getOperandNumber();
    auto type = cast<MemRefType>(input->get().getType());
    copies.push_back(memref::AllocOp::create(
        b, loc,
        MemRefType::get(applyPermutation(type.getShape(), *permutation),
                        type.getElementType())));
    inputs[number] = copies.back();
    SmallVector<AffineExpr> exprs(maps[number].getResults());
    applyPermutationToVector(exprs, *permutation);
    maps[number] =
        AffineMap::get(maps[number].getNumDims(), 0, exprs, b.getContext());
    auto copy = linalg::TransposeOp::create(b, loc, input->get(), copies.back(),
                                            *permutation);
    lowerOther(copy);
    b.setInsertionPoint(op);
    b.eraseOp(copy);
  }
  if (copies.empty())
    return ContractionBuilder(b, launches, op, combiner).build();
  auto generic = linalg::GenericOp::create(b, loc, inputs, op.getDpsInits(),
                                           maps, op.getIteratorTypesArray());
  b.cloneRegionBefore(op->getRegion(0), generic.getRegion(),
                      generic.getRegion().end());
  if (Attribute filled = op->getAttr(kFilledName))
    generic->setAttr(kFilledName, filled);
  for (Value copy : copies)
    memref::DeallocOp::create(b, loc, copy);
  b.setInsertionPoint(generic);
  ContractionBuilder(b, launches, generic, combiner).build();
  b.eraseOp(generic);
}

//===- FusionTiling.cpp - How fusions are cut into tiles ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionTiling.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/PackedCodes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

static int64_t getNumElements(ArrayRef<int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape)
    count = ShapedType::isDynamic(extent) || ShapedType::isDynamic(count)
                ? ShapedType::kDynamic
                : count * extent;
  return count;
}

SmallVector<OpOperand *> FusionTiling::getInputs(Operation &op) {
  SmallVector<OpOperand *> inputs;
  auto destination = dyn_cast<DestinationStyleOpInterface>(op);
  for (OpOperand &operand : op.getOpOperands())
    if (isa<BlockArgument>(operand.get()) &&
        isa<RankedTensorType>(operand.get().getType()) &&
        !isa<tensor::DimOp>(op) &&
        !(destination && destination.isDpsInit(&operand)))
      inputs.push_back(&operand);
  return inputs;
}

LogicalResult FusionTiling::analyze(std::string &reason) {
  if (fusion->getParentOfType<scf::ForallOp>()) {
    reason = "a part of what threads share already";
    return failure();
  }
  auto isStoredAsAnother = [](Type type) { return isPacked(type); };
  if (llvm::any_of(fusion->getOperandTypes(), isStoredAsAnother) ||
      llvm::any_of(fusion->getResultTypes(), isStoredAsAnother)) {
    reason = "codes that share bytes";
    return failure();
  }
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    if (isPositionDependent(&op)) {
      reason = "what depends on positions in the whole tensor";
      return failure();
    }
    if (failed(layouts.add(&op, reason)))
      return failure();
    for (OpOperand *operand : getInputs(op)) {
      const FusionLayout &layout = layouts.lookup(*operand);
      if (!layout.isFull() || !layout.isOrdered() || domainInput)
        continue;
      domainInput = cast<BlockArgument>(operand->get());
      domainDims.resize(layout.block.size());
      for (auto [k, dim] : llvm::enumerate(layout.dims))
        if (dim >= 0)
          domainDims[dim] = static_cast<int64_t>(k);
    }
    for (Value result : op.getResults())
      if (const FusionLayout *layout = layouts.lookup(result))
        isTransposed |= layout->isFull() && !layout->isOrdered();
  }
  if (!domainInput) {
    reason = "expected an input with the shape of the domain";
    return failure();
  }
  return success();
}

/// Operations on single elements, and extents, that wait for nothing of the
/// domain.
void FusionTiling::findHoisted() {
  auto isOutside = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (op)
      return hoisted.contains(op);
    auto type = dyn_cast<ShapedType>(value.getType());
    return !type || (type.hasStaticShape() && type.getNumElements() == 1);
  };
  for (Operation &op : fusion.getBody().front().without_terminator())
    if (op.hasTrait<OpTrait::ConstantLike>() ||
        (isa<tensor::DimOp>(op) && isa<BlockArgument>(op.getOperand(0))) ||
        (isa<ComputeScaleOp>(op) && llvm::all_of(op.getOperands(), isOutside)))
      hoisted.insert(&op);
}

/// Whether each tile may have its own amax, of which nobody in the fusion asks
/// more.
static bool isCombined(Value value) {
  return value.getDefiningOp<AmaxOp>() &&
         llvm::all_of(value.getUsers(), llvm::IsaPred<YieldOp>);
}

void FusionTiling::findWhole() {
  isWhole.assign(layouts.getDomain().size(), false);
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    if (isHoisted(&op))
      continue;
    for (Value result : op.getResults()) {
      const FusionLayout *layout = layouts.lookup(result);
      if (!layout || isCombined(result))
        continue;
      // Others than reductions only have to be written by one tile.
      if (!isReduction(&op) &&
          llvm::none_of(result.getUsers(), llvm::IsaPred<YieldOp>))
        continue;
      for (auto [whole, extent] : llvm::zip_equal(isWhole, layout->block))
        whole |= extent == kWhole;
    }
  }
}

int64_t FusionTiling::getAlignment(unsigned dim) {
  int64_t alignment = 1;
  auto add = [&](const FusionLayout *layout) {
    if (layout && layout->block[dim] != kWhole)
      alignment = std::lcm(alignment, layout->block[dim]);
  };
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    for (OpOperand *operand : getInputs(op))
      add(&layouts.lookup(*operand));
    for (Value result : op.getResults())
      add(layouts.lookup(result));
  }
  return alignment;
}

LogicalResult FusionTiling::choose(int64_t elements, std::string &reason) {
  ArrayRef<int64_t> domain = layouts.getDomain();
  auto rank = static_cast<int64_t>(domain.size());
  int64_t count = getNumElements(domain);
  if (!ShapedType::isDynamic(count) && count <= 2 * elements) {
    reason = "a tensor too small to parallelize";
    return failure();
  }
  tile.assign(rank, kWhole);
  auto side = static_cast<int64_t>(
      llvm::bit_floor(static_cast<uint64_t>(std::sqrt(elements))));
  int64_t left = elements;
  // From the innermost dimension, as many elements as are left of a tile.
  for (int64_t dim = rank; dim-- > 0;) {
    int64_t extent = domain[dim];
    if (!isWhole[dim]) {
      int64_t wanted = left;
      if (dim == rank - 1 && rank > 1)
        // Rows are read in long pieces, which the hardware fetches ahead. Of
        // what is written in both orders a tile has so many rows, too, that
        // one of the result begins and ends with a line of the cache.
        wanted = isWhole[dim - 1]                            ? 2 * side
                 : isTransposed || getAlignment(dim - 1) > 1 ? 8 * side
                                                             : elements / 8;
      else if (dim == rank - 2 && isTransposed)
        wanted = std::max(left, side / 2);
      else if (dim == rank - 2 && isWhole[rank - 1])
        // Rows that are reduced beside each other.
        wanted = std::max(left, side / 16);
      wanted =
          llvm::bit_floor(static_cast<uint64_t>(std::max<int64_t>(wanted, 1)));
      wanted = llvm::alignTo(wanted, getAlignment(dim));
      if (ShapedType::isDynamic(extent) || extent > wanted)
        tile[dim] = wanted;
    }
    int64_t own = tile[dim] != kWhole             ? tile[dim]
                  : ShapedType::isDynamic(extent) ? elements / 8
                                                  : extent;
    left = std::max<int64_t>(left / std::max<int64_t>(own, 1), 1);
  }
  if (llvm::all_of(tile, [](int64_t extent) { return extent == kWhole; })) {
    reason = "expected a dimension along which nothing has an order: sums of "
             "rows need whole rows, sums of columns whole columns";
    return failure();
  }
  return success();
}

FailureOr<FusionTiling> FusionTiling::get(FusionOp fusion, int64_t elements,
                                          std::string &reason) {
  FusionTiling tiling(fusion,
                      FusionLayouts::findDomain(fusion.getBody().front()));
  if (failed(tiling.analyze(reason)))
    return failure();
  tiling.findHoisted();
  tiling.findWhole();
  if (failed(tiling.choose(elements, reason)))
    return failure();
  return tiling;
}

SmallVector<int64_t> FusionTiling::getPartialDims(Value yielded) const {
  const FusionLayout &layout = *layouts.lookup(yielded);
  SmallVector<int64_t> partial(layout.dims.size(), -1);
  if (!isCombined(yielded))
    return partial;
  // An amax has a dimension for each of its source.
  auto amax = yielded.getDefiningOp<AmaxOp>();
  OpOperand &source = amax.getSourceMutable();
  for (auto [k, dim] : llvm::enumerate(layouts.lookup(source).dims))
    if (dim >= 0 && layout.block[dim] == kWhole && tile[dim] != kWhole)
      partial[k] = dim;
  return partial;
}

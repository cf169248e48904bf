//===- SplatConstants.cpp - Constants of equal elements -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplatConstants.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/FP8Types.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;

/// Elements of a dimension that stand for all of it: a multiple of the extents
/// of blocks.
static constexpr int64_t kExtent = 128;

static SmallVector<int64_t> shrink(ArrayRef<int64_t> shape) {
  return llvm::map_to_vector(
      shape, [](int64_t extent) { return std::min(extent, kExtent); });
}

static SmallVector<int64_t> getShape(Type type) {
  if (auto scaled = dyn_cast<ScaledType>(type))
    return SmallVector<int64_t>(scaled.getShape());
  auto shaped = dyn_cast<RankedTensorType>(type);
  return shaped ? SmallVector<int64_t>(shaped.getShape())
                : SmallVector<int64_t>();
}

static bool areBlocksWhole(ArrayRef<int64_t> block) {
  return llvm::all_of(block, [](int64_t extent) {
    return extent == ScaledType::kWhole || kExtent % extent == 0;
  });
}

/// Whether each result of `op`, of splats, is one that has the same element for
/// any extents, and `getTypes` knows its type.
static bool isUniform(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto dense = dyn_cast<DenseElementsAttr>(constant.getValue());
    return !isa<ShapedType>(constant.getType()) || (dense && dense.isSplat());
  }
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    return !quantize.getSeed() &&
           areBlocksWhole(quantize.getResult().getType().getBlock());
  if (auto amax = dyn_cast<AmaxOp>(op))
    return areBlocksWhole(amax.getBlock());
  return isa<ComputeScaleOp>(op);
}

/// The types of `op` on operands of other extents, which `mapping` has.
static SmallVector<Type> getTypes(Operation *op, const IRMapping &mapping) {
  auto getSource = [&](Value value) {
    return getShape(mapping.lookup(value).getType());
  };
  return llvm::TypeSwitch<Operation *, SmallVector<Type>>(op)
      .Case([&](AmaxOp amax) {
        SmallVector<int64_t> shape = getSource(amax.getSource());
        for (auto [extent, block] : llvm::zip_equal(shape, amax.getBlock()))
          extent =
              block == ScaledType::kWhole ? 1 : llvm::divideCeil(extent, block);
        return SmallVector<Type>{amax.getAmax().getType().clone(shape)};
      })
      .Case([&](QuantizeOp quantize) {
        ScaledType type = quantize.getResult().getType();
        return SmallVector<Type>{
            type.cloneWith(getSource(quantize.getSource()), type.getBlock())};
      })
      .Default([&](Operation *other) {
        // Those of factors are the amaxes', but for a whole tensor's.
        SmallVector<int64_t> before = getShape(other->getOperand(0).getType());
        return llvm::map_to_vector(other->getResultTypes(), [&](Type type) {
          return getShape(type) == before
                     ? Type(cast<RankedTensorType>(type).clone(
                           getSource(other->getOperand(0))))
                     : type;
        });
      });
}

std::optional<ConstantComputation>
fp8::shrinkSplats(const ConstantComputation &computation, Block *block) {
  bool isLarge = false;
  for (Operation *op : computation.ops) {
    if (!isUniform(op))
      return std::nullopt;
    SmallVector<int64_t> shape = getShape(op->getResult(0).getType());
    isLarge |= shape != shrink(shape);
  }
  if (!isLarge)
    return std::nullopt;
  ConstantComputation result;
  IRMapping mapping;
  OpBuilder builder(computation.ops.front()->getContext());
  builder.setInsertionPointToEnd(block);
  for (Operation *op : computation.ops) {
    Operation *clone = builder.clone(*op, mapping);
    if (auto constant = dyn_cast<arith::ConstantOp>(clone)) {
      auto type = dyn_cast<RankedTensorType>(constant.getType());
      // A factor that is known stands for blocks, of which there are others.
      bool isSource = llvm::all_of(op->getUses(), [](OpOperand &use) {
        return isa<AmaxOp, QuantizeOp>(use.getOwner()) &&
               use.getOperandNumber() == 0;
      });
      if (type && !isSource && type.getNumElements() != 1)
        return std::nullopt;
      if (type) {
        auto dense = cast<DenseElementsAttr>(constant.getValue());
        auto small = dense.resizeSplat(type.clone(shrink(type.getShape())));
        constant.setValueAttr(small);
        constant.getResult().setType(small.getType());
      }
    } else {
      for (auto [value, type] :
           llvm::zip_equal(clone->getResults(), getTypes(op, mapping)))
        value.setType(type);
    }
    result.ops.push_back(clone);
  }
  for (Value value : computation.results)
    result.results.push_back(mapping.lookup(value));
  return result;
}

bool fp8::expandSplats(const ConstantComputation &computation,
                       MutableArrayRef<TypedAttr> parts) {
  size_t index = 0;
  for (Value result : computation.results)
    for (RankedTensorType type : getPartTypes(result.getType())) {
      auto dense = dyn_cast<DenseElementsAttr>(parts[index]);
      if (!dense || !dense.isSplat())
        return false;
      parts[index++] = dense.resizeSplat(type);
    }
  return true;
}

//===- FP8StateOps.cpp - Verifiers of the operations on scaling state -----===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"

using namespace mlir;
using namespace mlir::fp8;

static bool hasOneElement(RankedTensorType type) {
  return type.hasStaticShape() && type.getNumElements() == 1;
}

LogicalResult ReadScaleOp::verify() {
  // read_scale_c1
  if (!hasOneElement(getScale().getType()))
    return emitOpError("expected scale to have one element, but got ")
           << getScale().getType();
  return success();
}

LogicalResult ReadSeedOp::verify() {
  // read_seed_c1
  if (getSeed().getType().getShape() != ArrayRef<int64_t>{kNumWords})
    return emitOpError("expected seed to be tensor<4xi32>, but got ")
           << getSeed().getType();
  return success();
}

LogicalResult ReadAmaxOp::verify() {
  // read_amax_c1
  if (!hasOneElement(getAmax().getType()))
    return emitOpError("expected amax to have one element, but got ")
           << getAmax().getType();
  return success();
}

LogicalResult RecordAmaxOp::verify() {
  // record_amax_c1
  if (!hasOneElement(getAmax().getType()))
    return emitOpError("expected amax to have one element, but got ")
           << getAmax().getType();
  // record_amax_c2
  if (!getCounts().empty() && getCounts().size() != 2)
    return emitOpError("expected counts to be underflow and saturation, but "
                       "got ")
           << getCounts().size() << " of them";
  // record_amax_c3
  if (getInPlace() && !getCounts().empty())
    return emitOpError("expected no counts with in_place, but got ")
           << getCounts().size() << " of them";
  return success();
}

static LogicalResult verifyCached(Operation *op, ScaledType type) {
  if (!type.getCacheSize())
    return op->emitOpError(
               "expected a static shape, one f32 scale factor and codes "
               "of 8 bits, but got ")
           << type;
  return success();
}

LogicalResult StoreCachedOp::verify() {
  // store_cached_c1
  return verifyCached(*this, getSource().getType());
}

LogicalResult LoadCachedOp::verify() {
  // load_cached_c1
  return verifyCached(*this, getResult().getType());
}

LogicalResult UpdateStateOp::verify() {
  // update_state_c1
  if (!getTable().getUpdate())
    return emitOpError("expected the recipe of the table to learn, as "
                       "#fp8.delayed, but got ")
           << getTable().getRecipe();
  return success();
}

LogicalResult UpdateScalesOp::inferReturnTypes(MLIRContext *,
                                               std::optional<Location>,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &results) {
  results.push_back(adaptor.getScale().getType());
  llvm::append_range(results, adaptor.getState().getTypes());
  return success();
}

LogicalResult UpdateScalesOp::verify() {
  StateTableAttr table = getTable();
  // update_scales_c3
  StateUpdateAttrInterface update = table.getUpdate();
  if (!update)
    return emitOpError("expected the recipe of the table to learn, as "
                       "#fp8.delayed, but got ")
           << table.getRecipe();
  // update_scales_c1
  int64_t slots = table.getNumSlots();
  if (getScale().getType().getShape() != ArrayRef{slots})
    return emitOpError("expected scale and amax to have one element for each "
                       "of the ")
           << slots << " slots, but got " << getScale().getType();
  // update_scales_c2
  SmallVector<StateTensor> expected = update.getStateTensors(slots);
  if (getState().size() != expected.size())
    return emitOpError("expected state to be ")
           << expected.size() << " tensors, but got " << getState().size();
  for (auto [tensor, type] : llvm::zip_equal(expected, getState().getTypes()))
    if (type != tensor.type)
      return emitOpError("expected ")
             << tensor.name << " to be " << tensor.type << ", but got " << type;
  return success();
}

//===- FP8CollectiveOps.cpp - What ranks share ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8CollectiveOps.h"

using namespace mlir;
using namespace mlir::fp8;

#define GET_OP_CLASSES
#include "fp8/IR/FP8CollectiveOps.cpp.inc"

StringAttr fp8::getAmaxGroup(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto group = op->getAttrOfType<StringAttr>(kAmaxGroupAttrName))
      return group;
  return {};
}

static LogicalResult verifyGroup(Operation *op, StringRef group) {
  if (group.empty())
    return op->emitOpError("expected group to have a name, but got \"\"");
  if (group.contains('\0'))
    return op->emitOpError("expected the name of group to have no NUL");
  return success();
}

LogicalResult
AllReduceAmaxOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                  Adaptor adaptor,
                                  SmallVectorImpl<Type> &results) {
  if (auto type = dyn_cast<RankedTensorType>(adaptor.getAmax().getType()))
    results.push_back(type);
  return success();
}

void AllReduceAmaxOp::getEffects(
    SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), CollectiveOrder::get());
  if (!isa<MemRefType>(getAmax().getType()))
    return;
  effects.emplace_back(MemoryEffects::Read::get(), &getAmaxMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getAmaxMutable());
}

LogicalResult AllReduceAmaxOp::verify() {
  // all_reduce_amax_c1
  if (failed(verifyGroup(*this, getGroup())))
    return failure();
  // all_reduce_amax_c2
  if (getSize() && static_cast<int64_t>(*getSize()) < 1)
    return emitOpError("expected size to be at least 1, but got ")
           << static_cast<int64_t>(*getSize());
  // all_reduce_amax_c3
  if (getFirstCall() && !isa<MemRefType>(getAmax().getType()))
    return emitOpError("expected a memref with first_call, but got ")
           << getAmax().getType();
  return success();
}

/// A group of one, or what the same group has reduced.
LogicalResult AllReduceAmaxOp::fold(FoldAdaptor,
                                    SmallVectorImpl<OpFoldResult> &results) {
  if (getReduced().empty())
    return failure();
  auto inner = getAmax().getDefiningOp<AllReduceAmaxOp>();
  bool isReduced = inner && inner.getGroup() == getGroup();
  if (!isReduced && getSize() != uint64_t{1})
    return failure();
  results.push_back(getAmax());
  return success();
}

LogicalResult AllReduceStateOp::verify() {
  // all_reduce_state_c1
  return verifyGroup(*this, getGroup());
}

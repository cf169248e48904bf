//===- RecordInPlace.cpp - Amaxes that kernels raise in the state ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/IR/FP8GPUOps.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/Matchers.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_RECORDINPLACEPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct RecordInPlacePass : fp8::impl::RecordInPlacePassBase<RecordInPlacePass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// The destination of the launch that raises the amax from zero, null if
/// something else computes it.
static OpOperand *getRaised(RecordAmaxOp op) {
  auto launch = op.getAmax().getDefiningOp<LaunchOp>();
  if (!launch || !op.getAmax().hasOneUse() || !op.getCounts().empty() ||
      launch->getBlock() != op->getBlock())
    return nullptr;
  OpOperand *destination =
      launch.getTiedOpOperand(cast<OpResult>(op.getAmax()));
  auto fill = destination->get().getDefiningOp<linalg::FillOp>();
  if (launch.getArgument(*destination).getAccess() != KernelAccess::Raise ||
      !fill || !matchPattern(fill.getInputs()[0], m_PosZeroFloat()))
    return nullptr;
  return destination;
}

/// Whether a result of `launch` is recorded in the same slot already, as far as
/// is known: two destinations are not the same memory.
static bool sharesSlot(LaunchOp launch, RecordAmaxOp op) {
  return llvm::any_of(launch.getOuts(), [&](Value out) {
    auto other = out.getDefiningOp<ReadAmaxOp>();
    if (!other || other.getState() != op.getState())
      return false;
    std::optional<int64_t> slot = getConstantIntValue(op.getSlot()),
                           taken = getConstantIntValue(other.getSlot());
    return !slot || !taken || *slot == *taken;
  });
}

/// Whether something between the two may update the state, or end the step:
/// what has a state, but for amaxes and codes of this step.
static bool crossesUpdate(LaunchOp launch, RecordAmaxOp op) {
  auto hasState = [](Operation *inner) {
    return llvm::any_of(inner->getOperandTypes(), llvm::IsaPred<StateType>) &&
                   !isa<ReadScaleOp, ReadAmaxOp, RecordAmaxOp, LoadCachedOp,
                        StoreCachedOp>(inner)
               ? WalkResult::interrupt()
               : WalkResult::advance();
  };
  for (Operation *other = launch->getNextNode(); other != op;
       other = other->getNextNode())
    if (other->walk(hasState).wasInterrupted())
      return true;
  return false;
}

void RecordInPlacePass::runOnOperation() {
  DominanceInfo dominance(getOperation());
  getOperation()->walk([&](RecordAmaxOp op) {
    OpOperand *destination = getRaised(op);
    if (!destination)
      return;
    auto launch = cast<LaunchOp>(destination->getOwner());
    Operation *slot = op.getSlot().getDefiningOp();
    bool isConstant = matchPattern(op.getSlot(), m_Constant());
    if (sharesSlot(launch, op) || crossesUpdate(launch, op) ||
        !dominance.properlyDominates(op.getState(), launch) ||
        !(isConstant || dominance.properlyDominates(op.getSlot(), launch)))
      return;
    OpBuilder b(launch);
    Value index = op.getSlot();
    if (isConstant)
      index = b.clone(*slot)->getResult(0);
    destination->set(ReadAmaxOp::create(b, op.getLoc(), op.getAmax().getType(),
                                        op.getState(), index));
    op.setInPlace(true);
    // What others record in the meantime would be lost; their order is free.
    op.getSlotMutable().assign(index);
    op->moveAfter(launch);
    ++numInPlace;
  });
}

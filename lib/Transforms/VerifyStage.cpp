//===- VerifyStage.cpp - What a phase promises to the next ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_VERIFYSTAGEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct VerifyStage : fp8::impl::VerifyStagePassBase<VerifyStage> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

static bool isContractionOfDequantizes(linalg::LinalgOp op) {
  return isFloatContraction(op) && llvm::all_of(op.getDpsInputs(), [](Value v) {
           return v.getDefiningOp<DequantizeOp>() != nullptr;
         });
}

static LogicalResult verifyImport(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !isFloatContraction(linalgOp))
    return success();
  if (!op->hasAttr(kNameAttrName) || !op->hasAttr(kRoleAttrName))
    return op->emitOpError("expected ")
           << kNameAttrName << " and " << kRoleAttrName
           << " after phase 'import': run fp8-annotate-gemms";
  return success();
}

static LogicalResult verifyRecipe(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  auto recipe = op->getAttrOfType<RecipeAttrInterface>(kRecipeAttrName);
  if (!linalgOp || !recipe || !op->hasAttr("fp8.accumulate"))
    return success();
  if (!isContractionOfDequantizes(linalgOp))
    return op->emitOpError("expected operands from fp8.dequantize after phase "
                           "'recipe'");
  return success();
}

static LogicalResult verifyScaling(Operation *op) {
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    if (quantize.isUnresolved())
      return op->emitOpError("expected a scale after phase 'scaling': run "
                             "fp8-infer-scales");
  return success();
}

static LogicalResult verifyFusion(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    if (isContractionOfDequantizes(linalgOp))
      return op->emitOpError("expected no contraction of two dequantizes after "
                             "phase 'fusion': run fp8-form-matmul");
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    for (Operation *other : quantize.getSource().getUsers())
      if (other != op &&
          OperationEquivalence::isEquivalentTo(
              op, other, OperationEquivalence::IgnoreLocations) &&
          op->getBlock() == other->getBlock())
        return op->emitOpError("expected one quantize for each value, scale "
                               "and type after phase 'fusion'");
  return verifyScaling(op);
}

static LogicalResult verifyBuffers(Operation *op) {
  for (TypeRange types :
       {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (isa<TensorType>(type))
        return op->emitOpError("expected no tensor after phase 'buffers', but "
                               "got ")
               << type;
  return success();
}

static LogicalResult verifyKernels(Operation *op) {
  if (isa_and_present<FP8Dialect>(op->getDialect()))
    return op->emitOpError("expected no fp8 operation after phase 'kernels'");
  return success();
}

static LogicalResult verifyHost(Operation *op) {
  if (!isa<ModuleOp>(op) &&
      !isa_and_present<LLVM::LLVMDialect>(op->getDialect()))
    return op->emitOpError("cannot be lowered to LLVM: it is left after phase "
                           "'host'");
  return success();
}

void VerifyStage::runOnOperation() {
  using Check = LogicalResult (*)(Operation *);
  const std::pair<StringRef, Check> checks[] = {
      {"import", verifyImport},   {"recipe", verifyRecipe},
      {"scaling", verifyScaling}, {"fusion", verifyFusion},
      {"buffers", verifyBuffers}, {"kernels", verifyKernels},
      {"host", verifyHost}};
  auto *check = llvm::find_if(
      checks, [&](const auto &entry) { return entry.first == stage; });
  if (check == std::end(checks)) {
    getOperation().emitError("expected stage to be one of import, recipe, "
                             "scaling, fusion, buffers, kernels and host, but "
                             "got '")
        << stage << "'";
    return signalPassFailure();
  }
  // One failure is enough to know: the first in program order.
  WalkResult result = getOperation().walk<WalkOrder::PreOrder>(
      [&](Operation *op) { return WalkResult(check->second(op)); });
  if (result.wasInterrupted())
    signalPassFailure();
}

//===- VerifyStage.cpp - What a phase promises to the next ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_VERIFYSTAGEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct VerifyStagePass : fp8::impl::VerifyStagePassBase<VerifyStagePass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

static bool isContractionOfDequantizes(linalg::LinalgOp op) {
  return isContraction(op) && llvm::all_of(op.getDpsInputs(), [](Value v) {
           return v.getDefiningOp<DequantizeOp>() != nullptr;
         });
}

static bool hasFunction(Operation *op) {
  return op->walk([](FunctionOpInterface) { return WalkResult::interrupt(); })
      .wasInterrupted();
}

static LogicalResult verifyImport(Operation *op) {
  // Later phases look for functions in the program alone, and have no scales
  // for others. Modules of a GPU's kernels are of another kind.
  if (isa<ModuleOp>(op) && op->getParentOp() && hasFunction(op))
    return op->emitOpError("expected functions in the program itself, but got "
                           "a module in it: compile each by itself");
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp || !isContraction(linalgOp))
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
  if (!linalgOp || !recipe || !op->hasAttr(kAccumulateAttrName))
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
  // Others of dequantizes are the user's own and stay in high precision.
  if (isa<linalg::ContractOp>(op) && op->hasAttr(kAccumulateAttrName))
    return op->emitOpError("expected no contraction with a recipe after phase "
                           "'fusion': run fp8-form-matmul");
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

/// Calls `check` on the type of every operand, result and block argument of
/// `op`.
static LogicalResult
verifyTypes(Operation *op, llvm::function_ref<LogicalResult(Type)> check) {
  SmallVector<Type> types(op->getOperandTypes());
  llvm::append_range(types, op->getResultTypes());
  for (Region &region : op->getRegions())
    for (Block &block : region)
      llvm::append_range(types, block.getArgumentTypes());
  return success(
      llvm::all_of(types, [&](Type type) { return succeeded(check(type)); }));
}

static LogicalResult verifyBuffers(Operation *op) {
  return verifyTypes(op, [&](Type type) -> LogicalResult {
    if (isa<TensorType>(type))
      return op->emitOpError("expected no tensor after phase 'buffers', but "
                             "got ")
             << type;
    return success();
  });
}

static LogicalResult verifyKernels(Operation *op) {
  // The host of a GPU calls what reduces over ranks in the last phase.
  if (isa<AllReduceAmaxOp>(op))
    return success();
  if (isa_and_present<FP8Dialect>(op->getDialect()))
    return op->emitOpError("expected no fp8 operation after phase 'kernels'");
  // What only moves codes is fine.
  if (!isa_and_present<arith::ArithDialect, math::MathDialect>(
          op->getDialect()) ||
      isa<arith::BitcastOp, arith::ConstantOp, arith::SelectOp>(op))
    return success();
  return verifyTypes(op, [&](Type type) -> LogicalResult {
    auto floatType = dyn_cast<FloatType>(getElementTypeOrSelf(type));
    if (floatType && floatType.getWidth() <= 8)
      return op->emitOpError("expected no arithmetic on ")
             << floatType << " after phase 'kernels'";
    return success();
  });
}

static LogicalResult verifyHost(Operation *op) {
  if (!isa<ModuleOp>(op) &&
      !isa_and_present<LLVM::LLVMDialect>(op->getDialect()))
    return op->emitOpError("cannot be lowered to LLVM: it is left after phase "
                           "'host'");
  return success();
}

void VerifyStagePass::runOnOperation() {
  using Check = LogicalResult (*)(Operation *);
  const std::pair<StringRef, Check> checks[] = {
      {"import", verifyImport},   {"recipe", verifyRecipe},
      {"scaling", verifyScaling}, {"fusion", verifyFusion},
      {"buffers", verifyBuffers}, {"kernels", verifyKernels},
      {"host", verifyHost}};
  auto *check = llvm::find_if(
      checks, [&](const auto &entry) { return entry.first == stage; });
  if (check == std::end(checks)) {
    emitError(getOperation().getLoc(),
              "expected stage to be one of import, recipe, "
              "scaling, fusion, buffers, kernels and host, but "
              "got '")
        << stage << "'";
    return signalPassFailure();
  }
  // Those who compile have no verifier after each pass.
  if (failed(verify(getOperation())))
    return signalPassFailure();
  // One failure is enough to know: the first in program order.
  WalkResult result = getOperation().walk<WalkOrder::PreOrder>(
      [&](Operation *op) { return WalkResult(check->second(op)); });
  if (result.wasInterrupted())
    signalPassFailure();
}

//===- LaunchKernels.cpp - Operations with a kernel to launches -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/IR/FP8GPUOps.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LAUNCHKERNELSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static FailureOr<LaunchOp> launch(OpBuilder &builder, KernelOpInterface op,
                                  SymbolRefAttr symbol,
                                  const KernelOperands &operands,
                                  SymbolTableCollection &symbols) {
  if (!symbol)
    return op->emitOpError("expected every entry of '")
           << kFewRowsAttrName << "' to have a kernel";
  Operation *kernel = symbols.lookupNearestSymbolFrom(op, symbol);
  auto description = kernel ? kernel->getAttrOfType<LaunchAttr>(kLaunchAttrName)
                            : LaunchAttr();
  if (!description)
    return op->emitOpError("expected a kernel with the attribute '")
           << kLaunchAttrName << "', but got " << symbol;
  return LaunchOp::create(
      builder, op.getLoc(), TypeRange(ValueRange(operands.outs)), symbol,
      description, operands.ins, operands.captures, operands.outs);
}

/// The results of the first of `choices` that has enough rows, or of `symbol`.
static FailureOr<SmallVector<Value>>
launch(OpBuilder &builder, KernelOpInterface op, ArrayRef<FewRowsAttr> choices,
       SymbolRefAttr symbol, Value rows, const KernelOperands &operands,
       SymbolTableCollection &symbols) {
  if (choices.empty()) {
    FailureOr<LaunchOp> launched =
        launch(builder, op, symbol, operands, symbols);
    if (failed(launched))
      return failure();
    return SmallVector<Value>(launched->getResults());
  }
  Location loc = op.getLoc();
  Value most =
      arith::ConstantIndexOp::create(builder, loc, choices[0].getMost());
  Value isFew = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle,
                                      rows, most);
  auto choice = scf::IfOp::create(builder, loc,
                                  TypeRange(ValueRange(operands.outs)), isFew,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  for (bool few : {true, false}) {
    builder.setInsertionPointToStart(few ? choice.thenBlock()
                                         : choice.elseBlock());
    FailureOr<SmallVector<Value>> results = launch(
        builder, op, few ? ArrayRef<FewRowsAttr>() : choices.drop_front(),
        few ? choices[0].getKernel() : symbol, rows, operands, symbols);
    if (failed(results))
      return failure();
    scf::YieldOp::create(builder, loc, *results);
  }
  return SmallVector<Value>(choice.getResults());
}

static LogicalResult launch(KernelOpInterface op,
                            SymbolTableCollection &symbols) {
  OpBuilder builder(op);
  KernelOperands operands = op.getKernelOperands(builder);
  SmallVector<FewRowsAttr> choices;
  if (auto fewRows = op->getAttrOfType<ArrayAttr>(kFewRowsAttrName))
    llvm::append_range(choices, fewRows.getAsRange<FewRowsAttr>());
  Value rows;
  if (!choices.empty()) {
    Value out = operands.outs.front();
    int64_t rank = cast<RankedTensorType>(out.getType()).getRank();
    if (rank < 2)
      return op->emitOpError("expected a first result with rows, as it has '")
             << kFewRowsAttrName << "', but got " << out.getType();
    rows = builder.createOrFold<tensor::DimOp>(op.getLoc(), out, rank - 2);
  }
  FailureOr<SmallVector<Value>> results = launch(
      builder, op, choices, op->getAttrOfType<SymbolRefAttr>(kKernelAttrName),
      rows, operands, symbols);
  if (failed(results))
    return failure();
  op->replaceAllUsesWith(op.buildResults(builder, *results));
  op.erase();
  return success();
}

/// Erases what nobody uses of that which uses `op`, other than kernels.
static void eraseDeadUsers(Operation *op) {
  SetVector<Operation *> users(op->user_begin(), op->user_end());
  for (Operation *user : users) {
    // It has its own turn, which may come later: blocks are in any order.
    if (user->hasAttr(kKernelAttrName))
      continue;
    eraseDeadUsers(user);
    if (isOpTriviallyDead(user))
      user->erase();
  }
}

namespace {
struct LaunchKernelsPass : fp8::impl::LaunchKernelsPassBase<LaunchKernelsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override {
    SmallVector<KernelOpInterface> ops;
    getOperation().walk([&](KernelOpInterface op) {
      if (op->hasAttr(kKernelAttrName))
        ops.push_back(op);
    });
    // Users first: what a kernel reads in place of an operand, as factors
    // before they are transposed, it finds through the operation that makes
    // that.
    SymbolTableCollection symbols;
    for (KernelOpInterface op : llvm::reverse(ops)) {
      eraseDeadUsers(op);
      if (isOpTriviallyDead(op))
        op->erase();
      else if (failed(launch(op, symbols)))
        return signalPassFailure();
    }
  }
};
} // namespace

//===- CheckExtents.cpp - Checks of what only shows at run time -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CHECKEXTENTSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Whether the verifier has seen all that a check would see.
static bool isVerified(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && !linalgOp.hasDynamicShape();
}

namespace {
struct CheckExtentsPass : fp8::impl::CheckExtentsPassBase<CheckExtentsPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void CheckExtentsPass::runOnOperation() {
  llvm::SmallPtrSet<Block *, 4> tiles;
  SmallVector<RuntimeVerifiableOpInterface> operations;
  getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForallOp>(op))
      if (loop->removeAttr(kTilesAttrName))
        tiles.insert(loop.getBody());
    // What an element decides, such as the row that it reads, is in a region of
    // its own.
    auto checked = dyn_cast<RuntimeVerifiableOpInterface>(op);
    if (checked && !isVerified(op) && !tiles.contains(op->getBlock()))
      operations.push_back(checked);
  });

  // To number a function's values takes as long as to verify it.
  if (operations.empty())
    return markAllAnalysesPreserved();
  // As upstream's pass says it, which numbers a function's values for each
  // message anew.
  AsmState state(getOperation(),
                 OpPrintingFlags().elideLargeElementsAttrs().skipRegions());
  auto message = [&](Operation *op, StringRef reason) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "ERROR: Runtime op verification failed\n";
    op->print(os, state);
    os << "\n^ " << reason << "\nLocation: ";
    op->getLoc().print(os);
    return text;
  };
  OpBuilder b(&getContext());
  for (RuntimeVerifiableOpInterface op : operations) {
    b.setInsertionPoint(op);
    op.generateRuntimeVerification(b, op.getLoc(), message);
    ++numChecked;
  }
}

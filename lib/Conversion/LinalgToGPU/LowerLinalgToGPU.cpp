//===- LowerLinalgToGPU.cpp - Structured operations to launches -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../LinalgToLoops/ScalarBody.h"
#include "Combiner.h"
#include "StridedKernels.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERLINALGTOGPUPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// A thread for each element of the parallel loops, in which the others run in
/// their order.
static void lowerToLaunch(RewriterBase &b, LaunchBuilder &launches,
                          linalg::LinalgOp op) {
  auto lowerOther = [&](linalg::LinalgOp other) {
    lowerToLaunch(b, launches, other);
  };
  std::optional<Combiner> combiner = Combiner::get(op);
  if (combiner && linalg::isaContractionOpInterface(op))
    return lowerContraction(b, launches, op, *combiner, lowerOther);
  ScalarBody body(b, op);
  bool isCarried = body.readsInits() || op.getNumReductionLoops() == 0;
  std::optional<StridedLoops> loops = StridedLoops::get(b, op);
  if (loops && combiner &&
      lowerReduction(b, launches, op, *loops, *combiner, lowerOther))
    return;
  if (loops && lowerTiles(b, launches, op, *loops))
    return;
  if (loops && isCarried && loops->getNumParallel() > 0)
    return lowerElements(b, launches, op, *loops);
  Location loc = op.getLoc();
  SmallVector<Range> ranges = op.createLoopRanges(b, loc);
  SmallVector<unsigned> parallel, reductions;
  op.getParallelDims(parallel);
  op.getReductionDims(reductions);
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim : parallel)
    sizes.push_back(ranges[dim].size);
  SmallVector<Value> indices =
      launches.build(loc, op->getName().stripDialect(), sizes);
  SmallVector<Value> ivs(ranges.size());
  for (auto [dim, index] : llvm::zip_equal(parallel, indices))
    ivs[dim] = index;
  // Outputs that a reduction only overwrites have no initial value to carry.
  if (!body.readsInits())
    for (unsigned dim : std::exchange(reductions, {})) {
      auto loop = scf::ForOp::create(
          b, loc, getValueOrCreateConstantIndexOp(b, loc, ranges[dim].offset),
          getValueOrCreateConstantIndexOp(b, loc, ranges[dim].size),
          getValueOrCreateConstantIndexOp(b, loc, ranges[dim].stride));
      b.setInsertionPointToStart(loop.getBody());
      ivs[dim] = loop.getInductionVar();
    }
  SmallVector<Value> values =
      body.buildLoops(ranges, reductions, ivs, body.loadInits(ivs));
  body.storeInits(values, ivs);
}

/// The one that fills `memref` with a constant for `op`, before anything else
/// sees it; null if there is none.
static linalg::FillOp findFill(linalg::LinalgOp op, OpOperand &init) {
  Value memref = init.get();
  auto argument = dyn_cast<BlockArgument>(memref);
  // What a caller gives may be elsewhere, too.
  bool isOwn = argument ? !op->getParentOfType<func::FuncOp>().isPublic() &&
                              argument.getOwner()->isEntryBlock()
                        : bool(memref.getDefiningOp<memref::AllocOp>());
  // It has to write all of it.
  if (!isOwn || !op.payloadUsesValueFromOperand(&init) ||
      !op.getMatchingIndexingMap(&init).isProjectedPermutation())
    return {};
  linalg::FillOp found;
  for (OpOperand &use : memref.getUses()) {
    Operation *user = use.getOwner();
    if (user == op && &use == &init)
      continue;
    auto fill = dyn_cast<linalg::FillOp>(user);
    if (!found && fill && fill->getBlock() == op->getBlock() &&
        fill->isBeforeInBlock(op) &&
        fill.value().getDefiningOp<arith::ConstantOp>() &&
        fill.value().getType() == getElementTypeOrSelf(memref)) {
      found = fill;
      continue;
    }
    Operation *later = op->getBlock()->findAncestorOpInBlock(*user);
    if (user == op || !later || !op->isBeforeInBlock(later))
      return {};
  }
  return found;
}

/// Lets reductions begin with the constants that their outputs are filled with
/// first: no kernel has to, and none reads them.
static void foldFills(Operation *root) {
  SmallVector<linalg::FillOp> fills;
  root->walk([&](linalg::LinalgOp op) {
    if (op.getNumReductionLoops() == 0 || !op.hasPureBufferSemantics() ||
        !op->getParentOfType<func::FuncOp>())
      return;
    SmallVector<Attribute> values;
    bool isFilled = false;
    for (OpOperand &init : op.getDpsInitsMutable()) {
      linalg::FillOp fill = findFill(op, init);
      values.push_back(UnitAttr::get(op->getContext()));
      if (!fill)
        continue;
      values.back() =
          fill.value().getDefiningOp<arith::ConstantOp>().getValue();
      fills.push_back(fill);
      isFilled = true;
    }
    if (isFilled)
      op->setAttr(kFilledName, ArrayAttr::get(op->getContext(), values));
  });
  for (linalg::FillOp fill : fills)
    fill->erase();
}

/// Whether `op` reads or writes an element through its address, which is one of
/// the device's. Addresses themselves, those of a state's rows, are in memory
/// of the host.
static bool isElementAccess(Operation *op) {
  auto load = dyn_cast<LLVM::LoadOp>(op);
  return isa<LLVM::StoreOp>(op) ||
         (load && !isa<LLVM::LLVMPointerType>(load.getType()));
}

/// What keeps a thread from running the iterations of `op`, which are to work
/// on numbers and on elements in memory; null if nothing does.
static Operation *findNoScalarCode(scf::ForallOp op) {
  Operation *found = nullptr;
  op.getBody()->walk([&](Operation *inner) {
    if (isa<memref::LoadOp, memref::StoreOp, scf::ForOp, scf::IfOp,
            scf::WhileOp, scf::InParallelOp>(inner) ||
        isElementAccess(inner) || isPure(inner))
      return WalkResult::advance();
    found = inner;
    return WalkResult::interrupt();
  });
  return found;
}

/// Whether the host cannot run `op`, which has addresses of the device.
static bool hasElementAccess(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isElementAccess(inner) ? WalkResult::interrupt()
                                      : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether `op` is a loop whose iterations can be threads; failure if they have
/// to be and cannot.
static FailureOr<bool> isScalarLoop(Operation *op) {
  auto loop = dyn_cast<scf::ForallOp>(op);
  if (!loop || !loop.getOutputs().empty())
    return false;
  Operation *obstacle = findNoScalarCode(loop);
  if (obstacle && hasElementAccess(loop))
    return obstacle->emitOpError("expected arithmetic on numbers in a loop "
                                 "over slots, which threads of a GPU run");
  return !obstacle;
}

/// A thread for each iteration, which do not depend on each other.
static void lowerToLaunch(RewriterBase &b, LaunchBuilder &launches,
                          scf::ForallOp op) {
  Location loc = op.getLoc();
  AffineExpr lower, upper, step;
  bindSymbols(b.getContext(), lower, upper, step);
  SmallVector<OpFoldResult> sizes;
  for (auto [first, end, distance] : llvm::zip_equal(
           op.getMixedLowerBound(), op.getMixedUpperBound(), op.getMixedStep()))
    sizes.push_back(affine::makeComposedFoldedAffineApply(
        b, loc, (upper - lower).ceilDiv(step), {first, end, distance}));
  SmallVector<Value> indices = launches.build(loc, "forall", sizes);
  SmallVector<Value> ivs;
  for (auto [index, first, distance] :
       llvm::zip_equal(indices, op.getMixedLowerBound(), op.getMixedStep())) {
    Value start = getValueOrCreateConstantIndexOp(b, loc, first);
    Value stride = getValueOrCreateConstantIndexOp(b, loc, distance);
    ivs.push_back(arith::AddIOp::create(
        b, loc, start, arith::MulIOp::create(b, loc, index, stride)));
  }
  b.eraseOp(op.getTerminator());
  b.inlineBlockBefore(op.getBody(), b.getInsertionBlock(),
                      b.getInsertionPoint(), ivs);
}

/// The host cannot write to the device's memory.
static void lowerToLaunch(RewriterBase &b, LaunchBuilder &launches,
                          memref::StoreOp op) {
  launches.build(op.getLoc(), "store", {});
  memref::StoreOp::create(b, op.getLoc(), op.getValue(), op.getMemRef(),
                          op.getIndices());
}

namespace {
struct LowerLinalgToGPUPass
    : fp8::impl::LowerLinalgToGPUPassBase<LowerLinalgToGPUPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void LowerLinalgToGPUPass::runOnOperation() {
  IRRewriter rewriter(&getContext());
  replaceStridedCopies(rewriter, getOperation());
  foldFills(getOperation());
  SmallVector<Operation *> ops;
  WalkResult result =
      getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
        auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
        FailureOr<bool> isLoop = isScalarLoop(op);
        if (failed(isLoop))
          return WalkResult::interrupt();
        bool isLaunch =
            *isLoop || (linalgOp && linalgOp.hasPureBufferSemantics());
        if (isLaunch ||
            (isa<memref::StoreOp>(op) && !op->getParentOfType<gpu::LaunchOp>()))
          ops.push_back(op);
        // What is inside runs on the GPU with it.
        return isLaunch ? WalkResult::skip() : WalkResult::advance();
      });
  if (result.wasInterrupted())
    return signalPassFailure();
  LaunchBuilder launches(rewriter);
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (linalgOp)
      lowerToLaunch(rewriter, launches, linalgOp);
    else if (auto loop = dyn_cast<scf::ForallOp>(op))
      lowerToLaunch(rewriter, launches, loop);
    else
      lowerToLaunch(rewriter, launches, cast<memref::StoreOp>(op));
    rewriter.eraseOp(op);
  }
}

//===- FreeBuffers.cpp - Memory is freed after its last use ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FREEBUFFERSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using bufferization::BufferizationDialect;

/// Whether `use` may give the memory to a value that is not among its aliases,
/// or keep its address.
static bool isEscape(OpOperand &use) {
  Operation *user = use.getOwner();
  if (isa<RegionBranchOpInterface, RegionBranchTerminatorOpInterface,
          ViewLikeOpInterface, arith::SelectOp>(user))
    return isa<func::ReturnOp>(user);
  if (auto store = dyn_cast<memref::StoreOp>(user))
    return use.get() == store.getValueToStore();
  return user->hasTrait<OpTrait::IsTerminator>() ||
         isa<memref::DeallocOp, memref::ExtractAlignedPointerAsIndexOp,
             UnrealizedConversionCastOp>(user) ||
         llvm::any_of(user->getResultTypes(), llvm::IsaPred<BaseMemRefType>);
}

/// The last operation of the block that uses `op`'s memory, `op` itself if none
/// does; null if that is not seen.
static Operation *findLastUser(memref::AllocOp op,
                               const BufferViewFlowAnalysis &aliases) {
  Operation *last = op;
  for (Value alias : aliases.resolve(op))
    for (OpOperand &use : alias.getUses()) {
      Operation *user = op->getBlock()->findAncestorOpInBlock(*use.getOwner());
      if (!user || isEscape(use))
        return nullptr;
      if (last->isBeforeInBlock(user))
        last = user;
    }
  // What leaves the block is another's.
  return last->hasTrait<OpTrait::IsTerminator>() ? nullptr : last;
}

/// What a view, or its descriptor taken apart, is of.
static Value findMemory(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      value = view.getViewSource();
    else if (auto parts = dyn_cast<memref::ExtractStridedMetadataOp>(op))
      value = parts.getSource();
    else
      break;
  }
  return value;
}

/// Erases what the program frees itself: that has to come after all that reads
/// the memory, which passes may have moved. Results of calls are the caller's,
/// and freed by the pass that follows.
static LogicalResult eraseDeallocations(Operation *root) {
  SmallVector<memref::DeallocOp> found;
  root->walk([&](memref::DeallocOp op) {
    if (!op->hasAttr(BufferizationDialect::kManualDeallocation))
      found.push_back(op);
  });
  for (memref::DeallocOp op : found) {
    if (!isa_and_present<memref::AllocOp, func::CallOp>(
            findMemory(op.getMemref()).getDefiningOp()))
      return op.emitOpError("expected memory of a memref.alloc or func.call of "
                            "this function, but got another's");
    op.erase();
  }
  return success();
}

namespace {
struct FreeBuffersPass : fp8::impl::FreeBuffersPassBase<FreeBuffersPass> {
  using Base::Base;

  void runOnOperation() override {
    if (failed(eraseDeallocations(getOperation())))
      return signalPassFailure();
    StringRef done = BufferizationDialect::kManualDeallocation;
    auto unit = UnitAttr::get(&getContext());
    BufferViewFlowAnalysis aliases(getOperation());
    SmallVector<std::pair<memref::AllocOp, Operation *>> found;
    getOperation()->walk([&](memref::AllocOp op) {
      if (Operation *last =
              op->hasAttr(done) ? nullptr : findLastUser(op, aliases))
        found.emplace_back(op, last);
    });
    for (auto [op, last] : found) {
      OpBuilder b(&getContext());
      b.setInsertionPointAfter(last);
      auto dealloc = memref::DeallocOp::create(b, op.getLoc(), op);
      op->setAttr(done, unit);
      dealloc->setAttr(done, unit);
      ++numFreed;
    }
  }
};
} // namespace

//===- SinkProducers.cpp - Tensors made just before they are needed -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/TensorMemory.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-sink-producers"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SINKPRODUCERSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// What the amaxes of `op` are told: a maximum does not depend on the order, so
/// that it goes where its amax is made. Counts are sums of floats, which do.
static SmallVector<RecordAmaxOp> getRecords(Operation *op) {
  SmallVector<RecordAmaxOp> records;
  for (Operation *user : op->getUsers())
    if (auto record = dyn_cast<RecordAmaxOp>(user);
        record && record->getBlock() == op->getBlock() &&
        record.getCounts().empty())
      records.push_back(record);
  return records;
}

/// The first operation of its block that needs a result of `op`, or has a
/// region that does, but for `records`.
static Operation *getFirstUser(Operation *op, ArrayRef<RecordAmaxOp> records) {
  Operation *first = nullptr;
  for (Operation *user : op->getUsers()) {
    Operation *inBlock = op->getBlock()->findAncestorOpInBlock(*user);
    if (!inBlock || llvm::is_contained(records, inBlock))
      continue;
    if (!first || inBlock->isBeforeInBlock(first))
      first = inBlock;
  }
  return first;
}

/// The next computation from `op` on: views have sunk to their users.
static Operation *getComputation(Operation *op) {
  while (isViewOfTensor(op) || isa<RecordAmaxOp>(op))
    op = op->getNextNode();
  return op;
}

/// Whether moving `op` to before `user` lowers the peak in between, and raises
/// it nowhere: what `op` frees lives until then, when it needs no more room
/// than what the user makes after it.
static bool lowersMemory(Operation *op, Operation *user,
                         const MemoryProfile &profile) {
  std::optional<double> made = getMadeBytes(op), freed = getFreedBytes(op);
  if (!made || !freed || *made <= *freed)
    return false;
  Operation *next = getComputation(user);
  if (*freed > getMadeBytes(next).value_or(0))
    return false;
  // Where the user has most, the order makes no difference, and stays.
  return profile.getPeak(getComputation(op->getNextNode()), next) >
         profile.getAllocated(next);
}

/// Whether records may pass everything from `op` to `user`.
static bool mayPass(Operation *op, Operation *user) {
  for (Operation *other = op->getNextNode(); other != user;
       other = other->getNextNode())
    if (!isa<RecordAmaxOp>(other) && !isMemoryEffectFree(other))
      return false;
  return true;
}

namespace {
struct SinkProducersPass : fp8::impl::SinkProducersPassBase<SinkProducersPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) {
      if (isa<FunctionOpInterface, RegionBranchOpInterface>(
              block->getParentOp()))
        blocks.push_back(block);
    });
    for (Block *block : blocks)
      sinkAll(*block);
  }

  void sinkAll(Block &block) {
    std::optional<MemoryProfile> profile = MemoryProfile::get(block);
    // Users come first: what is made for one that moves follows it.
    SmallVector<Operation *> ops;
    for (Operation &op : llvm::reverse(block.without_terminator()))
      ops.push_back(&op);
    for (Operation *op : ops)
      if (profile && sink(op, *profile)) {
        LDBG() << "made just before it is needed: "
               << OpWithFlags(op, OpPrintingFlags().skipRegions());
        ++numSunk;
        profile = MemoryProfile::get(block);
      }
  }

  /// Whether `op` moved and computes something. Views cost nothing, and follow
  /// their users.
  bool sink(Operation *op, const MemoryProfile &profile) {
    if (!isMemoryEffectFree(op) || op->hasTrait<OpTrait::ConstantLike>())
      return false;
    SmallVector<RecordAmaxOp> records = getRecords(op);
    Operation *user = getFirstUser(op, records);
    if (!user)
      return false;
    if (isViewOfTensor(op)) {
      op->moveBefore(user);
      return false;
    }
    if (!lowersMemory(op, user, profile))
      return false;
    if (!records.empty() && !mayPass(op, user)) {
      LDBG() << "its amax is recorded before an effect: " << *op;
      return false;
    }
    op->moveBefore(user);
    for (RecordAmaxOp record : llvm::reverse(records))
      record->moveAfter(op);
    return true;
  }
};
} // namespace

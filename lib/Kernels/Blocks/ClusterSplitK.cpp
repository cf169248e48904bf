//===- ClusterSplitK.cpp - Sums over parts of K, in a cluster -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ClusterSplitK.h"

using namespace mlir;
using namespace mlir::fp8;

void ClusterSplitK::initialize() {
  int64_t warps = shape.getThreads() / 32;
  NVVM::MBarrierInitOp::create(b, getFull(),
                               b.i32((shape.getParts() - 1) * warps),
                               /*predicate=*/Value());
  NVVM::MBarrierInitOp::create(b, getEmpty(), b.i32(warps),
                               /*predicate=*/Value());
}

Value ClusterSplitK::getSlot(Value number, Value own) const {
  Value values = b.mul(number, shape.registers * shape.getThreads());
  return b.offset(slots, b.mul(b.add(values, own), 4));
}

Value ClusterSplitK::getPlace(Value slot, int64_t i) const {
  return b.offset(slot, b.i32(i * shape.getThreads() * 4));
}

Value ClusterSplitK::mapTo(Value place, Value block) const {
  auto remote = LLVM::LLVMPointerType::get(
      b.getContext(),
      static_cast<unsigned>(NVVM::NVVMMemorySpace::SharedCluster));
  return NVVM::MapaOp::create(b, remote, place, block);
}

void ClusterSplitK::wait(Value barrier, Value phase) const {
  scf::WhileOp::create(
      b, TypeRange(), ValueRange(),
      [&](OpBuilder &, Location, ValueRange) {
        Value done = NVVM::MBarrierTryWaitOp::create(
            b, b.getI1Type(), barrier, phase, /*ticks=*/Value(),
            NVVM::MemScopeKind::CLUSTER);
        scf::ConditionOp::create(b, b.bitXor(done, b.i1(true)), ValueRange());
      },
      [&](OpBuilder &, Location, ValueRange) { scf::YieldOp::create(b); });
}

void ClusterSplitK::reduce(Value phase, Value thread, ValueRange accumulators,
                           llvm::function_ref<void(ValueRange sums)> first) {
  int64_t threads = shape.getThreads();
  Value own = thread, part = rank;
  if (shape.divisions > 1) {
    own = b.rem(thread, threads);
    part = b.add(b.mul(rank, shape.divisions), b.div(thread, threads));
  }
  Value lane = b.bitAnd(thread, 31);
  auto arrive = [&](Value barrier, Value block) {
    NVVM::MBarrierArriveOp::create(b, /*res=*/Type(), mapTo(barrier, block),
                                   /*count=*/Value(),
                                   NVVM::MemScopeKind::CLUSTER);
  };
  auto leave = [&] {
    wait(getEmpty(), b.bitXor(phase, b.i32(1)));
    Value slot = mapTo(getSlot(b.sub(part, b.i32(1)), own), b.i32(0));
    for (auto [i, value] : llvm::enumerate(accumulators))
      b.store(value, getPlace(slot, i));
    NVVM::SyncWarpOp::create(b, b.i32(-1));
    b.ifThen(b.equal(lane, 0), [&] { arrive(getFull(), b.i32(0)); });
  };
  auto add = [&] {
    wait(getFull(), phase);
    SmallVector<Value> sums(accumulators);
    for (int64_t number = 0; number + 1 < shape.getParts(); ++number) {
      Value slot = getSlot(b.i32(number), own);
      for (auto [i, sum] : llvm::enumerate(sums))
        sum = arith::AddFOp::create(b, sum,
                                    b.load(getPlace(slot, i), b.getF32Type()));
    }
    // What has been read is in registers.
    NVVM::SyncWarpOp::create(b, b.i32(-1));
    // LLVM may move what maps an address in front of the condition.
    Value block = b.bitAnd(lane, shape.blocks - 1);
    b.ifThen(b.equal(block, lane), [&] { arrive(getEmpty(), block); });
    first(sums);
  };
  b.ifThenElse(b.equal(part, 0), add, leave);
}

//===- MatmulContext.cpp - What all parts of a matmul kernel share --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulContext.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

MatmulContext::MatmulContext(KernelBuilder &b, const MatmulSpec &spec,
                             GemmConfigAttr config, const MatmulLayout &layout,
                             llvm::StringMap<Value> params, Value shared)
    : MatmulParams(b, spec, std::move(params)), config(config), layout(layout),
      shared(shared) {
  thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  warp = b.uniform(b.shiftRight(thread, 5));
  lane = b.bitAnd(thread, 31);
  if (config.isCTAPair())
    rank = NVVM::ClusterId::create(b, b.getI32Type());
}

Value MatmulContext::getOfFirst(Value pointer) const {
  if (!rank)
    return pointer;
  return NVVM::MapaOp::create(b, LLVM::LLVMPointerType::get(b.getContext(), 7),
                              pointer, b.i32(0));
}

Value MatmulContext::getSums(RingPosition at) const {
  Value set = layout.sharedColumns ? at.phase : at.stage;
  return b.add(memory, b.mul(set, layout.accumulatorStride));
}

TileScheduler::Rank MatmulContext::getTileRank() const {
  if (config.getSwapAb())
    return {Value(), rank};
  return {rank, Value()};
}

void MatmulContext::synchronize() const {
  if (!rank) {
    NVVM::BarrierOp::create(b);
    return;
  }
  NVVM::ClusterArriveOp::create(b, /*aligned=*/UnitAttr());
  NVVM::ClusterWaitOp::create(b, /*aligned=*/UnitAttr());
}

Value MatmulContext::getShared(int64_t offset) const {
  return b.offset(shared, b.i32(offset));
}

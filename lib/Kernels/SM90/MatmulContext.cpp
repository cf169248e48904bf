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

MatmulContext::MatmulContext(KernelBuilder &b, const MatmulSpec &spec,
                             GemmConfigAttr config, const MatmulLayout &layout,
                             LLVM::LLVMFuncOp function, Value shared)
    : b(b), spec(spec), config(config), layout(layout), shared(shared) {
  for (auto [param, argument] :
       llvm::zip_equal(getMatmulParams(b.getContext(), spec, config),
                       function.getArguments()))
    params[param.name] = argument;
  thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  warp = b.uniform(b.shiftRight(thread, 5));
  lane = b.bitAnd(thread, 31);
}

void MatmulContext::synchronize() const {
  if (!isClustered()) {
    NVVM::BarrierOp::create(b);
    return;
  }
  NVVM::ClusterArriveOp::create(b, /*aligned=*/UnitAttr());
  NVVM::ClusterWaitOp::create(b, /*aligned=*/UnitAttr());
}

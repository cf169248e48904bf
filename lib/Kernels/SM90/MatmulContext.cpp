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
  // Through a shuffle, so that ptxas knows it to be uniform in a warp.
  warp = NVVM::ShflOp::create(
      b, b.getI32Type(), b.i32(-1), b.shiftRight(thread, 5), b.i32(0),
      b.i32(31), NVVM::ShflKind::idx, /*return_value_and_is_valid=*/UnitAttr());
  lane = b.bitAnd(thread, 31);
}

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
}

Value MatmulContext::getShared(int64_t offset) const {
  return b.offset(shared, b.i32(offset));
}

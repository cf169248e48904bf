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
    : MatmulBlock(b, spec, config.getSwapAb(), config.getCtaGroup(),
                  std::move(params), shared),
      config(config), layout(layout) {}

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

Value MatmulContext::getShared(int64_t offset) const {
  return b.offset(shared, b.i32(offset));
}

//===- AttentionBlock.cpp - What parts of an attention share --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBlock.h"
#include "../Blocks/KernelSignature.h"

using namespace mlir;
using namespace mlir::fp8;

AttentionBlock fp8::getBlock(KernelBuilder &b, const AttentionSpec &spec,
                             const llvm::StringMap<Value> &params,
                             const AttentionTiles &tiles, int64_t tileK) {
  Value shared = LLVM::AddressOfOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 3),
      KernelSignature::kSharedName);
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  return {b,
          spec,
          params,
          tiles,
          tileK,
          shared,
          LLVM::PtrToIntOp::create(b, b.getI32Type(), shared),
          thread,
          b.uniform(b.shiftRight(thread, 5)),
          b.bitAnd(thread, 31)};
}

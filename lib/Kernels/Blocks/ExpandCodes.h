//===- ExpandCodes.h - Codes of 8 bits by integers --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_EXPANDCODES_H
#define FP8_LIB_KERNELS_BLOCKS_EXPANDCODES_H

#include "KernelBuilder.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::fp8 {

/// Whether GPUs of the compute capability convert codes of 8 bits, and multiply
/// them.
constexpr bool hasCodes(int64_t computeCapability) {
  return computeCapability >= 89;
}

/// Four codes in a word (i32) as two words of two f16, which have all of their
/// values: the first two, then the others.
std::array<Value, 2> expandCodes(KernelBuilder &b, Value word, Type type);

/// The same as two words of two bf16 or f16, by a product that is exact.
std::array<Value, 2> convertCodes(KernelBuilder &b, Value word, Type type,
                                  Type wide);

/// Computes what conversions to codes of 8 bits and from them do by integers,
/// for a GPU without them.
void expandConversions(LLVM::LLVMFuncOp function);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_EXPANDCODES_H

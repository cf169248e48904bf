//===- Wgmma.h - Warpgroup matrix multiply-accumulate on 8-bit floats -*- C++
//-*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_WGMMA_H
#define FP8_LIB_KERNELS_SM90_WGMMA_H

#include "../Blocks/KernelBuilder.h"

namespace mlir::fp8 {

/// D (64 x cols, f32) (+)= A (64 x 128) * B (cols x 128)^T from shared memory,
/// both K-major and written by bulk copies with the 128-byte swizzle. NVGPU's
/// warpgroup ops cannot express it: they take B for row-major KxN.
class Wgmma {
public:
  Wgmma(KernelBuilder &b, int64_t cols, Type aType, Type bType);

  /// The accumulator of one thread: cols / 2 registers. Thread t of warp w and
  /// lane l holds in register i the element of row 16 w + l / 4 + 8 ((i >> 1) &
  /// 1) and column 8 (i >> 2) + 2 (l & 3) + (i & 1) (PTX ISA, "Register
  /// Fragments for wgmma.mma_async.m64nNk32").
  LLVM::LLVMStructType getAccumulatorType() const { return accumulatorType; }
  int64_t getNumRegisters() const { return cols / 2; }
  Value getUndefined(KernelBuilder &b);
  Value getZeros(KernelBuilder &b);
  SmallVector<Value> getRegisters(KernelBuilder &b, Value accumulator);

  /// The low word of the descriptor of the matrix whose first row lies at byte
  /// `address` (i32) of shared memory.
  static Value getDescriptor(KernelBuilder &b, Value address);
  /// `descriptor` moved by `bytes`, a multiple of 16, the same for the warp.
  static Value advance(KernelBuilder &b, Value descriptor, Value bytes);
  static Value advance(KernelBuilder &b, Value descriptor, int64_t bytes);

  /// Multiplies one K block of 128. `overwrite` ignores what the accumulator
  /// held.
  Value multiply(KernelBuilder &b, Value aDescriptor, Value bDescriptor,
                 Value accumulator, bool overwrite);

private:
  int64_t cols;
  NVVM::WGMMATypes aType, bType;
  LLVM::LLVMStructType accumulatorType;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_SM90_WGMMA_H

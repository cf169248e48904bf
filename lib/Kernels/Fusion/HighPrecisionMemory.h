//===- HighPrecisionMemory.h - Memory without quantization ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_HIGHPRECISIONMEMORY_H
#define FP8_LIB_KERNELS_FUSION_HIGHPRECISIONMEMORY_H

namespace mlir {
class Block;
namespace fp8 {
class MemoryProfile;

/// The most bytes that `block`, whose own profile is given, would have at a
/// time if nothing in it were quantized: in place of codes, in whatever orders
/// and as long as any of them is needed, what they are of.
double getPeakInHighPrecision(Block &block, const MemoryProfile &profile);

} // namespace fp8
} // namespace mlir

#endif // FP8_LIB_KERNELS_FUSION_HIGHPRECISIONMEMORY_H

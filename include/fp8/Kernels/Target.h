//===- Target.h - What kernels need to know of a GPU ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_TARGET_H
#define FP8_KERNELS_TARGET_H

#include <cstdint>

namespace mlir::fp8 {

/// Facts of an architecture; CUDA C++ Programming Guide, table of technical
/// specifications by compute capability.
struct GPUTarget {
  const char *chip;
  int64_t sharedBytesPerBlock;
  int64_t registersPerMultiprocessor;
  int64_t multiprocessors;
};

/// H100 and H200 in the SXM form.
inline constexpr GPUTarget kSM90{"sm_90a", 232448, 65536, 132};

} // namespace mlir::fp8

#endif // FP8_KERNELS_TARGET_H

//===- BufferAlignment.h - What kernels ask of a buffer ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_GPU_TRANSFORMS_BUFFERALIGNMENT_H
#define FP8_LIB_GPU_TRANSFORMS_BUFFERALIGNMENT_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "mlir/IR/Value.h"

namespace mlir::fp8 {

/// What the kernel of `launch` wants `memref`, its argument `number`, to be,
/// for a message; empty if it is: it lies as #fp8_gpu.argument says, and every
/// row is known to start at a multiple of the alignment from an allocation or
/// an argument. Of an identity layout this is taken for granted: its extents
/// were known when the kernel was selected, or are checked where it is
/// launched. A single element is read alone, from anywhere.
std::string describeWanted(Value memref, LaunchAttr launch, int64_t number);

} // namespace mlir::fp8

#endif // FP8_LIB_GPU_TRANSFORMS_BUFFERALIGNMENT_H

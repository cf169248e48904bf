//===- BufferAlignment.h - What kernels ask of a buffer ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BUFFERALIGNMENT_H
#define FP8_LIB_KERNELS_BUFFERALIGNMENT_H

#include "mlir/IR/Value.h"

namespace mlir::fp8 {

/// Whether the elements of each row of `memref` lie together, and every row is
/// known to start at a multiple of `bytes` from an allocation or an argument.
/// Of an identity layout this is taken for granted: its extents were known when
/// the kernel was selected, or are checked where it is launched. A single
/// element is read alone, from anywhere.
bool hasAlignedRows(Value memref, int64_t bytes);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BUFFERALIGNMENT_H

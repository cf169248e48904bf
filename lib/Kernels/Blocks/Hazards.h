//===- Hazards.h - What LLVM must know of asynchronous code -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_HAZARDS_H
#define FP8_LIB_KERNELS_BLOCKS_HAZARDS_H

#include "KernelBuilder.h"

namespace mlir::fp8 {

/// The one place where what LLVM 22 does not see of a kernel is made visible.
/// (The last of these hazards, that inline assembly is not known to be
/// convergent, is closed when the kernel is translated: see
/// lib/Target/NVPTX/PTX.cpp.)

/// Volatile assembly `code` that reads `values`, and whose results they are
/// afterwards, unchanged: what uses these comes after it.
SmallVector<Value> tieRegisters(KernelBuilder &b, StringRef code,
                                ValueRange values);

/// Pins the computation of `values` above this point. LLVM sinks the
/// promotion's additions below the next wgmma otherwise, where they need a
/// second set of accumulators: spills. CUTLASS calls it
/// warpgroup_fence_operand.
SmallVector<Value> pinHere(KernelBuilder &b, ValueRange values);

/// A copy of the i32 `value` that LLVM cannot compute with ahead of time:
/// addresses derived from it stay where they are used instead of being hoisted
/// out of loops that have no register to spare.
Value launder(KernelBuilder &b, Value value);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_HAZARDS_H

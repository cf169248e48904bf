//===- LaunchedKernels.h - What a lowered program launches ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_REPORT_LAUNCHEDKERNELS_H
#define FP8_LIB_REPORT_LAUNCHEDKERNELS_H

#include "mlir/IR/Operation.h"

#include <string>

namespace mlir::fp8 {

/// What a program on buffers has the GPU do, once.
struct LaunchedKernel {
  /// A kernel that was generated; a loop, that becomes one; a copy; what gives
  /// all of a buffer one value.
  enum class Kind { Kernel, Loop, Copy, Fill };

  LaunchedKernel(Kind kind, Location loc, bool isConditional)
      : kind(kind), loc(loc), isConditional(isConditional) {}

  Kind kind;
  Location loc;
  /// Whether it stands in a loop or in a branch of the program.
  bool isConditional;
  /// The kernel's symbol.
  std::string symbol;
  /// The types of the buffers. None that are reached through addresses alone.
  SmallVector<Type> reads, writes;
  bool hasAddresses = false;
  /// The tags of the operations that it came from.
  SmallVector<unsigned> origins;
};

/// Marks `op`, and what is in it, so that what it is lowered to is known by its
/// location.
void tagOrigin(Operation *op, unsigned tag);

/// What `function` launches, in program order; it is on buffers.
SmallVector<LaunchedKernel> getLaunchedKernels(Operation *function);

} // namespace mlir::fp8

#endif // FP8_LIB_REPORT_LAUNCHEDKERNELS_H

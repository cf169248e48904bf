//===- LaunchJSON.h - Launches as the runtime reads them --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_IR_LAUNCHJSON_H
#define FP8_GPU_IR_LAUNCHJSON_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"

namespace mlir::fp8 {

/// `launch` as the text that fp8rt_kernel_create takes, of which
/// fp8/Runtime/Kernel.h tells.
std::string getLaunchJSON(LaunchAttr launch);

/// An expression of a launch, whose symbols have these names, in postfix order:
/// "m 128 ceildiv n 256 ceildiv *".
std::string getPostfix(AffineExpr expr, ArrayRef<StringRef> symbols);

} // namespace mlir::fp8

#endif // FP8_GPU_IR_LAUNCHJSON_H

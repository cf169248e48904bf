//===- FP8GPUAttrs.h - Targets and launches of kernels ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_GPU_IR_FP8GPUATTRS_H
#define FP8_GPU_IR_FP8GPUATTRS_H

#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "mlir/IR/Attributes.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/DialectImplementation.h"

#include "fp8/GPU/IR/FP8GPUEnums.h.inc"

namespace llvm::json {
class OStream;
} // namespace llvm::json

namespace mlir::fp8 {

/// What the parameters of a launch may refer to.
struct LaunchParts {
  /// KernelArgumentAttr, and KernelWorkspaceAttr.
  ArrayRef<Attribute> arguments, workspaces;
  int64_t numExtents;
};

} // namespace mlir::fp8

#include "fp8/GPU/IR/FP8GPUAttrInterfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "fp8/GPU/IR/FP8GPUAttrs.h.inc"

#endif // FP8_GPU_IR_FP8GPUATTRS_H

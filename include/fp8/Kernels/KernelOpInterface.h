//===- KernelOpInterface.h - What a kernel can compute ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_KERNELOPINTERFACE_H
#define FP8_KERNELS_KERNELOPINTERFACE_H

#include "fp8/Kernels/KernelSpec.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

#include "fp8/Kernels/KernelOpInterface.h.inc"

#endif // FP8_KERNELS_KERNELOPINTERFACE_H

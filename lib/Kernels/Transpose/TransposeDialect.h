//===- TransposeDialect.h - Configs of transposing kernels ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSEDIALECT_H
#define FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSEDIALECT_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "mlir/IR/Dialect.h"

#include "TransposeDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "TransposeAttrs.h.inc"

#endif // FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSEDIALECT_H

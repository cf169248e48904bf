//===- SM90Dialect.h - Configs of Hopper's kernels --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_SM90DIALECT_H
#define FP8_LIB_KERNELS_SM90_SM90DIALECT_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"

#include "SM90Dialect.h.inc"

#include "SM90Enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "SM90Attrs.h.inc"

#endif // FP8_LIB_KERNELS_SM90_SM90DIALECT_H

//===- SM89Dialect.h - Configs of Ada's kernels -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM89_SM89DIALECT_H
#define FP8_LIB_KERNELS_SM89_SM89DIALECT_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"

#include "SM89Dialect.h.inc"

#include "SM89Enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "SM89Attrs.h.inc"

#endif // FP8_LIB_KERNELS_SM89_SM89DIALECT_H

//===- SM100Dialect.h - Configs of Blackwell's kernels ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_SM100DIALECT_H
#define FP8_LIB_KERNELS_SM100_SM100DIALECT_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"

#include "SM100Dialect.h.inc"

#include "SM100Enums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "SM100Attrs.h.inc"

#endif // FP8_LIB_KERNELS_SM100_SM100DIALECT_H

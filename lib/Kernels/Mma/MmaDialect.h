//===- MmaDialect.h - Configs of kernels by mma.sync ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_MMADIALECT_H
#define FP8_LIB_KERNELS_MMA_MMADIALECT_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"

#include "MmaDialect.h.inc"

#include "MmaEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "MmaAttrs.h.inc"

#endif // FP8_LIB_KERNELS_MMA_MMADIALECT_H

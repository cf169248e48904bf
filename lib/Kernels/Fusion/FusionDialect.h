//===- FusionDialect.h - How streaming kernels are built --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONDIALECT_H
#define FP8_LIB_KERNELS_FUSION_FUSIONDIALECT_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "mlir/IR/Dialect.h"

#include "FusionDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "FusionAttrs.h.inc"

#endif // FP8_LIB_KERNELS_FUSION_FUSIONDIALECT_H

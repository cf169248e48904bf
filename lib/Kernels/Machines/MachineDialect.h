//===- MachineDialect.h - What a GPU takes for what ----------- -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MACHINES_MACHINEDIALECT_H
#define FP8_LIB_KERNELS_MACHINES_MACHINEDIALECT_H

#include "MachineNumbers.h"
#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "mlir/IR/Dialect.h"

#include <mutex>

#define GET_ATTRDEF_CLASSES
#include "MachineAttrs.h.inc"

// It holds machines.
#include "MachineDialect.h.inc"

#endif // FP8_LIB_KERNELS_MACHINES_MACHINEDIALECT_H

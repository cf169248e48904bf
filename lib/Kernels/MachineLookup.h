//===- MachineLookup.h - The numbers of a target's machine ---- -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MACHINELOOKUP_H
#define FP8_LIB_KERNELS_MACHINELOOKUP_H

#include "Machines/MachineDialect.h"
#include "fp8/Kernels/Machine.h"

namespace mlir::fp8 {

/// The machine whose models compare configs for `target`: its own, or else its
/// chip's usual one; of a chip that the compiler has none of, the first.
MachineAttr getMachine(GPUTargetAttr target);

/// Its model of attention: where that is left out, the one of the chip's usual
/// machine. Null for a chip that has no kernels of attention.
AttentionModelAttr getAttentionModel(GPUTargetAttr target);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MACHINELOOKUP_H

//===- AttentionGenerator.h - Attention kernels by mma.sync -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_ATTENTIONGENERATOR_H
#define FP8_LIB_KERNELS_MMA_ATTENTIONGENERATOR_H

#include "../Attention/AttentionKernel.h"
#include "../Attention/AttentionSignature.h"
#include "../Attention/AttentionSpec.h"
#include "AttentionMemory.h"
#include "MmaDialect.h"
#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8::mma {

/// What selects and builds attention kernels by mma.sync.
std::unique_ptr<KernelGenerator> createAttentionGenerator();

/// Builds the kernel; fails, with the reason, if it cannot.
void describeAttention(AttentionSignature &made, const AttentionSpec &spec,
                       AttentionConfigAttr config,
                       const AttentionMemory &memory,
                       KernelSignature::Launch &launch);
void buildAttention(AttentionKernel<AttentionMemory> &made,
                    const AttentionSpec &spec, AttentionConfigAttr config,
                    GPUTargetAttr target);

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_ATTENTIONGENERATOR_H

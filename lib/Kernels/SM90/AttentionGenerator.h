//===- AttentionGenerator.h - Attention kernels for Hopper ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONGENERATOR_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONGENERATOR_H

#include "../Attention/AttentionKernel.h"
#include "../Attention/AttentionSignature.h"
#include "AttentionMemory.h"
#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8::sm90 {

/// Builds the kernel of `config`; fails, with the reason, if it does not fit.
void describeAttention(AttentionSignature &made, const AttentionSpec &spec,
                       AttentionConfigAttr config,
                       const AttentionMemory &memory,
                       KernelSignature::Launch &launch);
void buildAttention(AttentionKernel<AttentionMemory> &made,
                    const AttentionSpec &spec, AttentionConfigAttr config,
                    GPUTargetAttr target);

std::unique_ptr<KernelGenerator> createAttentionGenerator();

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONGENERATOR_H

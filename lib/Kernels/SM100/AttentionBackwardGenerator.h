//===- AttentionBackwardGenerator.h - Gradients on Blackwell ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_ATTENTIONBACKWARDGENERATOR_H
#define FP8_LIB_KERNELS_SM100_ATTENTIONBACKWARDGENERATOR_H

#include "../Attention/AttentionBackwardSignature.h"
#include "../Attention/AttentionKernel.h"
#include "AttentionBackwardMemory.h"
#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8::sm100 {

/// Builds the kernel of `config`; fails, with the reason, if it does not fit.
void describeAttentionBackward(AttentionBackwardSignature &made,
                               const AttentionBackwardSpec &spec,
                               AttentionConfigAttr config,
                               const AttentionBackwardMemory &memory,
                               KernelSignature::Launch &launch);
void buildAttentionBackward(AttentionKernel<AttentionBackwardMemory> &made,
                            const AttentionBackwardSpec &spec,
                            AttentionConfigAttr config, GPUTargetAttr target);

std::unique_ptr<KernelGenerator> createAttentionBackwardGenerator();

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_ATTENTIONBACKWARDGENERATOR_H

//===- AttentionBackwardGenerator.h - Gradients by mma.sync -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_ATTENTIONBACKWARDGENERATOR_H
#define FP8_LIB_KERNELS_MMA_ATTENTIONBACKWARDGENERATOR_H

#include "../Attention/AttentionBackwardSignature.h"
#include "../Attention/AttentionKernel.h"
#include "AttentionBackwardMemory.h"
#include "fp8/Kernels/Architecture.h"

namespace mlir::fp8::mma {

/// What selects and builds kernels of attention's gradients by mma.sync.
std::unique_ptr<KernelGenerator> createAttentionBackwardGenerator();

/// Builds the kernel; fails, with the reason, if it cannot.
void describeAttentionBackward(AttentionBackwardSignature &made,
                               const AttentionBackwardSpec &spec,
                               AttentionConfigAttr config,
                               const AttentionBackwardMemory &memory,
                               KernelSignature::Launch &launch);
void buildAttentionBackward(AttentionKernel<AttentionBackwardMemory> &made,
                            const AttentionBackwardSpec &spec,
                            AttentionConfigAttr config, GPUTargetAttr target);

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_ATTENTIONBACKWARDGENERATOR_H

//===- Consumer.h - The warpgroups that multiply and store ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_CONSUMER_H
#define FP8_LIB_KERNELS_SM90_CONSUMER_H

#include "../Blocks/Ring.h"
#include "../Blocks/TileScheduler.h"
#include "MatmulContext.h"

namespace mlir::fp8::sm90 {

/// Multiplies the ring's stages, applies factors and the epilogue, and stores
/// this block's tiles: every consumer warpgroup.
void buildConsumer(const MatmulContext &kernel, const TileScheduler &scheduler,
                   Ring ring);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_CONSUMER_H

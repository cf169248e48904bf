//===- Producer.h - The warps that fill the ring of a matmul ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_PRODUCER_H
#define FP8_LIB_KERNELS_SM90_PRODUCER_H

#include "../Blocks/Ring.h"
#include "../Blocks/TileScheduler.h"
#include "MatmulContext.h"

namespace mlir::fp8::sm90 {

/// Fills the ring with the operands of this block's tiles, K block by K block,
/// by bulk tensor copies: one thread. `packed` has the full barriers of weights
/// that are still to be lifted, if there are any. Where warps take turns, the
/// blocks of one of them.
void buildOperandProducer(const MatmulContext &kernel,
                          const TileScheduler &scheduler, Ring ring,
                          std::optional<Ring> packed, int64_t turn);

/// Brings the factors of each K block into the same stages: one warp.
void buildScaleProducer(const MatmulContext &kernel,
                        const TileScheduler &scheduler, Ring ring,
                        int64_t turn);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_PRODUCER_H

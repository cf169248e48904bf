//===- Roles.h - What the warps of a matmul do ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_ROLES_H
#define FP8_LIB_KERNELS_SM100_ROLES_H

#include "../Blocks/Ring.h"
#include "MatmulContext.h"

namespace mlir::fp8::sm100 {

/// The thread that copies operands to the stages of the ring.
void buildLoader(const MatmulContext &kernel, const TileScheduler &scheduler,
                 Ring ring);

/// The warp that copies factors to the stages of the ring.
void buildFactorLoader(const MatmulContext &kernel,
                       const TileScheduler &scheduler, Ring ring);

/// The thread of the second of two blocks that tells the first when factors
/// have come: asynchronous copies of single words arrive in their own block.
void buildFactorRelay(const MatmulContext &kernel,
                      const TileScheduler &scheduler, Ring ring);

/// The warp that copies factors in f32 along K, with which sums are promoted.
void buildScaleLoader(const MatmulContext &kernel,
                      const TileScheduler &scheduler, Ring scales);

/// The thread that issues products: takes stages from the ring, fills sets of
/// sums in tensor memory, of a tile each, or where they are promoted of a K
/// block.
void buildMultiplier(const MatmulContext &kernel,
                     const TileScheduler &scheduler, Ring ring,
                     Ring accumulators);

/// The warpgroups that take sums, promote them with `scales` if there are any,
/// apply the epilogue, and store.
void buildEpilogueWarpgroup(const MatmulContext &kernel,
                            const TileScheduler &scheduler, Ring accumulators,
                            Ring scales);

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_ROLES_H

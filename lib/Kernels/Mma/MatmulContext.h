//===- MatmulContext.h - What parts of a matmul kernel share ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_MATMULCONTEXT_H
#define FP8_LIB_KERNELS_MMA_MATMULCONTEXT_H

#include "../Blocks/ExpandCodes.h"
#include "../Matmul/MatmulBlock.h"
#include "MatmulLayout.h"

namespace mlir::fp8::mma {

/// A matmul kernel while it is built: its block, its config, and where it keeps
/// what.
class MatmulContext : public MatmulBlock {
public:
  /// At the start of the kernel.
  MatmulContext(KernelBuilder &b, const MatmulSpec &spec, GemmConfigAttr config,
                const MatmulLayout &layout, GPUTargetAttr target,
                llvm::StringMap<Value> params, Value shared)
      : MatmulBlock(b, spec, config.getSwapAb(), /*clusterSize=*/1,
                    std::move(params), shared),
        config(config), layout(layout),
        promotes(
            promotesSums(spec, hasWideSums(target.getComputeCapability()))),
        expandsCodes(!hasCodes(target.getComputeCapability())) {}

  /// The first row of the warp in a warpgroup's part of a tile.
  Value getWarpRow() const {
    Value group = b.shiftRight(warp, 2);
    return b.add(b.mul(group, 64), b.mul(b.bitAnd(warp, 3), 16));
  }
  /// From one part of 64 rows of a warpgroup to its next one.
  int64_t getSubtileStride() const { return 64 * config.getWarpgroups(); }

  GemmConfigAttr config;
  const MatmulLayout &layout;
  /// Whether each K block's sums are added to others in f32.
  bool promotes;
  /// Whether codes become f16 before they are multiplied.
  bool expandsCodes;
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_MATMULCONTEXT_H

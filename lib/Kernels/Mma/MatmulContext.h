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

  /// The first row of the warp in a tile.
  Value getWarpRow() const {
    return b.mul(getAlongRows(warp, layout.warps.ofRows), 16);
  }
  /// What a number in the block, which runs along rows first, is along rows.
  Value getAlongRows(Value number, int64_t ofRows) const {
    return layout.warps.ofCols == 1 ? number : b.rem(number, ofRows);
  }
  /// The warp's first column in a tile, of a pair of products in each one's
  /// part of it; null where warps have all columns.
  Value getWarpCol() const {
    if (layout.warps.ofCols == 1)
      return {};
    return b.mul(b.div(warp, layout.warps.ofRows),
                 spec.getResultCols(layout.warpCols));
  }
  /// From the warp's first column to its `col`-th one, a multiple of 16.
  int64_t getColOffset(int64_t col) const {
    int64_t perTensor = spec.getResultCols(layout.warpCols);
    return col / perTensor * spec.getResultCols(config.getCols()) +
           col % perTensor;
  }

  GemmConfigAttr config;
  const MatmulLayout &layout;
  /// Whether each K block's sums are added to others in f32.
  bool promotes;
  /// Whether codes become f16 before they are multiplied.
  bool expandsCodes;
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_MATMULCONTEXT_H

//===- MatmulContext.h - What parts of a matmul kernel share ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_MATMULCONTEXT_H
#define FP8_LIB_KERNELS_SM100_MATMULCONTEXT_H

#include "../Blocks/Ring.h"
#include "../Matmul/MatmulBlock.h"
#include "MatmulLayout.h"

namespace mlir::fp8::sm100 {

/// The warps of a block: one loads operands, one multiplies, one has tensor
/// memory, one copies factors if there are any along K, and four or eight
/// finish tiles. A warp reaches the quarter of the
/// lanes of tensor memory that is its number's rest by 4.
inline constexpr int64_t kLoadWarp = 0;
inline constexpr int64_t kMultiplyWarp = 1;
inline constexpr int64_t kMemoryWarp = 2;
inline constexpr int64_t kFactorWarp = 3;
inline constexpr int64_t kFirstEpilogueWarpgroup = 4;

/// A matmul kernel while it is built: its block, its config, and where it keeps
/// what. A cluster is the two blocks that multiply together.
class MatmulContext : public MatmulBlock {
public:
  /// At the start of the kernel.
  MatmulContext(KernelBuilder &b, const MatmulSpec &spec, GemmConfigAttr config,
                const MatmulLayout &layout, llvm::StringMap<Value> params,
                Value shared);

  /// Bytes from the start of shared memory.
  Value getShared(int64_t offset) const;
  /// What the first of the blocks that multiply together has at `pointer` of
  /// its shared memory.
  Value getOfFirst(Value pointer) const;
  /// Where a set of sums is in tensor memory (i32): that which is at this
  /// position of the ring for who takes it.
  Value getSums(RingPosition at) const;
  /// Where a pair's blocks are beside each other.
  TileScheduler::Rank getTileRank() const {
    return MatmulBlock::getTileRank(rank, Value());
  }

  GemmConfigAttr config;
  const MatmulLayout &layout;
  /// Address of the block's columns in tensor memory, once it has them.
  Value memory;
};

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_MATMULCONTEXT_H

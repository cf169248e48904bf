//===- TileAccumulators.h - Where sums of a tile come from ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_TILEACCUMULATORS_H
#define FP8_LIB_KERNELS_SM100_TILEACCUMULATORS_H

#include "../Blocks/Ring.h"
#include "MatmulContext.h"

#include <memory>

namespace mlir::fp8::sm100 {

/// Gives a warpgroup that finishes tiles their sums, some columns of them at a
/// time.
class TileAccumulators {
public:
  virtual ~TileAccumulators();

  /// What goes on from tile to tile, before the first (i32 each).
  virtual SmallVector<Value> begin() const = 0;

  /// Gets the first of the tile's columns, the number of the part among the
  /// warpgroup's (i32), and its sums, `chunkCols` of each product.
  using Finish =
      llvm::function_ref<void(Value firstCol, Value number, ValueRange sums)>;
  /// Has `finish` build code for all of the warpgroup's columns of a tile;
  /// returns what goes on to the next tile.
  virtual SmallVector<Value> take(const Tile &tile, ValueRange state,
                                  Finish finish) = 0;

protected:
  /// `group` is the number of the warpgroup (i32).
  TileAccumulators(const MatmulContext &kernel, Ring accumulators, Value group);

  /// Where the warp's lanes of a set of sums are in tensor memory (i32).
  Value getAddress(RingPosition sums) const;
  /// Gives a set of sums back: they are in registers.
  void release(Value stage);

  const MatmulContext &kernel;
  KernelBuilder &b;
  GemmConfigAttr config;
  const MatmulLayout &layout;
  Ring accumulators;
  Value group;

private:
  /// The quarter of tensor memory that the warp reaches.
  Value lanes;
};

/// Sums over all of K, as they are in tensor memory.
std::unique_ptr<TileAccumulators>
createWholeAccumulators(const MatmulContext &kernel, Ring accumulators,
                        Value group);

/// Sums of K blocks, multiplied by their factors, which come in the ring
/// `scales`, and added up in registers.
std::unique_ptr<TileAccumulators>
createPromotedAccumulators(const MatmulContext &kernel, Ring accumulators,
                           Ring scales, Value group);

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_TILEACCUMULATORS_H

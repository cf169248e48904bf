//===- Accumulate.h - Sums over K of one consumer warpgroup -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ACCUMULATE_H
#define FP8_LIB_KERNELS_SM90_ACCUMULATE_H

#include "../Blocks/Hazards.h"
#include "../Blocks/Ring.h"
#include "../Blocks/TileScheduler.h"
#include "MatmulContext.h"
#include "Wgmma.h"

namespace mlir::fp8::sm90 {

/// The next position of a consumer, of whom `parts` take stages in turn.
RingPosition advance(KernelBuilder &b, Ring &ring, GemmConfigAttr config,
                     RingPosition position);

/// The main loop of a consumer: takes the stages of a tile from the ring and
/// sums their products, for each of its subtiles of 64 rows.
///
/// - `fast` leaves the sum in the tensor core's accumulators (about 14
///   significant bits on Hopper) over all of K;
/// - `promote` adds each K block's product to f32 sums, multiplied by the
///   block's factors if they change along K;
/// - with factors for each 32 of K, the product of each instruction.
class Accumulator {
public:
  /// `slice` is the warpgroup's number among those that share a K block,
  /// `group` that among all.
  Accumulator(const MatmulContext &kernel, Ring ring, Value slice, Value group);

  /// Returns the registers of each subtile; moves `position` past the tile.
  /// `issued` is called where the tensor core needs nothing more from this
  /// warpgroup for the tile.
  SmallVector<SmallVector<Value>> accumulate(const Tile &tile,
                                             RingPosition &position,
                                             llvm::function_ref<void()> issued);

private:
  /// Factors of columns: two for each group of 8, or one for each 128; or none.
  struct ColFactors {
    SmallVector<Value> columns, blocks;
  };

  /// The same of all that the block's consumers share, or of this one's part.
  SmallVector<SmallVector<Value>>
  accumulateAll(const Tile &tile, RingPosition &position,
                llvm::function_ref<void()> issued);
  SmallVector<SmallVector<Value>>
  accumulatePart(const Tile &tile, RingPosition &position,
                 llvm::function_ref<void()> issued);
  SmallVector<SmallVector<Value>>
  accumulateFast(const Tile &tile, RingPosition &position,
                 llvm::function_ref<void()> issued);
  /// The same where B is lifted in registers (AccumulateLifted.cpp).
  SmallVector<SmallVector<Value>>
  accumulateLifted(const Tile &tile, RingPosition &position,
                   llvm::function_ref<void()> issued);
  SmallVector<Value> beginPromoted(RingPosition at);
  SmallVector<SmallVector<Value>> accumulatePromoted(const Tile &tile,
                                                     RingPosition &position);
  /// One subtile, with a second set of accumulators: the tensor core computes a
  /// K block while the one before is added.
  SmallVector<SmallVector<Value>> accumulateOverlapped(const Tile &tile,
                                                       RingPosition &position);
  /// The same for each 32 of K (AccumulateMicroscaled.cpp).
  SmallVector<SmallVector<Value>> accumulateMicroscaled(const Tile &tile,
                                                        RingPosition &position);
  Value issue(RingPosition position, Value accumulator);
  SmallVector<Value> takeProduct(Value &product, int64_t pending);
  /// Waits for a product, gives its stage back and adds it to `sums`. `product`
  /// becomes the accumulator to use next.
  SmallVector<Value> drain(RingPosition position, Value &product,
                           ValueRange sums, int64_t pending);
  void release(Value stage);
  /// Clears what of the tile's first and last stages is another group's K,
  /// before any consumer multiplies it.
  void clearOthers(const Tile &tile, Value k, Value stage);
  /// Issues subtile `subtile` of the stage.
  Value multiply(int64_t subtile, Value stage, Value accumulator,
                 bool overwrite);
  /// The descriptors of the stage's rows, of the first subtile, and columns.
  std::pair<Value, Value> getDescriptors(Value stage);
  /// Issues all subtiles as one group.
  SmallVector<Value> multiplyAll(Value stage, ValueRange accumulators,
                                 bool overwrite);
  /// Adds a K block's product to `sums`.
  SmallVector<Value> promote(ArrayRef<Value> product, ValueRange sums,
                             std::array<Value, 2> rowFactors,
                             const ColFactors &colFactors);
  /// What a row's elements are multiplied by, one for each 8 columns: of blocks
  /// of 128 columns, or null where there are no factors of blocks.
  SmallVector<Value> getBlockFactors(Value rowFactor, ArrayRef<Value> blocks);
  std::array<Value, 2> loadRowFactors(int64_t subtile, Value stage);
  ColFactors loadColFactors(Value stage);
  /// Where in a block of 128 rows or columns the tile begins (i32): null where
  /// no tile cuts one.
  Value getFirstInBlock(const OperandSpec &operand, int64_t extent,
                        Value first);

  const MatmulContext &kernel;
  KernelBuilder &b;
  const MatmulSpec &spec;
  GemmConfigAttr config;
  const MatmulLayout &layout;
  Ring ring;
  Wgmma wgmma;
  Value slice, group, lane;
  Value rowsDescriptor, colsDescriptor;
  /// Where the tile that is summed begins.
  Value firstRowInBlock, firstColInBlock;
  /// How many factors of A come before the tile's own (i32), if there may be
  /// any.
  Value rowsBefore;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ACCUMULATE_H

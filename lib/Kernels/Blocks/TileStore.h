//===- TileStore.h - Fragments to memory ------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_TILESTORE_H
#define FP8_LIB_KERNELS_BLOCKS_TILESTORE_H

#include "Fragment.h"

namespace mlir::fp8 {

/// Gives the packed results of a pair of a fragment's layout.
using PackedAt = llvm::function_ref<Value(int64_t pair)>;

/// Stores subtiles of `rows` rows through shared memory with bulk tensor
/// copies. Slabs of `slabBytes` along N, no more than a row has, in some
/// buffers, so that one is filled while the copy reads another. Each consumer
/// warpgroup has its own. Where all of a tile has room, a subtile's slabs share
/// its barriers.
class BulkTileStore {
public:
  struct Shape {
    int64_t subtiles, slabBytes, elementBytes, buffers, rows = 64;
    /// Whether the tensor core's columns are the result's rows, `rows` of them:
    /// a subtile, of 16 bits, is one slab.
    bool transposed = false;
  };

  /// `staging` (i32) is the offset of the warpgroup's buffers from `base`.
  /// `isFirstWarp` (i1) is whether this warp is the warpgroup's first. From the
  /// number of the thread ptxas does not know that it is the same for a warp,
  /// and what a loop around the store carries leaves the uniform registers.
  BulkTileStore(KernelBuilder &b, Shape shape, const FragmentLayout &layout,
                Value base, Value staging, Value barrierId, Value isFirstWarp);

  /// `subtile` and `thread` are the numbers in the tile and in the warpgroup,
  /// `origin` are the coordinates of the subtile in the map, innermost first.
  void storeSubtile(Value map, Value subtile, Value thread, ValueRange origin,
                    PackedAt packedAt);
  /// Before the kernel ends.
  void finish();
  /// In place of a subtile that is stored otherwise, before tiles follow.
  void skipSubtile();

private:
  /// Whether a subtile's slabs are written, and then stored, at once.
  bool takesSubtiles() const {
    return slabs > 1 && shape.subtiles * slabs == shape.buffers;
  }
  int64_t getFirstCol(int64_t slab) const;
  Value getBuffer(Value subtile, int64_t slab);
  void storeSlab(Value map, Value buffer, ValueRange origin, int64_t col);
  /// The pairs of columns [firstCol, firstCol + slab) from `packed`, which are
  /// those of the layout.
  void writeSlab(Value buffer, Value thread, int64_t firstCol,
                 ArrayRef<Value> packed);
  void writeMatrices(Value buffer, Value thread, ArrayRef<Value> packed);
  /// The same where columns are rows.
  void writeTransposed(Value buffer, Value thread, ArrayRef<Value> packed);
  /// The same of FragmentLayout::ofNeighbours.
  void writeNeighbours(Value buffer, Value warp, Value lane,
                       ArrayRef<Value> packed);
  /// Writes for a thread that has a row to itself: 16 bytes at once.
  void writeRow(Value buffer, Value thread, ArrayRef<Value> packed);
  /// Byte offset in the slab of 16-byte chunk `chunk` in row `row`, swizzled as
  /// the bulk copy expects it (PTX ISA, "Swizzling Modes").
  Value getSwizzled(Value row, Value chunk);

  KernelBuilder &b;
  Shape shape;
  const FragmentLayout &layout;
  Value base, staging, barrierId, isFirstWarp;
  int64_t slabs;
};

/// Stores each element by itself, if it lies inside of the result.
class DirectTileStore {
public:
  /// `inPairs` promises that neighbours along N, which are not swapped, can be
  /// stored together: two, or 16 bytes of a thread that has a row to itself.
  DirectTileStore(KernelBuilder &b, Type elementType,
                  const FragmentLayout &layout, Value m, Value n, Value strideM,
                  bool inPairs = false)
      : b(b), elementType(elementType), layout(layout), m(m), n(n),
        strideM(strideM), inPairs(inPairs) {}

  /// `result` points to the first element of the batch.
  void storeSubtile(Value result, const Fragment &fragment, PackedAt packedAt);

private:
  /// 16 bytes at once.
  void storeRow(Value result, const Fragment &fragment, PackedAt packedAt);
  /// The address of a row's element, and whether it is in the result.
  std::pair<Value, Value> locate(Value result, Value indexM, Value indexN);

  KernelBuilder &b;
  Type elementType;
  const FragmentLayout &layout;
  Value m, n, strideM;
  bool inPairs;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_TILESTORE_H

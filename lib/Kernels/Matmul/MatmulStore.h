//===- MatmulStore.h - Sums of tiles to memory ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULSTORE_H
#define FP8_LIB_KERNELS_MATMUL_MATMULSTORE_H

#include "../Blocks/TileStore.h"
#include "MatmulParams.h"

namespace mlir::fp8 {

/// Applies the epilogue to sums of a tile and stores the results, for one
/// warpgroup, whatever the architecture.
class MatmulStore {
public:
  /// A warpgroup: its number among those that store, its named barrier, and its
  /// threads' numbers in the block.
  struct Warpgroup {
    Value number, barrierId, warp, lane;
  };
  /// Where bulk stores are staged: in dynamic shared memory, `offset` bytes
  /// from its start for the first warpgroup.
  struct Staging {
    Value shared;
    int64_t offset;
  };
  /// `bulk` is nothing where each element is stored by itself, or, `inPairs`,
  /// two neighbours of a row: rows are multiples of 16 bytes then.
  MatmulStore(const MatmulParams &kernel, FragmentLayout fragments,
              std::optional<BulkTileStore::Shape> bulk, Staging staging,
              Warpgroup warpgroup, bool inPairs = false);
  /// The bulk store refers to the layout.
  MatmulStore(const MatmulStore &) = delete;
  MatmulStore &operator=(const MatmulStore &) = delete;

  /// A part of a tile that the warpgroup's threads hold at once.
  struct Part {
    /// Its number among the warpgroup's, and the thread's in the warpgroup.
    Value number, thread;
    Fragment fragment;
    /// Where it begins in the tile; null for 0.
    Value row, col;
  };
  /// Stores a part, whose sums these are: of a pair of products, the first
  /// one's come first.
  void storePart(const Tile &tile, const Part &part, ValueRange sums);

  /// After all parts of a tile.
  void endTile(const Tile &tile);
  /// After all tiles; `bulk` copies may still be under way before.
  void finish();

  bool isInBulk() const { return bulk.has_value(); }
  const FragmentLayout &getFragments() const { return fragments; }
  /// Gives the epilogue what a tile reads.
  void setSources(const Tile &tile) { kernel.setSources(epilogue, tile); }
  Epilogue &getEpilogue() { return epilogue; }

private:
  void storeInBulk(const Tile &tile, const Part &part, PackedAt packedAt);
  /// Element by element, or `inPairs` two by two or by 16 bytes, what of a part
  /// is in the result.
  void storeDirectly(const Tile &tile, const Fragment &fragment, bool inPairs,
                     PackedAt packedAt);

  const MatmulParams &kernel;
  KernelBuilder &b;
  const MatmulSpec &spec;
  FragmentLayout fragments;
  int64_t partRows;
  bool inPairs;
  Value lane;
  std::optional<BulkTileStore> bulk;
  Epilogue epilogue;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULSTORE_H

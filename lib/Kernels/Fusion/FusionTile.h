//===- FusionTile.h - Threads and elements of a tile ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONTILE_H
#define FP8_LIB_KERNELS_FUSION_FUSIONTILE_H

#include "../Blocks/KernelBuilder.h"
#include "FusionDialect.h"
#include "FusionSpec.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {

/// Columns of a chunk: 16 bytes of bf16, 8 of codes.
inline constexpr int64_t kChunk = 8;

/// A tensor that a kernel reads or writes.
struct FusionArgument {
  std::string name;
  Type elementType;
  FusionLayout layout;
  FusionBlock block;
  /// How codes of a row share an element of `elementType`, if they do.
  fp8rt::CodePacking packing;
  /// Whether rows of it are read by an index.
  bool isGathered = false;
};

/// Which elements of the domain a thread has, and where they lie in memory. A
/// place is a row of the thread, 0 to rows - 1, and a chunk.
class FusionTile {
public:
  FusionTile(KernelBuilder &b, const FusionSpec &spec, FusionConfigAttr config,
             llvm::StringMap<Value> params);

  int64_t getRows() const { return config.getRows(); }
  int64_t getChunks() const { return config.getChunks(); }
  int64_t getTileRows() const { return config.getTileRows(); }
  int64_t getTileColumns() const { return config.getTileColumns(); }
  /// Chunks beside each other, one of each thread.
  int64_t getGroups() const { return config.getLanes() * config.getAcross(); }

  //===--- Where the thread is --------------------------------------------===//

  Value thread, warp, lane;
  /// Its place among the lanes and warps beside and below each other.
  Value laneAcross, laneDown, warpAcross, warpDown;
  /// Its block among those of the cluster.
  Value blockAcross;
  /// Its first row and its first chunk in the tile, and the tile's first row,
  /// first column and batch, all i32.
  Value rowInTile, group, tileRow, tileColumn, batch;
  /// Extents of the domain, i32.
  Value numRows, numColumns;
  Value isFirstBlock;

  /// Row and first column of a place, in the domain and in the tile.
  Value getRow(int64_t row);
  /// The row; where it is none of the domain's, the last.
  Value getClampedRow(int64_t row);
  Value getColumn(int64_t chunk);
  Value getColumnInTile(int64_t chunk);

  //===--- What is inside -------------------------------------------------===//

  /// Whether all tiles are known to be in the domain.
  bool hasWholeRows() const { return wholeRows; }
  bool hasWholeColumns() const { return wholeColumns; }
  /// Null where they are.
  Value isRowInside(int64_t row);
  /// Whether a column of a chunk is inside; the same for all of a chunk where
  /// the number of columns is a multiple of 8.
  Value isColumnInside(int64_t chunk, int64_t column);
  bool hasWholeChunks() const { return getVector() == kChunk; }
  /// Both; null if nothing is outside.
  Value isInside(int64_t row, int64_t chunk, int64_t column);

  //===--- Memory ---------------------------------------------------------===//

  /// Elements that lie together, 1 to 8 of a chunk: what the number of columns
  /// is known to be a multiple of.
  int64_t getVector() const { return vector; }
  /// Whether an input has neighbouring elements for those of a chunk.
  static bool hasChunks(const FusionArgument &argument);
  /// Whether those of a result are stored together.
  static bool storesChunks(const FusionArgument &argument) {
    return argument.block.isFull() ||
           (argument.elementType.isF32() && hasChunks(argument));
  }
  /// The words of a chunk of such an input, clamped to the domain.
  SmallVector<Value> loadChunk(const FusionArgument &argument, int64_t row,
                               int64_t chunk);
  /// The same of the row that starts at `pointer`.
  SmallVector<Value> loadChunk(const FusionArgument &argument, Value pointer,
                               int64_t chunk);
  /// Whether `place` (i64) is none in dimension `dim` of an argument of which
  /// rows are read by an index.
  Value isOutside(const FusionArgument &argument, int64_t dim, Value place);
  /// Where the row of these places, one for each dimension but the last,
  /// starts.
  Value getGathered(const FusionArgument &argument, ArrayRef<Value> places);
  /// One element of what has none, clamped; `column` in the chunk.
  Value loadElement(const FusionArgument &argument, int64_t row, int64_t chunk,
                    int64_t column);
  /// The first `count` elements, i32, of a tensor that has nothing to do with
  /// the domain.
  SmallVector<Value> loadWords(const FusionArgument &argument, int64_t count);
  /// A chunk of a result in the domain's order to where it is to go, if it is
  /// inside and `condition` holds, which may be null.
  void storeChunk(const FusionArgument &argument, int64_t row, int64_t chunk,
                  ArrayRef<Value> words, Value condition = {});
  /// The address of an element, with what is outside clamped or not.
  Value getAddress(const FusionArgument &argument, Value row, Value column);
  /// The start of a thread's row.
  Value getPointer(const FusionArgument &argument, int64_t row, bool clamped);

private:
  SmallVector<Value> loadPacked(Value pointer, int64_t chunk);
  Value getCoordinate(const FusionArgument &argument, int64_t dim, Value row,
                      Value column);

  KernelBuilder &b;
  const FusionSpec &spec;
  FusionConfigAttr config;
  llvm::StringMap<Value> params;
  bool wholeRows, wholeColumns;
  int64_t vector;
  llvm::DenseMap<std::pair<StringRef, int64_t>, Value> pointers;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSION_FUSIONTILE_H

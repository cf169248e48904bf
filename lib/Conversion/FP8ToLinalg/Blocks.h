//===- Blocks.h - Tensors cut into blocks -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_CONVERSION_FP8TOLINALG_BLOCKS_H
#define FP8_CONVERSION_FP8TOLINALG_BLOCKS_H

#include "mlir/IR/AffineMap.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fp8 {

/// The loop nest over a tensor that is cut into blocks. A dimension whose block
/// is a single element or the whole dimension is one loop; any other is two, a
/// grid index and an index within the block. Tensors are brought into the
/// shape of the nest and back; zeros fill up partial blocks at the upper edge.
///
/// A nest in groups has one more loop, innermost, over neighbours in the last
/// dimension whose codes are a byte. The dimension, and a block, have whole
/// groups, or a size that is only known at run time.
class BlockedNest {
public:
  /// The nest over tensors of the shape of `tensor`.
  BlockedNest(OpBuilder &builder, Location loc, Value tensor,
              ArrayRef<int64_t> block);
  BlockedNest(OpBuilder &builder, Location loc, ArrayRef<OpFoldResult> sizes,
              ArrayRef<int64_t> block, int64_t groupSize);

  int64_t getNumLoops() const { return loopSizes.size(); }
  bool isInGroups() const { return groupSize > 1; }

  /// The nest over the bytes of a nest in groups: all loops but the innermost.
  BlockedNest getBytes() const;

  /// `tensor`, of the shape the nest was made for, in the shape of the nest.
  Value split(Value tensor) const;

  /// The converse of `split`.
  Value join(Value tensor) const;

  /// An uninitialized tensor in the shape of the nest.
  Value createEmpty(Type elementType) const;

  /// An uninitialized tensor of the grid's shape: one element for each block.
  Value createEmptyGrid(Type elementType) const;

  /// Index of the element itself, and of its block in the grid.
  AffineMap getElementMap() const;
  AffineMap getGridMap() const;
  /// Index of the byte that has the element's code, in a nest in groups.
  AffineMap getByteMap() const;

  /// Indices of the element in the tensor, in the body of a generic on a nest
  /// that is not in groups.
  SmallVector<Value> getIndices(OpBuilder &body) const;
  /// Sizes of the tensor.
  ArrayRef<OpFoldResult> getSizes() const { return sizes; }

  /// Loops that run within one block, i.e. those an amax reduces over.
  SmallVector<bool> getWithinBlock() const;

private:
  void finish();

  OpBuilder &builder;
  Location loc;
  SmallVector<int64_t> block;
  /// Elements of a group; 1 where there are none.
  int64_t groupSize = 1;
  /// Sizes of the tensor, of the tensor with whole blocks, and of the loops.
  SmallVector<OpFoldResult> sizes, paddedSizes, loopSizes;
  SmallVector<int64_t> shape, paddedShape, loopShape;
  /// Whether some dimension has, or may have, a partial block.
  bool isPadded = false;
  SmallVector<SmallVector<int64_t, 2>> reassociation;
};

/// The elements of `tensor` from `offsets` on, as a `type`, which may lack
/// dimensions of one index. A tensor without elements has no slice, not even
/// one without elements: then it is a new one.
Value createSlice(OpBuilder &builder, Location loc, RankedTensorType type,
                  Value tensor, ArrayRef<OpFoldResult> offsets,
                  ArrayRef<OpFoldResult> sizes);

} // namespace mlir::fp8

#endif // FP8_CONVERSION_FP8TOLINALG_BLOCKS_H

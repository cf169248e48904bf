//===- StridedBody.h - Neighbouring iterations of an operation --*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_LINALGTOGPU_STRIDEDBODY_H
#define FP8_LIB_CONVERSION_LINALGTOGPU_STRIDEDBODY_H

#include "StridedLoops.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

namespace mlir::fp8 {

/// What a thread moves with one instruction at most.
inline constexpr int64_t kAccessBytes = 16;

/// Loads, computes and stores neighbours along one loop, `lanes` of them, in
/// one thread: as wide as each operand allows.
class StridedBody {
public:
  StridedBody(RewriterBase &b, linalg::LinalgOp op, const StridedLoops &loops,
              unsigned along)
      : b(b), op(op), loc(op.getLoc()), loops(loops), along(along) {}

  /// How many neighbours a thread is to have; a power of two. Of `isTail` the
  /// loop need not be a multiple, which the caller sees to.
  int64_t chooseLanes(bool isTail);
  /// What has to be 0 for accesses of several elements to be aligned, as far
  /// as that is not known. In a kernel.
  Value getMisalignment(int64_t lanes, bool isTail);

  /// Accesses are of single elements where they are not.
  void setAligned(bool value) { isAligned = value; }
  /// Lanes go on in the next row where one ends: only what is gapless is
  /// accessed by several, of the rest the caller loads each lane.
  void setFlat(bool value) { isFlat = value; }
  bool isLoadedFlat(OpOperand *operand) const {
    return isa<MemRefType>(operand->get().getType()) &&
           loops.isGapless(loops.getOperand(operand));
  }

  /// Neighbours in two rows at most: the indices of both, without that along
  /// the row; of each lane whether it is in the second, and its index there.
  struct FlatPlace {
    SmallVector<Value> rows[2];
    SmallVector<Value> isNext, indices;
  };

  /// What each output has for each lane; null where that is not read.
  using Lanes = SmallVector<SmallVector<Value>>;
  /// `ivs` are those of the first lane. What `found` has of an operand is not
  /// loaded.
  using Found = llvm::SmallDenseMap<OpOperand *, SmallVector<Value>>;
  Lanes loadInputs(ArrayRef<Value> ivs, int64_t lanes,
                   const Found &found = Found());
  SmallVector<Value> load(OpOperand *operand, ArrayRef<Value> ivs,
                          int64_t lanes);
  Lanes loadInits(ArrayRef<Value> ivs, int64_t lanes);
  /// What the body yields of `inputs`; of `isChained` lanes each continues what
  /// the one before yields, and the last one's is all that is returned.
  Lanes compute(ArrayRef<Value> ivs, const Lanes &inputs, const Lanes &inits,
                bool isChained = false);
  void storeInits(ArrayRef<Value> ivs, const Lanes &values);
  /// The same of flat lanes, in FlatBody.cpp.
  SmallVector<Value> loadFlat(OpOperand *operand, const FlatPlace &place);
  Lanes computeFlat(const FlatPlace &place, const Lanes &inputs,
                    const Lanes &inits);

  /// How many of `lanes` lie side by side in a strided operand, at a multiple
  /// of their number as far as is known; and how many one access can have.
  int64_t getAligned(const StridedOperand &operand, int64_t lanes);
  int64_t getWidth(const StridedOperand &operand, int64_t lanes);
  /// The same of a load in the body, of rows or of windows in them.
  int64_t getRowWidth(memref::LoadOp load, int64_t lanes);
  /// Whether the body loads single elements: lanes that threads beside each
  /// other have are far apart then.
  bool loadsElements(int64_t lanes);

private:
  Value getPointer(const StridedOperand &operand);
  Value getOffset(const StridedOperand &operand, ArrayRef<Value> ivs);
  Value getIndex(OpFoldResult value);
  /// The index of a loop of the operation, in a lane.
  Value getDimIndex(unsigned dim, ArrayRef<Value> ivs, int64_t lane);
  SmallVector<Value> loadFrom(Value pointer, Value offset, Value stride,
                              Type type, int64_t lanes, int64_t width);
  Value loadOpaque(OpOperand *operand, ArrayRef<Value> ivs, int64_t lane);

  /// What `width` lanes read of a row that each has the next element of;
  /// `mapping` is the first one's.
  SmallVector<Value> loadRow(memref::LoadOp load, const IRMapping &mapping,
                             int64_t width);
  SmallVector<Value> getLaneIvs(const FlatPlace &place, int64_t lane);
  SmallVector<Value> loadFlatElements(memref::LoadOp load,
                                      const FlatPlace &place,
                                      ArrayRef<IRMapping> rows,
                                      ArrayRef<IRMapping> lanes);
  bool isVarying(Value value) const { return varying.contains(value); }
  void findVarying(bool isChained);

  RewriterBase &b;
  linalg::LinalgOp op;
  Location loc;
  const StridedLoops &loops;
  unsigned along;
  bool isAligned = true;
  bool isFlat = false;
  /// What lanes have different values of.
  llvm::SmallDenseSet<Value> varying;
};

/// What an element is in memory, and a value as that.
IntegerType getWord(Type type);
Value fromWord(OpBuilder &b, Location loc, Value word, Type type);
Value toWord(OpBuilder &b, Location loc, Value value);

/// The elements of a memref of the device's memory.
Value getGlobalPointer(OpBuilder &b, Location loc, Value memref);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_LINALGTOGPU_STRIDEDBODY_H

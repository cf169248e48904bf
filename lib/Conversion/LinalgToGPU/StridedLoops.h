//===- StridedLoops.h - Loops and how operands go along them ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_LINALGTOGPU_STRIDEDLOOPS_H
#define FP8_LIB_CONVERSION_LINALGTOGPU_STRIDEDLOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// One loop of a structured operation on memrefs, or neighbours of them, the
/// outermost first, through which each operand goes as through one.
struct StridedLoop {
  SmallVector<unsigned> dims;
  OpFoldResult size;
  bool isReduction;
};

/// Where an operand's elements are: in elements from its memref's pointer.
struct StridedOperand {
  OpOperand *operand;
  /// Strides of each loop, if it goes along the memref at a constant distance
  /// and elements are whole bytes, of which memory accesses can have several.
  SmallVector<OpFoldResult> strides;
  OpFoldResult offset;
  bool isStrided = false;

  /// The stride of a loop, 0 if all of it has the same element; none if that
  /// shows only when the program runs.
  std::optional<int64_t> getStride(unsigned loop) const {
    return getConstantIntValue(strides[loop]);
  }
  bool isConsecutive(unsigned loop) const {
    return isStrided && getStride(loop) == 1;
  }
  bool isSame(unsigned loop) const { return isStrided && getStride(loop) == 0; }
};

/// The loops of an operation without those of one iteration. Parallel ones come
/// first, in the order of what is written, and the others in theirs.
class StridedLoops {
public:
  /// What is not known yet is computed at the builder's place; none if what
  /// `op` writes is not strided.
  static std::optional<StridedLoops> get(RewriterBase &b, linalg::LinalgOp op);

  ArrayRef<StridedLoop> getLoops() const { return loops; }
  unsigned getNumParallel() const {
    return llvm::count_if(
        loops, [](const StridedLoop &loop) { return !loop.isReduction; });
  }
  const StridedOperand &getOperand(OpOperand *operand) const {
    return operands[operand->getOperandNumber()];
  }
  ArrayRef<StridedOperand> getOperands() const { return operands; }
  /// Whether the loops, which are parallel, go through an operand in the order
  /// that it lies in, from its memref's pointer on and without gaps.
  bool isGapless(const StridedOperand &operand) const;
  /// The loop that is `dim` and nothing else; none if it has one iteration.
  std::optional<unsigned> findLoop(unsigned dim) const;

private:
  void sort(linalg::LinalgOp op);
  bool canMerge(unsigned outer, linalg::LinalgOp op,
                const llvm::SmallBitVector &isApart) const;
  void merge(RewriterBase &b, linalg::LinalgOp op);

  SmallVector<StridedLoop> loops;
  SmallVector<StridedOperand> operands;
};

/// The bytes of an element that loads and stores of several can have; none if
/// they cannot.
std::optional<int64_t> getElementBytes(Type type);

/// The distance of neighbours in each dimension of a memref, and of the first
/// element from its pointer; failure if it has no such distances.
LogicalResult getMixedLayout(OpBuilder &b, Location loc, Value memref,
                             SmallVectorImpl<OpFoldResult> &strides,
                             OpFoldResult &offset);

OpFoldResult multiply(OpBuilder &b, Location loc, OpFoldResult lhs,
                      OpFoldResult rhs);
OpFoldResult add(OpBuilder &b, Location loc, OpFoldResult lhs,
                 OpFoldResult rhs);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_LINALGTOGPU_STRIDEDLOOPS_H

//===- ScalarBody.h - One iteration of a structured operation ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_LINALGTOLOOPS_SCALARBODY_H
#define FP8_LIB_CONVERSION_LINALGTOLOOPS_SCALARBODY_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// What the outputs of an operation on memrefs have been filled with: a list of
/// constants, and of nothing for those that are read.
inline constexpr llvm::StringLiteral kFilledName("fp8.filled");
/// The constant that an output has been filled with, or null.
Value getFilled(OpBuilder &b, linalg::LinalgOp op, OpOperand *operand);

/// Loads, computes and stores one element of the iteration space of a linalg
/// op on memrefs. `ivs` has an index for each of its loops; null stands for a
/// loop that is not open yet.
class ScalarBody {
public:
  ScalarBody(RewriterBase &rewriter, linalg::LinalgOp op)
      : b(rewriter), op(op), loc(op.getLoc()) {}

  /// Whether the old value of every output is used, as reductions do.
  bool readsInits();
  /// The old values, null where they are not used.
  SmallVector<Value> loadInits(ArrayRef<Value> ivs);
  void storeInits(ValueRange values, ArrayRef<Value> ivs);
  /// Clones the body at `ivs` with `inits` as the values of the outputs and
  /// returns the values it yields.
  SmallVector<Value> inlineBody(ArrayRef<Value> ivs, ValueRange inits);
  /// What the innermost loop computes of its indices and of carried values.
  using Innermost = llvm::function_ref<SmallVector<Value>(ArrayRef<Value> ivs,
                                                          ValueRange inits)>;
  /// Loops over `dims` inside of `ivs`, carrying `inits`, around `innermost`.
  SmallVector<Value> buildLoops(ArrayRef<Range> ranges, ArrayRef<unsigned> dims,
                                MutableArrayRef<Value> ivs, ValueRange inits,
                                Innermost innermost);
  /// And around the body.
  SmallVector<Value> buildLoops(ArrayRef<Range> ranges, ArrayRef<unsigned> dims,
                                MutableArrayRef<Value> ivs, ValueRange inits) {
    return buildLoops(ranges, dims, ivs, inits,
                      [&](ArrayRef<Value> ivs, ValueRange inits) {
                        return inlineBody(ivs, inits);
                      });
  }

  SmallVector<Value> getIndices(OpOperand *operand, ArrayRef<Value> ivs);

private:
  Value load(OpOperand *operand, ArrayRef<Value> ivs);

  RewriterBase &b;
  linalg::LinalgOp op;
  Location loc;
};

/// LLVM's memcpy and the device's serve contiguous memrefs only.
bool isContiguous(Value memref);

/// Makes copies between memrefs that are not contiguous structured operations.
void replaceStridedCopies(RewriterBase &rewriter, Operation *root);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_LINALGTOLOOPS_SCALARBODY_H

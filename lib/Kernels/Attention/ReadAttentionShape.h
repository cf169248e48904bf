//===- ReadAttentionShape.h - What both operations have ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_READATTENTIONSHAPE_H
#define FP8_LIB_KERNELS_ATTENTION_READATTENTIONSHAPE_H

#include "AttentionShape.h"
#include "fp8/IR/Dropout.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::fp8 {

/// Reads the layout, extents and the window of an attention or of its
/// gradients; fails, with the reason, if no kernel is for them.
template <typename Op>
LogicalResult readExtents(AttentionShape &shape, Op op, int64_t keys,
                          std::string &reason) {
  shape.layout = op.getLayout();
  int64_t sequence = op.getSequenceDim(), head = op.getHeadDim();
  ArrayRef<int64_t> q = AttentionOp::getShapeOf(op.getQ());
  shape.batch = q[0];
  shape.queries = q[sequence];
  shape.keys = keys;
  shape.heads = q[head];
  shape.headsOfK = AttentionOp::getShapeOf(op.getK())[head];
  shape.headDim = q[3];
  shape.headDimOfV = AttentionOp::getShapeOf(op.getV())[3];
  if (shape.heads == 0 || ShapedType::isDynamic(shape.headDim) ||
      ShapedType::isDynamic(shape.headDimOfV)) {
    reason = llvm::formatv("expected static head dimensions and heads, but got "
                           "{0} and {1}",
                           op.getQ().getType(), op.getV().getType());
    return failure();
  }
  shape.left = op.getLeft();
  shape.right = op.getRight();
  // Numbers of keys are 32 bits with a sign.
  for (std::optional<int64_t> side : {shape.left, shape.right})
    if (side && *side >= (int64_t(1) << 30)) {
      reason = llvm::formatv(
          "expected sides of a window below 2^30, but got {0}", *side);
      return failure();
    }
  return success();
}

/// The same of what scores are multiplied by, bend towards and are left out by.
template <typename Op>
LogicalResult readScores(AttentionShape &shape, Op op, std::string &reason) {
  shape.scale = op.getSoftmaxScale().convertToFloat();
  if (std::optional<APFloat> cap = op.getCap()) {
    shape.cap = cap->convertToFloat();
    if (*shape.cap > kLargestCap) {
      reason = llvm::formatv("expected a cap of at most {0}, but got {1}",
                             kLargestCap, *shape.cap);
      return failure();
    }
  }
  shape.dropThreshold = getDropThreshold(op.getRate());
  return success();
}

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_READATTENTIONSHAPE_H

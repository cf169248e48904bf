//===- CastMovement.h - Data movement on scaled values ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_CASTS_CASTMOVEMENT_H
#define FP8_LIB_TRANSFORMS_CASTS_CASTMOVEMENT_H

#include "fp8/IR/FP8Ops.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/Statistic.h"

namespace mlir::fp8 {

/// What the patterns of fp8-simplify-casts count.
struct CastCounts {
  llvm::Statistic &moved;
  llvm::Statistic &removed;
};

// For each operation that moves data:
//   getMovedType(op, type)  the type of the moved value, given the scaled type
//                           of its source;
//   getSourceType(op, type) the converse;
//   move(rewriter, op, q)   the operation on a scaled value.
// The types fail where a block would be cut, or hold other elements.

FailureOr<ScaledType> getMovedType(linalg::TransposeOp op, ScaledType type);
FailureOr<ScaledType> getSourceType(linalg::TransposeOp op, ScaledType type);
Value move(PatternRewriter &rewriter, linalg::TransposeOp op, Value scaled);

FailureOr<ScaledType> getMovedType(tensor::CollapseShapeOp op, ScaledType type);
FailureOr<ScaledType> getSourceType(tensor::CollapseShapeOp op,
                                    ScaledType type);
Value move(PatternRewriter &rewriter, tensor::CollapseShapeOp op, Value scaled);

FailureOr<ScaledType> getMovedType(tensor::ExpandShapeOp op, ScaledType type);
FailureOr<ScaledType> getSourceType(tensor::ExpandShapeOp op, ScaledType type);
Value move(PatternRewriter &rewriter, tensor::ExpandShapeOp op, Value scaled);

FailureOr<ScaledType> getMovedType(tensor::CastOp op, ScaledType type);
FailureOr<ScaledType> getSourceType(tensor::CastOp op, ScaledType type);
Value move(PatternRewriter &rewriter, tensor::CastOp op, Value scaled);

FailureOr<ScaledType> getMovedType(linalg::BroadcastOp op, ScaledType type);
FailureOr<ScaledType> getSourceType(linalg::BroadcastOp op, ScaledType type);
Value move(PatternRewriter &rewriter, linalg::BroadcastOp op, Value scaled);

/// Zeros at the end, which are codes of zero whatever the scale: it is finite
/// where a recipe gives it. They make no block of their own, whose factor the
/// recipe would have to give.
FailureOr<ScaledType> getMovedType(tensor::PadOp op, ScaledType type);
FailureOr<ScaledType> getSourceType(tensor::PadOp op, ScaledType type);
Value move(PatternRewriter &rewriter, tensor::PadOp op, Value scaled);

FailureOr<ScaledType> getMovedType(tensor::ExtractSliceOp op, ScaledType type);
Value move(PatternRewriter &rewriter, tensor::ExtractSliceOp op, Value scaled);

/// Whether bodies of linalg operations may hold the codes: E2M1 has no type of
/// its own in memory.
bool hasWholeBytes(ScaledType type);

/// Casts through tensors that `tensor.insert_slice` puts together.
void populateConcatenationPatterns(RewritePatternSet &patterns,
                                   CastCounts &counts);
/// Dequantizes of tables of which rows are looked up.
void populateGatherPatterns(RewritePatternSet &patterns, CastCounts &counts);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_CASTS_CASTMOVEMENT_H

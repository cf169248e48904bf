//===- CanonicalGemm.h - Contractions in one canonical form -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_CANONICALGEMM_H
#define FP8_TRANSFORMS_CANONICALGEMM_H

#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::linalg {
class ContractOp;
}

namespace mlir::fp8 {

/// Whether `op` multiplies two floats or integers and adds: a contraction in
/// the sense of the passes, whatever its types and maps. Products of matrices
/// whose elements it computes itself, from a zero point or a factor, are too.
bool isContraction(linalg::LinalgOp op);

/// A contraction C += A * B with its loops sorted by what they do.
struct Contraction {
  mutable linalg::LinalgOp op;
  linalg::ContractionDimensions dims;
  /// Whether A is the second input of the op, and B the first.
  bool isExchanged = false;

  OpOperand *getOperandA() const { return op.getDpsInputOperand(isExchanged); }
  OpOperand *getOperandB() const { return op.getDpsInputOperand(!isExchanged); }
  Value getA() const { return getOperandA()->get(); }
  Value getB() const { return getOperandB()->get(); }
  Value getInit() const { return op.getDpsInitOperand(0)->get(); }

  /// The same computation with A and B, M and N in each other's place.
  Contraction exchange() const;

  /// Product of the extents of `loops`; kDynamic if one is dynamic.
  int64_t getExtent(ArrayRef<unsigned> loops) const;
};

/// Why an operation is not a contraction that can be quantized: the end of a
/// sentence that begins "the contraction", and what would change that.
struct ContractionMismatch {
  std::string reason, suggestion;
};

/// Matches a contraction on ranked tensors of f32, bf16 or f16 whose operands
/// are indexed by distinct loops, each of them batch, M, N or K. On failure
/// `mismatch` says what is different.
FailureOr<Contraction> matchContraction(linalg::LinalgOp op,
                                        ContractionMismatch &mismatch);

/// [batch x] M x K of A, or [batch x] N x K of B, as a new value where it is
/// not the operand itself. Several batch loops collapse into one, none gives a
/// 2-D result; likewise for M, N and K.
Value buildCanonicalA(RewriterBase &rewriter, const Contraction &contraction);
Value buildCanonicalB(RewriterBase &rewriter, const Contraction &contraction);

/// An operand as above, or with K before M or N where that is how it lies in
/// memory and the other would be a copy.
struct StoredOperand {
  Value value;
  bool isTransposed;
};
StoredOperand buildStoredA(RewriterBase &rewriter,
                           const Contraction &contraction);
StoredOperand buildStoredB(RewriterBase &rewriter,
                           const Contraction &contraction);

/// Whether the result of `contraction` lies in memory as [batch x] M x N.
bool hasCanonicalResult(const Contraction &contraction);

/// [batch x] M x N of the init, in f32, as a new value.
Value buildCanonicalInit(RewriterBase &rewriter,
                         const Contraction &contraction);

/// The type and layout of the result, from `product`, [batch x] M x N in f32.
Value buildResult(RewriterBase &rewriter, const Contraction &contraction,
                  Value product);

/// A canonical contraction in f32 of `a` and `b`, [batch x] M x K and
/// [batch x] N x K in f32, accumulated onto the init of `contraction`, and the
/// way back to the type and layout of its result.
struct CanonicalResult {
  linalg::ContractOp contract;
  Value result;
};
CanonicalResult buildCanonicalContract(RewriterBase &rewriter,
                                       const Contraction &contraction, Value a,
                                       Value b);

/// Whether `contract` is [batch x] M x K times [batch x] N x K to
/// [batch x] M x N.
bool isCanonical(linalg::ContractOp contract);

/// Elementwise cast of a float tensor; the value itself if the type is right.
Value castElements(OpBuilder &builder, Location loc, Value tensor,
                   Type elementType);

/// Elementwise sum of float tensors of one type. It does not write over either,
/// so that it can move into the epilogue of the matmul that computes one.
Value addElements(OpBuilder &builder, Location loc, Value lhs, Value rhs);

/// Whether every element of `tensor` is known to be (positive or negative)
/// zero.
bool isKnownZero(Value tensor);

} // namespace mlir::fp8

#endif // FP8_TRANSFORMS_CANONICALGEMM_H

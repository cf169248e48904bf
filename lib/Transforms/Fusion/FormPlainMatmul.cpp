//===- FormPlainMatmul.cpp - High-precision products to fp8.matmul --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils/Widening.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-form-plain-matmul"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FORMPLAINMATMULPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Whether the tensor core multiplies the elements of A and B as they are;
/// f32 it multiplies as TF32.
static bool isMultiplied(Type a, Type b, bool tf32) {
  if (a != b)
    return false;
  return a.isBF16() || a.isF16() || (tf32 && a.isF32());
}

/// `contraction` on what its operands were widened from.
static Contraction narrow(RewriterBase &rewriter, Contraction contraction,
                          Value a, Value b) {
  linalg::LinalgOp op = contraction.op;
  if (a == contraction.getA() && b == contraction.getB())
    return contraction;
  auto contract = linalg::ContractOp::create(
      rewriter, op.getLoc(), op->getResultTypes(), ValueRange{a, b},
      ValueRange{contraction.getInit()},
      rewriter.getAffineMapArrayAttr(op.getIndexingMapsArray()));
  contract->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.replaceOp(op, contract);
  contraction.op = contract;
  return contraction;
}

/// `operand` before the program transposed it, as frameworks do with weights.
static StoredOperand skipTranspose(StoredOperand operand) {
  auto transpose = operand.value.getDefiningOp<linalg::TransposeOp>();
  if (!transpose)
    return operand;
  auto permutation = llvm::to_vector(transpose.getPermutation());
  std::swap(permutation[permutation.size() - 2], permutation.back());
  if (!isIdentityPermutation(permutation))
    return operand;
  return {transpose.getInput(), !operand.isTransposed};
}

/// Elements of a row that bulk copies of an operand read: whole 16 bytes.
static int64_t getRowMultiple(Value operand) {
  return 128 / getElementTypeOrSelf(operand).getIntOrFloatBitWidth();
}

/// Whether its rows are such, as far as is known.
static bool hasWholeRows(const StoredOperand &operand) {
  int64_t extent =
      cast<RankedTensorType>(operand.value.getType()).getShape().back();
  return ShapedType::isDynamic(extent) ||
         extent % getRowMultiple(operand.value) == 0;
}

/// `operand` with `amount` zeros at the end of K.
static Value padK(RewriterBase &rewriter, Location loc,
                  const StoredOperand &operand, int64_t amount) {
  auto type = cast<RankedTensorType>(operand.value.getType());
  int64_t dim = type.getRank() - (operand.isTransposed ? 2 : 1);
  SmallVector<OpFoldResult> low(type.getRank(), rewriter.getIndexAttr(0));
  SmallVector<OpFoldResult> high = low;
  high[dim] = rewriter.getIndexAttr(amount);
  SmallVector<int64_t> shape(type.getShape());
  if (!type.isDynamicDim(dim))
    shape[dim] += amount;
  Value zero = arith::ConstantOp::create(
      rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
  return tensor::PadOp::create(rewriter, loc, type.clone(shape), operand.value,
                               low, high, zero);
}

/// Copies of operands that bulk copies can read in place of those that they
/// cannot: K innermost, and filled up with zeros, which change no sum.
static void fitRows(RewriterBase &rewriter, const Contraction &contraction,
                    StoredOperand &a, StoredOperand &b) {
  if (a.isTransposed && !hasWholeRows(a))
    a = {buildCanonicalA(rewriter, contraction), /*isTransposed=*/false};
  if (b.isTransposed && !hasWholeRows(b))
    b = {buildCanonicalB(rewriter, contraction), /*isTransposed=*/false};
  if (hasWholeRows(a) && hasWholeRows(b))
    return;
  // That of which it is known.
  const StoredOperand &odd = hasWholeRows(a) ? b : a;
  int64_t k = cast<RankedTensorType>(odd.value.getType()).getShape().back();
  int64_t amount = llvm::alignTo(k, getRowMultiple(odd.value)) - k;
  Location loc = contraction.op.getLoc();
  Value padded = padK(rewriter, loc, a, amount);
  b.value = padK(rewriter, loc, b, amount);
  a.value = padded;
}

static void formMatmul(RewriterBase &rewriter, Contraction contraction) {
  linalg::LinalgOp op = contraction.op;
  Location loc = op.getLoc();
  // The result is written as it lies: that of the other product is its
  // transpose.
  if (!hasCanonicalResult(contraction) &&
      hasCanonicalResult(contraction.exchange()))
    contraction = contraction.exchange();
  // The tensor core transposes elements of 16 bits only; of f32 K is innermost.
  bool asStored = !getElementTypeOrSelf(contraction.getA().getType()).isF32();
  StoredOperand a =
      asStored ? skipTranspose(buildStoredA(rewriter, contraction))
               : StoredOperand{buildCanonicalA(rewriter, contraction), false};
  StoredOperand b =
      asStored ? skipTranspose(buildStoredB(rewriter, contraction))
               : StoredOperand{buildCanonicalB(rewriter, contraction), false};
  fitRows(rewriter, contraction, a, b);
  auto aType = cast<RankedTensorType>(a.value.getType());
  auto bType = cast<RankedTensorType>(b.value.getType());
  int64_t rank = aType.getRank();
  SmallVector<int64_t> shape(aType.getShape());
  shape[rank - 2] = aType.getDimSize(a.isTransposed ? rank - 1 : rank - 2);
  shape[rank - 1] = bType.getDimSize(b.isTransposed ? rank - 1 : rank - 2);
  auto type = RankedTensorType::get(shape, rewriter.getF32Type());
  auto matmul =
      MatmulOp::create(rewriter, loc, type, a.value, b.value,
                       /*epilogueOperands=*/ValueRange(), Accumulate::Fast,
                       a.isTransposed, b.isTransposed);
  for (StringRef name : {kNameAttrName, kRoleAttrName})
    if (Attribute value = op->getAttr(name))
      matmul->setAttr(name, value);
  Value product = matmul.getResult();
  if (!isKnownZero(contraction.getInit()))
    product = addElements(rewriter, loc, product,
                          buildCanonicalInit(rewriter, contraction));
  rewriter.replaceOp(op, buildResult(rewriter, contraction, product));
}

namespace {
struct FormPlainMatmulPass
    : fp8::impl::FormPlainMatmulPassBase<FormPlainMatmulPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void FormPlainMatmulPass::runOnOperation() {
  SmallVector<linalg::LinalgOp> ops;
  getOperation()->walk([&](linalg::LinalgOp op) {
    if (isContraction(op))
      ops.push_back(op);
  });
  for (linalg::LinalgOp op : ops) {
    ContractionMismatch mismatch;
    FailureOr<Contraction> contraction = matchContraction(op, mismatch);
    if (failed(contraction)) {
      LDBG() << "not formed, for it " << mismatch.reason << ": "
             << OpWithFlags(op, OpPrintingFlags().skipRegions());
      continue;
    }
    Value a = skipWidening(contraction->getA());
    Value b = skipWidening(contraction->getB());
    // Operands of different types meet where both were widened to.
    if (getElementTypeOrSelf(a) != getElementTypeOrSelf(b)) {
      a = contraction->getA();
      b = contraction->getB();
    }
    if (!isMultiplied(getElementTypeOrSelf(a), getElementTypeOrSelf(b), tf32)) {
      LDBG() << "not formed, for its elements are " << a.getType() << " and "
             << b.getType() << ": "
             << OpWithFlags(op, OpPrintingFlags().skipRegions());
      continue;
    }
    IRRewriter rewriter(op);
    LDBG() << "formed: " << OpWithFlags(op, OpPrintingFlags().skipRegions());
    formMatmul(rewriter, narrow(rewriter, *contraction, a, b));
    ++numMatmuls;
  }
}

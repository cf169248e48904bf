//===- WidenContractions.cpp - High-precision contractions in f32 ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/CanonicalGemm.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-widen-contractions"

namespace mlir::fp8 {
#define GEN_PASS_DEF_WIDENCONTRACTIONSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Whether the loops are one M, one N, one K and at most one batch, in whatever
/// order: what a matrix product of any strides computes.
static bool isSimple(const Contraction &contraction) {
  const linalg::ContractionDimensions &dims = contraction.dims;
  return dims.batch.size() <= 1 && dims.m.size() == 1 && dims.n.size() == 1 &&
         dims.k.size() == 1;
}

/// The same contraction on f32, transposes left to the strides.
static Value widenInPlace(RewriterBase &rewriter,
                          const Contraction &contraction) {
  linalg::LinalgOp op = contraction.op;
  Location loc = op.getLoc();
  Type f32 = rewriter.getF32Type();
  Value init = contraction.getInit();
  Value acc = castElements(rewriter, loc, init, f32);
  if (isKnownZero(init)) {
    Value empty = tensor::EmptyOp::create(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, init), f32);
    Value zero = arith::ConstantOp::create(rewriter, loc,
                                           rewriter.getF32FloatAttr(0.0f));
    acc = linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);
  }
  Value a = castElements(rewriter, loc, contraction.getA(), f32);
  Value b = castElements(rewriter, loc, contraction.getB(), f32);
  auto contract = linalg::ContractOp::create(
      rewriter, loc, TypeRange{acc.getType()}, ValueRange{a, b},
      ValueRange{acc},
      rewriter.getAffineMapArrayAttr(op.getIndexingMapsArray()));
  Value result = castElements(rewriter, loc, contract->getResult(0),
                              getElementTypeOrSelf(init));
  if (result.getType() != op->getResult(0).getType())
    result = tensor::CastOp::create(rewriter, loc, op->getResult(0).getType(),
                                    result);
  return result;
}

namespace {
struct WidenContractionsPass
    : fp8::impl::WidenContractionsPassBase<WidenContractionsPass> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<Contraction> contractions;
    getOperation()->walk([&](linalg::LinalgOp op) {
      ContractionMismatch unused;
      if (!isContraction(op) || !op.hasPureTensorSemantics())
        return;
      bool isF32 = llvm::all_of(op->getOperandTypes(), [](Type type) {
        return getElementTypeOrSelf(type).isF32();
      });
      FailureOr<Contraction> contraction = matchContraction(op, unused);
      if (succeeded(contraction) && !(isF32 && isSimple(*contraction)))
        contractions.push_back(*contraction);
    });
    Type f32 = Float32Type::get(&getContext());
    for (const Contraction &contraction : contractions) {
      linalg::LinalgOp op = contraction.op;
      IRRewriter rewriter(op);
      ++numWidened;
      LDBG() << "widened "
             << (isSimple(contraction) ? "in place: " : "and collapsed: ")
             << OpWithFlags(op, OpPrintingFlags().skipRegions());
      if (isSimple(contraction)) {
        rewriter.replaceOp(op, widenInPlace(rewriter, contraction));
        continue;
      }
      Value a = castElements(rewriter, op.getLoc(),
                             buildCanonicalA(rewriter, contraction), f32);
      Value b = castElements(rewriter, op.getLoc(),
                             buildCanonicalB(rewriter, contraction), f32);
      rewriter.replaceOp(
          op, buildCanonicalContract(rewriter, contraction, a, b).result);
    }
  }
};
} // namespace

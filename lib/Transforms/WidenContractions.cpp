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

namespace mlir::fp8 {
#define GEN_PASS_DEF_WIDENCONTRACTIONSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct WidenContractions
    : fp8::impl::WidenContractionsPassBase<WidenContractions> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<Contraction> contractions;
    getOperation()->walk([&](linalg::LinalgOp op) {
      std::string reason;
      if (!isFloatContraction(op) || !op.hasPureTensorSemantics())
        return;
      auto contract = dyn_cast<linalg::ContractOp>(op.getOperation());
      bool isF32 = llvm::all_of(op->getOperandTypes(), [](Type type) {
        return getElementTypeOrSelf(type).isF32();
      });
      if (contract && isCanonical(contract) && isF32)
        return;
      FailureOr<Contraction> contraction = matchContraction(op, reason);
      if (succeeded(contraction))
        contractions.push_back(*contraction);
    });
    Type f32 = Float32Type::get(&getContext());
    for (const Contraction &contraction : contractions) {
      linalg::LinalgOp op = contraction.op;
      IRRewriter rewriter(op);
      Value a = castElements(rewriter, op.getLoc(),
                             buildCanonicalA(rewriter, contraction), f32);
      Value b = castElements(rewriter, op.getLoc(),
                             buildCanonicalB(rewriter, contraction), f32);
      rewriter.replaceOp(
          op, buildCanonicalContract(rewriter, contraction, a, b).result);
      ++numWidened;
    }
  }
};
} // namespace

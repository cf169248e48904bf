//===- LowerExactMath.cpp - Functions without a device library ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DoubleFunctions.h"
#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "fp8/GPU/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWEREXACTMATHPASS
#include "fp8/GPU/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// The intrinsic that LLVM has an instruction for. Upstream's conversion to
/// NVVM would call a device library instead, and refuses the llvm dialect's own
/// operations for these.
static StringRef getIntrinsic(Operation *op) {
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](math::AbsFOp) { return "llvm.fabs"; })
      .Case([](math::CeilOp) { return "llvm.ceil"; })
      .Case([](math::CopySignOp) { return "llvm.copysign"; })
      .Case([](math::FloorOp) { return "llvm.floor"; })
      .Case([](math::FmaOp) { return "llvm.fma"; })
      .Case([](math::RoundEvenOp) { return "llvm.roundeven"; })
      .Case([](math::RoundOp) { return "llvm.round"; })
      .Case([](math::SqrtOp) { return "llvm.sqrt"; })
      .Case([](math::TruncOp) { return "llvm.trunc"; })
      .Default(StringRef());
}

/// The same of what upstream expands without an order of zeros.
static StringRef getExtremum(Operation *op) {
  if (!op->getNumResults() || !op->getResult(0).getType().isF32())
    return StringRef();
  return llvm::TypeSwitch<Operation *, StringRef>(op)
      .Case([](arith::MaximumFOp) { return "llvm.maximum"; })
      .Case([](arith::MinimumFOp) { return "llvm.minimum"; })
      .Default(StringRef());
}

/// Integers and tests of bits, which LLVM expands.
static bool isSupported(Operation *op) {
  if (isa<arith::RemFOp>(op))
    return false;
  return !isa_and_present<math::MathDialect>(op->getDialect()) ||
         isa<math::AbsIOp, math::CountLeadingZerosOp,
             math::CountTrailingZerosOp, math::CtPopOp, math::IsFiniteOp,
             math::IsInfOp, math::IsNaNOp, math::IsNormalOp>(op);
}

namespace {
/// By the natural one, which has an approximation.
struct ExpandLog10 : OpRewritePattern<math::Log10Op> {
  using Base::Base;
  LogicalResult matchAndRewrite(math::Log10Op op,
                                PatternRewriter &rewriter) const override {
    Type type = op.getType();
    if (!type.isF32())
      return rewriter.notifyMatchFailure(op, "expected f32");
    Value log = math::LogOp::create(rewriter, op.getLoc(), op.getOperand());
    Value factor = arith::ConstantOp::create(
        rewriter, op.getLoc(),
        rewriter.getF32FloatAttr(0.434294481903251827651f));
    rewriter.replaceOpWithNewOp<arith::MulFOp>(op, log, factor);
    return success();
  }
};

struct LowerExactMathPass
    : fp8::impl::LowerExactMathPassBase<LowerExactMathPass> {
  using Base::Base;

  void runOnOperation() override {
    auto math = getOperation()->getAttrOfType<KernelMathAttr>(kMathAttrName);
    if (math && math.getValue() != KernelMath::Exact)
      return markAllAnalysesPreserved();
    RewritePatternSet patterns(&getContext());
    math::populateExpansionPatterns(patterns,
                                    {"acosh", "asinh", "atanh", "cosh", "exp2",
                                     "fpowi", "powf", "rsqrt", "sinh", "tan"});
    auto isCall = [](StringRef name) {
      return llvm::is_contained(
          {"math.acos", "math.asin", "math.atan", "math.atan2", "math.cbrt",
           "math.cos", "math.erf", "math.erfc", "math.exp", "math.expm1",
           "math.log", "math.log1p", "math.log2", "math.sin", "math.tanh"},
          name);
    };
    populateMathPolynomialApproximationPatterns(patterns, isCall);
    patterns.add<ExpandLog10>(&getContext());
    populateDoubleFunctionsPatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    WalkResult result = getOperation().walk([&](Operation *op) {
      StringRef intrinsic = getIntrinsic(op);
      if (intrinsic.empty())
        intrinsic = getExtremum(op);
      if (!intrinsic.empty()) {
        rewriter.setInsertionPoint(op);
        Type type = op->getResult(0).getType();
        std::string name =
            (intrinsic + ".f" + Twine(type.getIntOrFloatBitWidth())).str();
        rewriter.replaceOpWithNewOp<LLVM::CallIntrinsicOp>(
            op, type, rewriter.getStringAttr(name), op->getOperands());
        return WalkResult::advance();
      }
      if (isSupported(op))
        return WalkResult::advance();
      op->emitOpError("is not supported on a GPU on ")
          << op->getResult(0).getType();
      return WalkResult::interrupt();
    });
    if (result.wasInterrupted())
      signalPassFailure();
  }
};
} // namespace

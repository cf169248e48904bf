//===- FuseCasts.cpp - Casts into epilogues -------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "fp8/Support/RewriteLog.h"
#include "fp8/Transforms/Passes.h"
#include "fp8/Transforms/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#define DEBUG_TYPE "fp8-fuse-casts"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FUSECASTSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static bool isWhole(ArrayRef<int64_t> block) {
  return llvm::all_of(
      block, [](int64_t extent) { return extent == ScaledType::kWhole; });
}

/// x in [-limit, limit], NaN staying NaN: the clamp of fp8.quantize.
static Value buildClamp(OpBuilder &b, Location loc, Value x, float limit) {
  for (auto [predicate, bound] : {std::pair{arith::CmpFPredicate::OGT, limit},
                                  {arith::CmpFPredicate::OLT, -limit}}) {
    Value constant =
        arith::ConstantOp::create(b, loc, b.getF32FloatAttr(bound));
    Value beyond = arith::CmpFOp::create(b, loc, predicate, x, constant);
    x = arith::SelectOp::create(b, loc, beyond, constant, x);
  }
  return x;
}

/// The same matmul whose epilogue ends with what `finish` makes of what the old
/// one yields, and of an element of each new operand.
static MatmulOp extendEpilogue(
    PatternRewriter &rewriter, MatmulOp op, Type resultType, Type amaxType,
    ValueRange newOperands,
    llvm::function_ref<SmallVector<Value>(ValueRange, ValueRange)> finish) {
  Location loc = op.getLoc();
  SmallVector<Value> operands(op.getEpilogueOperands());
  llvm::append_range(operands, newOperands);
  auto extended = MatmulOp::create(
      rewriter, loc, resultType, amaxType, op.getA(), op.getB(), operands,
      op.getAccumulate(), op.getTransposeA(), op.getTransposeB());
  extended->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  SmallVector<Type> types{rewriter.getF32Type()};
  for (Value operand : operands)
    types.push_back(getElementTypeOrSelf(operand));
  OpBuilder::InsertionGuard guard(rewriter);
  Block *body = rewriter.createBlock(&extended.getEpilogue(), {}, types,
                                     SmallVector<Location>(types.size(), loc));
  SmallVector<Value> yielded{body->getArgument(0)};
  Type stored = op.getResult().getType().getElementType();
  if (op.hasEpilogue()) {
    IRMapping mapping;
    Block &old = op.getEpilogue().front();
    for (BlockArgument argument : old.getArguments())
      mapping.map(argument, body->getArgument(argument.getArgNumber()));
    for (Operation &inner : old.without_terminator())
      rewriter.clone(inner, mapping);
    yielded.clear();
    for (Value value : old.getTerminator()->getOperands())
      yielded.push_back(mapping.lookupOrDefault(value));
  } else if (!stored.isF32()) {
    yielded[0] = arith::TruncFOp::create(rewriter, loc, stored, yielded[0]);
  }
  YieldOp::create(
      rewriter, loc,
      finish(yielded, body->getArguments().take_back(newOperands.size())));
  return extended;
}

static Value widen(OpBuilder &b, Location loc, Value value) {
  return value.getType().isF32()
             ? value
             : arith::ExtFOp::create(b, loc, b.getF32Type(), value).getResult();
}

namespace {
/// An amax is a second result of the matmul whose result it measures.
struct FuseAmax : OpRewritePattern<AmaxOp> {
  FuseAmax(MLIRContext *context, llvm::Statistic &numAmaxes)
      : OpRewritePattern(context), numAmaxes(numAmaxes) {}

  LogicalResult matchAndRewrite(AmaxOp op,
                                PatternRewriter &rewriter) const override {
    auto matmul = op.getSource().getDefiningOp<MatmulOp>();
    if (!matmul || matmul.getAmax() || matmul->getBlock() != op->getBlock())
      return rewriter.notifyMatchFailure(
          op, "not of the result of a matmul, in its block");
    if (!isWhole(op.getBlock()))
      return rewriter.notifyMatchFailure(op,
                                         "of blocks, which no epilogue has");
    if (op.getPropagateNan())
      return rewriter.notifyMatchFailure(op, "the epilogue's ignores NaN");
    rewriter.setInsertionPoint(matmul);
    MatmulOp fused = extendEpilogue(
        rewriter, matmul, matmul.getResult().getType(), op.getAmax().getType(),
        {}, [&](ValueRange yielded, ValueRange) -> SmallVector<Value> {
          return {yielded[0], widen(rewriter, op.getLoc(), yielded[0])};
        });
    rewriter.replaceOp(op, fused.getAmax());
    rewriter.replaceOp(matmul, fused.getResult());
    ++numAmaxes;
    return success();
  }

  llvm::Statistic &numAmaxes;
};

/// A matmul whose result is only quantized yields the codes.
struct FuseQuantize : OpRewritePattern<QuantizeOp> {
  FuseQuantize(MLIRContext *context, llvm::Statistic &numQuantizes)
      : OpRewritePattern(context), numQuantizes(numQuantizes) {}

  LogicalResult matchAndRewrite(QuantizeOp op,
                                PatternRewriter &rewriter) const override {
    auto matmul = op.getSource().getDefiningOp<MatmulOp>();
    ScaledType type = op.getResult().getType();
    if (!matmul || matmul->getBlock() != op->getBlock())
      return rewriter.notifyMatchFailure(
          op, "not of the result of a matmul, in its block");
    if (!matmul.getResult().hasOneUse())
      return rewriter.notifyMatchFailure(op, "others use the result too");
    if (op.isUnresolved() || !isWhole(type.getBlock()) ||
        !isa<Float8E4M3FNType, Float8E5M2Type>(type.getElementType()))
      return rewriter.notifyMatchFailure(op,
                                         "not to 8 bits with one given scale");
    // A copy in the other order needs the tensor in memory: one pass reads it
    // once for both.
    for (Operation *user : op.getResult().getUsers())
      if (isa<TransposeOp>(user))
        return rewriter.notifyMatchFailure(op, "a transposed copy is needed");
    // The scale has to be there before the matmul.
    Operation *scale = op.getScale().getDefiningOp();
    if (scale && scale->getBlock() == matmul->getBlock() &&
        !scale->isBeforeInBlock(matmul)) {
      if (!canMoveBefore(scale, matmul))
        return rewriter.notifyMatchFailure(
            op, "the scale depends on what comes after the matmul");
      rewriter.moveOpBefore(scale, matmul);
    }
    rewriter.setInsertionPoint(matmul);
    Location loc = op.getLoc();
    Type codeType = type.getElementType();
    MatmulOp fused = extendEpilogue(
        rewriter, matmul, type.getPayloadType(),
        matmul.getAmax() ? matmul.getAmax().getType() : Type(), op.getScale(),
        [&](ValueRange yielded, ValueRange scales) {
          SmallVector<Value> results(yielded);
          Value scaled = arith::MulFOp::create(
              rewriter, loc, widen(rewriter, loc, yielded[0]), scales[0]);
          results[0] = arith::TruncFOp::create(
              rewriter, loc, codeType,
              buildClamp(rewriter, loc, scaled, getMaxFinite(codeType)));
          return results;
        });
    if (matmul.getAmax())
      rewriter.replaceAllUsesWith(matmul.getAmax(), fused.getAmax());
    rewriter.setInsertionPoint(op);
    rewriter.replaceOpWithNewOp<AssembleOp>(
        op, type, fused.getResult(), op.getScaleInv(), op.getTensorScaleInv());
    rewriter.eraseOp(matmul);
    ++numQuantizes;
    return success();
  }

  /// Whether `op` is pure, and its operands are there before `place`.
  static bool canMoveBefore(Operation *op, Operation *place) {
    return isPure(op) && llvm::all_of(op->getOperands(), [&](Value operand) {
             Operation *definition = operand.getDefiningOp();
             return !definition ||
                    definition->getBlock() != place->getBlock() ||
                    definition->isBeforeInBlock(place);
           });
  }

  llvm::Statistic &numQuantizes;
};

struct FuseCastsPass : fp8::impl::FuseCastsPassBase<FuseCastsPass> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    populateFuseCastsPatterns(patterns, numAmaxes, numQuantizes);
    RewriteLog log(DEBUG_TYPE);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns),
                                     GreedyRewriteConfig().setListener(&log))))
      signalPassFailure();
  }
};
} // namespace

void fp8::populateFuseCastsPatterns(RewritePatternSet &patterns,
                                    llvm::Statistic &numAmaxes,
                                    llvm::Statistic &numQuantizes) {
  patterns.add<FuseAmax>(patterns.getContext(), numAmaxes);
  patterns.add<FuseQuantize>(patterns.getContext(), numQuantizes);
}

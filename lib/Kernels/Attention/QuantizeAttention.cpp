//===- QuantizeAttention.cpp - Attention whose result are codes -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "QuantizeAttention.h"
#include "../TargetLookup.h"
#include "AttentionSpec.h"
#include "fp8/Kernels/Attention/Passes.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_QUANTIZEATTENTIONPASS
#include "fp8/Kernels/Attention/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// `value`, f32 of one element, as a tensor of `type`, which has one, too.
static Value reshapeOne(OpBuilder &b, Location loc, Value value,
                        RankedTensorType type) {
  if (value.getType() == type)
    return value;
  Value none = tensor::CollapseShapeOp::create(
      b, loc, RankedTensorType::get({}, b.getF32Type()), value,
      ArrayRef<ReassociationIndices>());
  return tensor::ExpandShapeOp::create(
      b, loc, type, none, ArrayRef<ReassociationIndices>(),
      getAsIndexOpFoldResult(b.getContext(), type.getShape()));
}

AttentionOp fp8::expandQuantizedAttention(RewriterBase &rewriter,
                                          QuantizedAttentionOp op) {
  Location loc = op.getLoc();
  AttentionOp attention = op.getAttention();
  rewriter.moveOpBefore(attention, op);
  Value output = attention.getOutput();
  int64_t rank = attention.getOutput().getType().getRank();
  auto codes = cast<RankedTensorType>(op.getCodes().getType());
  SmallVector<int64_t> whole(rank, ScaledType::kWhole);
  auto type =
      ScaledType::get(rewriter.getContext(), codes.getShape(),
                      codes.getElementType(), whole, rewriter.getF32Type(),
                      /*hasTensorScale=*/false);
  // Only codes are read of it: any factor will do.
  Value scale = reshapeOne(rewriter, loc, op.getScale(),
                           cast<RankedTensorType>(type.getScaleInvType()));
  auto quantized = QuantizeOp::create(rewriter, loc, type, output, scale, scale,
                                      /*tensorScaleInv=*/Value(),
                                      /*recipe=*/RecipeAttrInterface());
  auto parts = DisassembleOp::create(rewriter, loc, quantized.getResult());
  SmallVector<Value> results{parts.getPayload()};
  if (op.getAmax()) {
    Value amax = AmaxOp::create(rewriter, loc, output, whole,
                                /*propagate_nan=*/false)
                     .getAmax();
    results.push_back(reshapeOne(rewriter, loc, amax, op.getAmax().getType()));
  }
  if (op.getLse())
    results.push_back(attention.getLse());
  rewriter.replaceOp(op, results);
  return attention;
}

namespace {
/// What reads the result of an attention: reshapes one after the other, then a
/// quantization and amaxes.
struct ResultCasts {
  SmallVector<Operation *> reshapes;
  QuantizeOp quantize;
  SmallVector<AmaxOp> amaxes;

  /// Says why if something else reads it, or casts are others than a kernel
  /// has.
  static FailureOr<ResultCasts> find(AttentionOp op, std::string &reason);
};
} // namespace

static bool isWhole(ArrayRef<int64_t> block) {
  return llvm::all_of(
      block, [](int64_t extent) { return extent == ScaledType::kWhole; });
}

static bool isOne(RankedTensorType type) {
  return llvm::all_of(type.getShape(),
                      [](int64_t extent) { return extent == 1; });
}

/// Whether codes have one factor that is known before they are.
static bool hasGivenScale(QuantizeOp op) {
  ScaledType type = op.getResult().getType();
  return !op.isUnresolved() && !op.getSeed() && isWhole(type.getBlock()) &&
         isa<Float8E4M3FNType, Float8E5M2Type>(type.getElementType()) &&
         isOne(op.getScale().getType());
}

FailureOr<ResultCasts> ResultCasts::find(AttentionOp op, std::string &reason) {
  auto fail = [&](StringRef text) {
    reason = text;
    return failure();
  };
  ResultCasts casts;
  Value value = op.getOutput();
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(user) ||
        user->getBlock() != op->getBlock())
      break;
    casts.reshapes.push_back(user);
    value = user->getResult(0);
  }
  for (Operation *user : value.getUsers()) {
    if (user->getBlock() != op->getBlock())
      return fail("another block reads it");
    auto amax = dyn_cast<AmaxOp>(user);
    auto quantize = dyn_cast<QuantizeOp>(user);
    if (amax && isWhole(amax.getBlock()) && !amax.getPropagateNan() &&
        isOne(amax.getAmax().getType())) {
      casts.amaxes.push_back(amax);
    } else if (quantize && hasGivenScale(quantize) && !casts.quantize) {
      casts.quantize = quantize;
    } else if (quantize || amax) {
      return fail("its quantization has other scales than one for the tensor "
                  "that is known before");
    } else {
      reason = ("'" + user->getName().getStringRef() + "' reads it, too").str();
      return failure();
    }
  }
  if (!casts.quantize)
    return fail("nothing quantizes it");
  return casts;
}

/// Whether `value` is there before `op`, or can be moved there.
static bool makeAvailable(Value value, Operation *op) {
  Operation *definition = value.getDefiningOp();
  if (!definition || definition->getBlock() != op->getBlock() ||
      definition->isBeforeInBlock(op))
    return true;
  bool canMove = isPure(definition) &&
                 llvm::all_of(definition->getOperands(), [&](Value operand) {
                   Operation *source = operand.getDefiningOp();
                   return !source || source->getBlock() != op->getBlock() ||
                          source->isBeforeInBlock(op);
                 });
  if (canMove)
    definition->moveBefore(op);
  return canMove;
}

/// The reshape `op` of `codes` in place of numbers.
static Value reshape(OpBuilder &b, Operation *op, Value codes) {
  auto type = cast<RankedTensorType>(op->getResult(0).getType())
                  .clone(cast<ShapedType>(codes.getType()).getElementType());
  b.setInsertionPoint(op);
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return tensor::CollapseShapeOp::create(b, op->getLoc(), type, codes,
                                           collapse.getReassociationIndices());
  auto expand = cast<tensor::ExpandShapeOp>(op);
  return tensor::ExpandShapeOp::create(b, op->getLoc(), type, codes,
                                       expand.getReassociationIndices(),
                                       expand.getMixedOutputShape());
}

static void quantizeResult(AttentionOp op, const ResultCasts &casts) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  QuantizeOp quantize = casts.quantize;
  ScaledType type = quantize.getResult().getType();
  auto one = quantize.getScale().getType();
  auto made = QuantizedAttentionOp::create(
      b, loc, op.getOutput().getType().clone(type.getElementType()),
      casts.amaxes.empty() ? Type() : one,
      op.getLse() ? op.getLse().getType() : Type(), quantize.getScale());
  made->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  if (op.getLse())
    op.getLse().replaceAllUsesWith(made.getLse());
  Value codes = made.getCodes();
  for (Operation *each : casts.reshapes)
    codes = reshape(b, each, codes);
  b.setInsertionPoint(quantize);
  auto assembled =
      AssembleOp::create(b, quantize.getLoc(), type, codes,
                         quantize.getScaleInv(), quantize.getTensorScaleInv());
  quantize.getResult().replaceAllUsesWith(assembled.getResult());
  quantize.erase();
  for (AmaxOp amax : casts.amaxes) {
    amax.getAmax().replaceAllUsesWith(made.getAmax());
    amax.erase();
  }
  for (Operation *each : llvm::reverse(casts.reshapes))
    each->erase();
  Block *body = b.createBlock(&made.getBody());
  op->moveBefore(body, body->end());
  b.setInsertionPointToEnd(body);
  AttentionYieldOp::create(b, loc, op->getResults());
}

/// Says why the result stays as it is.
static LogicalResult tryToQuantize(AttentionOp op, const KernelTarget &target,
                                   std::string &reason) {
  FailureOr<ResultCasts> casts = ResultCasts::find(op, reason);
  if (failed(casts))
    return failure();
  FailureOr<AttentionSpec> spec = AttentionSpec::get(op, reason);
  if (failed(spec))
    return failure();
  spec->setCodes(casts->quantize.getResult().getType().getElementType(),
                 !casts->amaxes.empty(),
                 casts->quantize.getScale().getType().getRank());
  if (!hasKernel(*spec, target, reason))
    return failure();
  if (!makeAvailable(casts->quantize.getScale(), op)) {
    reason = "its scale follows from what is computed behind it";
    return failure();
  }
  quantizeResult(op, *casts);
  return success();
}

namespace {
struct QuantizeAttentionPass
    : fp8::impl::QuantizeAttentionPassBase<QuantizeAttentionPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) {
      if (!isa<QuantizedAttentionOp>(op->getParentOp()))
        ops.push_back(op);
    });
    if (ops.empty() || chip.empty())
      return markAllAnalysesPreserved();
    FailureOr<KernelTarget> target = lookupChip(getOperation(), chip);
    if (failed(target))
      return signalPassFailure();
    for (AttentionOp op : ops) {
      std::string reason;
      if (succeeded(tryToQuantize(op, *target, reason)))
        ++numQuantized;
      else if (op.isScaled())
        op.emitRemark() << "the result stays in high precision: " << reason;
    }
  }
};
} // namespace

//===- DecomposeAttention.cpp - Attention as products and a softmax -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "AttentionBatches.h"
#include "AttentionDropoutState.h"
#include "DecomposeAttentionBackward.h"
#include "QuantizeAttention.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

namespace mlir::fp8 {
#define GEN_PASS_DEF_DECOMPOSEATTENTIONPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

namespace {
/// The definition to the letter: the maximum of a query is that of all keys.
class Decomposer : AttentionBatches {
public:
  using AttentionBatches::AttentionBatches;

  void decompose();

private:
  /// `values`, as batches, with zeros in place of those that are none of its
  /// batch's keys.
  Value hideValues(Value values);
  /// Scores of visible keys, with the scale and the mask, else -inf.
  Value buildScores(Value q, Value k);
  Value addMask(Value score);
  Value bend(Value score);
  /// A number (index) of a tensor.
  Value readNumber(Value numbers, ValueRange place);
  /// The number of keys (index) of this element's batch.
  Value getOwnKeys();
  /// Whether keys are moved, so that a batch's first one is number 0: in an
  /// invariant operation sums begin at it.
  bool movesKeys() { return op.getKeyStarts() && isInvariant(op); }
  /// The key that dimension `dim` (index) of this element is of, where they are
  /// moved maybe one beyond the last.
  Value getKey(int64_t dim);
  /// `key`, or the last one if it is beyond that.
  Value getLastKey(Value key);
  /// `keys`, as batches of codes and factors or numbers, moved.
  Value moveKeys(Value keys);
  /// Whether `key` is one of this element's batch; null if every key is.
  Value isOwnKey(Value key);
  Value isVisible();
  /// The score that a head has beside those of keys.
  Value getSink() {
    return tensor::ExtractOp::create(b, loc, op.getSinks(), getHead());
  }
  Value buildProduct(Value p, Value v);
  /// `p`, codes, times values that have factors for blocks of positions.
  Value buildProductOfBlocks(Value p, Value v);
  /// 0 in place of this element if it is left out.
  Value drop(Value power);
  Value buildOutput(Value product, Value sums);
  Value buildLse(Value max, Value sums);
};
} // namespace

//===----------------------------------------------------------------------===//
// Scores, powers and the second product
//===----------------------------------------------------------------------===//

Value Decomposer::readNumber(Value numbers, ValueRange place) {
  return arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      tensor::ExtractOp::create(b, loc, numbers, place));
}

Value Decomposer::getOwnKeys() {
  if (!op.getKeyLengths())
    return getNumKeys();
  Value length =
      arith::MaxSIOp::create(b, loc, readNumber(op.getKeyLengths(), getBatch()),
                             arith::ConstantIndexOp::create(b, loc, 0));
  return arith::MinSIOp::create(b, loc, length, getNumKeys());
}

Value Decomposer::getKey(int64_t dim) {
  Value key = linalg::IndexOp::create(b, loc, dim);
  if (!movesKeys())
    return key;
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value start = arith::MaxSIOp::create(
      b, loc, readNumber(op.getKeyStarts(), getBatch()), zero);
  return arith::AddIOp::create(b, loc, key, start);
}

Value Decomposer::moveKeys(Value keys) {
  if (!movesKeys())
    return keys;
  auto scaled = dyn_cast<ScaledType>(keys.getType());
  Value elements = keys, factors;
  if (scaled) {
    auto parts = DisassembleOp::create(b, loc, keys);
    elements = parts.getPayload();
    factors = parts.getScaleInv();
  }
  Type element = cast<RankedTensorType>(elements.getType()).getElementType();
  Value moved = map(elements, element, [&](ValueRange) -> Value {
    Value place[] = {linalg::IndexOp::create(b, loc, 0), getLastKey(getKey(1)),
                     linalg::IndexOp::create(b, loc, 2)};
    return tensor::ExtractOp::create(b, loc, elements, place);
  });
  if (!scaled)
    return moved;
  return AssembleOp::create(b, loc, scaled, moved, factors,
                            /*tensor_scale_inv=*/Value());
}

Value Decomposer::getLastKey(Value key) {
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  return arith::MinSIOp::create(
      b, loc, key, arith::SubIOp::create(b, loc, getNumKeys(), one));
}

Value Decomposer::isOwnKey(Value key) {
  Value isOwn;
  if (op.getKeyLengths() || movesKeys())
    isOwn = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, key,
                                  getOwnKeys());
  if (!op.getKeyStarts())
    return isOwn;
  Value isBehind =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, key,
                            readNumber(op.getKeyStarts(), getBatch()));
  return isOwn ? b.createOrFold<arith::AndIOp>(loc, isOwn, isBehind) : isBehind;
}

Value Decomposer::hideValues(Value values) {
  if (!op.getKeyLengths() && !op.getKeyStarts())
    return values;
  auto scaled = dyn_cast<ScaledType>(values.getType());
  Value elements = values, factors;
  if (scaled) {
    auto parts = DisassembleOp::create(b, loc, values);
    elements = parts.getPayload();
    factors = parts.getScaleInv();
  }
  Type element = cast<RankedTensorType>(elements.getType()).getElementType();
  elements = map(elements, element, [&](ValueRange element) -> Value {
    Value zero = arith::ConstantOp::create(
        b, loc, b.getZeroAttr(element.front().getType()));
    Value isThere = isOwnKey(getKey(1));
    return arith::SelectOp::create(b, loc, isThere, element.front(), zero);
  });
  if (!scaled)
    return elements;
  return AssembleOp::create(b, loc, scaled, elements, factors,
                            /*tensor_scale_inv=*/Value());
}

/// Whether the key of this element is visible to its query, whatever the mask;
/// null if every key is.
Value Decomposer::isVisible() {
  if (!op.getKeyLengths() && !op.getKeyStarts() && !op.getKeyRanges() &&
      !op.getLeft() && !op.getRight())
    return {};
  Value query = linalg::IndexOp::create(b, loc, 1);
  Value key = getKey(2);
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value visible = isOwnKey(key);
  auto limit = [&](arith::CmpIPredicate predicate, Value bound) {
    Value within = arith::CmpIOp::create(b, loc, predicate, key, bound);
    visible =
        visible ? b.createOrFold<arith::AndIOp>(loc, visible, within) : within;
  };
  Value own = query;
  if (op.getBottomRight() && (op.getLeft() || op.getRight()))
    own = arith::AddIOp::create(
        b, loc, own,
        arith::SubIOp::create(b, loc, getOwnKeys(),
                              getExtent(op.getQ(), op.getSequenceDim())));
  if (std::optional<int64_t> right = op.getRight())
    limit(arith::CmpIPredicate::sle,
          arith::AddIOp::create(b, loc, own, index(*right)));
  if (std::optional<int64_t> left = op.getLeft())
    limit(arith::CmpIPredicate::sge,
          arith::SubIOp::create(b, loc, own, index(*left)));
  if (Value ranges = op.getKeyRanges())
    for (auto [side, predicate] : {std::pair{0, arith::CmpIPredicate::sge},
                                   std::pair{1, arith::CmpIPredicate::slt}})
      limit(predicate,
            readNumber(ranges, ValueRange{getBatch(), query, index(side)}));
  return visible;
}

/// The score of this element with the mask's element, which is broadcast.
Value Decomposer::addMask(Value score) {
  Value mask = op.getMask();
  if (!mask)
    return score;
  auto type = cast<RankedTensorType>(mask.getType());
  SmallVector<Value> place{getBatch(), getHead(),
                           linalg::IndexOp::create(b, loc, 1),
                           movesKeys() ? getLastKey(getKey(2)) : getKey(2)};
  SmallVector<Value> indices;
  for (int64_t dim = 0, rank = type.getRank(); dim < rank; ++dim)
    indices.push_back(type.getDimSize(dim) == 1
                          ? arith::ConstantIndexOp::create(b, loc, 0)
                          : place[4 - rank + dim]);
  Value element = tensor::ExtractOp::create(b, loc, mask, indices);
  if (element.getType().isInteger(1))
    return arith::SelectOp::create(b, loc, element, score, f32(-kInfinity));
  return arith::AddFOp::create(b, loc, score, toF32(element));
}

/// The score of this element with the cap.
Value Decomposer::bend(Value score) {
  std::optional<APFloat> cap = op.getCap();
  if (!cap)
    return score;
  Value most = f32(cap->convertToFloat());
  Value bent =
      math::TanhOp::create(b, loc, arith::DivFOp::create(b, loc, score, most));
  return arith::MulFOp::create(b, loc, bent, most);
}

Value Decomposer::buildScores(Value q, Value k) {
  auto getShape = [](Value value) { return AttentionOp::getShapeOf(value); };
  SmallVector<int64_t> shape{getShape(q)[0], getShape(q)[1], getShape(k)[1]};
  Value products =
      MatmulOp::create(b, loc, RankedTensorType::get(shape, b.getF32Type()), q,
                       k, ValueRange(), Accumulate::Fast)
          .getResult();
  int64_t ofQueries = getPositionsOfFactor(op.getQ());
  int64_t ofKeys = getPositionsOfFactor(op.getK());
  Value factorsOfQ = ofQueries ? getFactorsOfPositions(op.getQ()) : Value();
  Value factorsOfK = ofKeys ? getFactorsOfPositions(op.getK()) : Value();
  return map(products, b.getF32Type(), [&](ValueRange elements) -> Value {
    Value score = elements.front();
    if (ofQueries)
      score =
          arith::MulFOp::create(b, loc, score,
                                readFactor(factorsOfQ, ofQueries,
                                           linalg::IndexOp::create(b, loc, 1)));
    if (ofKeys)
      score = arith::MulFOp::create(
          b, loc, score, readFactor(factorsOfK, ofKeys, getLastKey(getKey(2))));
    score = arith::MulFOp::create(b, loc, score,
                                  f32(op.getSoftmaxScale().convertToFloat()));
    score = addMask(bend(score));
    if (Value visible = isVisible())
      score = arith::SelectOp::create(b, loc, visible, score, f32(-kInfinity));
    return score;
  });
}

Value Decomposer::drop(Value power) {
  int64_t threshold = getDropThreshold(op.getRate());
  if (threshold == 0)
    return power;
  Value isKept = buildIsKept(b, loc, op.getDropout(), threshold,
                             linalg::IndexOp::create(b, loc, 0),
                             linalg::IndexOp::create(b, loc, 1), getKey(2));
  return arith::SelectOp::create(b, loc, isKept, power, f32(0.0f));
}

Value Decomposer::buildProduct(Value p, Value v) {
  auto factor = static_cast<float>(op.getFactorOfP());
  Type element = AttentionOp::getElementTypeOf(op.getV());
  ArrayRef<int64_t> shape = AttentionOp::getShapeOf(v);
  SmallVector<int64_t> result(cast<RankedTensorType>(p.getType()).getShape());
  result[2] = shape[2];
  Value rounded = map(p, element, [&](ValueRange elements) -> Value {
    Value scaled =
        arith::MulFOp::create(b, loc, drop(elements.front()), f32(factor));
    return element.isF32() ? scaled
                           : arith::TruncFOp::create(b, loc, element, scaled);
  });
  if (getPositionsOfFactor(op.getV()))
    return buildProductOfBlocks(rounded, v);
  bool isScaled = op.isScaled();
  if (isScaled) {
    auto type = ScaledType::get(
        b.getContext(), cast<RankedTensorType>(rounded.getType()).getShape(),
        element, SmallVector<int64_t>(3, ScaledType::kWhole), b.getF32Type(),
        /*hasTensorScale=*/false);
    Value one = arith::ConstantOp::create(
        b, loc,
        DenseElementsAttr::get(cast<RankedTensorType>(type.getScaleInvType()),
                               1.0f));
    rounded = AssembleOp::create(b, loc, type, rounded, one,
                                 /*tensor_scale_inv=*/Value());
    v = TransposeOp::create(b, loc, v, ArrayRef<int64_t>{0, 2, 1});
  }
  return MatmulOp::create(b, loc, RankedTensorType::get(result, b.getF32Type()),
                          rounded, v, ValueRange(), op.getSums(),
                          /*transpose_a=*/false, /*transpose_b=*/!isScaled)
      .getResult();
}

Value Decomposer::buildProductOfBlocks(Value p, Value v) {
  int64_t positions = getPositionsOfFactor(op.getV());
  Value factors = getFactorsOfPositions(op.getV());
  Value codes = DisassembleOp::create(b, loc, v).getPayload();
  Type f32Type = b.getF32Type();
  Value values = map(codes, f32Type, [&](ValueRange elements) -> Value {
    Value factor = readFactor(factors, positions, getLastKey(getKey(1)));
    return arith::MulFOp::create(b, loc, toF32(elements.front()), factor);
  });
  Value powers = map(
      p, f32Type, [&](ValueRange elements) { return toF32(elements.front()); });
  SmallVector<int64_t> result(cast<RankedTensorType>(p.getType()).getShape());
  result[2] = AttentionOp::getShapeOf(v)[2];
  return MatmulOp::create(b, loc, RankedTensorType::get(result, f32Type),
                          powers, values, ValueRange(), Accumulate::Fast,
                          /*transpose_a=*/false, /*transpose_b=*/true)
      .getResult();
}

Value Decomposer::buildOutput(Value product, Value sums) {
  Type element = op.getOutput().getType().getElementType();
  auto factor = static_cast<float>(op.getFactorOfP()) /
                getFactorOfKept(getDropThreshold(op.getRate()));
  return fromBatches(
      map({product, sums}, element, [&](ValueRange elements) -> Value {
        Value isEmpty = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                              elements[1], f32(0.0f));
        Value quotient = arith::DivFOp::create(
            b, loc, elements[0],
            arith::MulFOp::create(b, loc, elements[1], f32(factor)));
        Value value =
            arith::SelectOp::create(b, loc, isEmpty, f32(0.0f), quotient);
        return element.isF32()
                   ? value
                   : arith::TruncFOp::create(b, loc, element, value);
      }));
}

Value Decomposer::buildLse(Value max, Value sums) {
  Value lse =
      map({max, sums}, b.getF32Type(), [&](ValueRange elements) -> Value {
        return arith::AddFOp::create(b, loc, elements[0],
                                     math::LogOp::create(b, loc, elements[1]));
      });
  RankedTensorType type = op.getLse().getType();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, lse);
  sizes.insert(sizes.begin() + 1, b.getIndexAttr(getHeads(op.getQ())));
  sizes[0] = getAsOpFoldResult(getExtent(op.getQ(), 0));
  for (auto [size, extent] : llvm::zip_equal(sizes, type.getShape()))
    if (!ShapedType::isDynamic(extent))
      size = b.getIndexAttr(extent);
  SmallVector<int64_t> rows{cast<RankedTensorType>(lse.getType()).getDimSize(0),
                            type.getDimSize(2)};
  lse = b.createOrFold<tensor::CastOp>(
      loc, RankedTensorType::get(rows, b.getF32Type()), lse);
  return tensor::ExpandShapeOp::create(
      b, loc, type, lse, ArrayRef<ReassociationIndices>{{0, 1}, {2}}, sizes);
}

void Decomposer::decompose() {
  Type f32Type = b.getF32Type();
  Value scores =
      buildScores(toBatches(op.getQ()), moveKeys(toBatches(op.getK())));
  Value max = reduce(scores, -kInfinity, [&](Value lhs, Value rhs) -> Value {
    return arith::MaximumFOp::create(b, loc, lhs, rhs);
  });
  if (op.getSinks())
    max = map(max, f32Type, [&](ValueRange elements) -> Value {
      return arith::MaximumFOp::create(b, loc, elements.front(), getSink());
    });
  Value powers = map({scores, max}, f32Type, [&](ValueRange elements) -> Value {
    Value hidden = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                         elements[0], f32(-kInfinity));
    Value power = math::ExpOp::create(
        b, loc, arith::SubFOp::create(b, loc, elements[0], elements[1]));
    return arith::SelectOp::create(b, loc, hidden, f32(0.0f), power);
  });
  Value sums = reduce(powers, 0.0f, [&](Value lhs, Value rhs) -> Value {
    return arith::AddFOp::create(b, loc, lhs, rhs);
  });
  if (op.getSinks())
    sums = map({sums, max}, f32Type, [&](ValueRange elements) -> Value {
      // From an infinite maximum it has no distance.
      Value sink = getSink();
      Value isNone = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OEQ,
                                           sink, f32(-kInfinity));
      Value power = math::ExpOp::create(
          b, loc, arith::SubFOp::create(b, loc, sink, elements[1]));
      power = arith::SelectOp::create(b, loc, isNone, f32(0.0f), power);
      return arith::AddFOp::create(b, loc, elements[0], power);
    });
  Value product =
      buildProduct(powers, hideValues(moveKeys(toBatches(op.getV()))));
  SmallVector<Value> results{buildOutput(product, sums)};
  if (op.getLse())
    results.push_back(buildLse(max, sums));
  b.replaceOp(op, results);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Whether a kernel of the target computes `op`; says why if none does.
static bool hasKernel(Operation *op, const KernelTarget &target,
                      std::string &reason) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  if (!kernel)
    return false;
  FailureOr<std::unique_ptr<KernelSpec>> spec = kernel.getKernelSpec(reason);
  return succeeded(spec) && hasKernel(**spec, target, reason);
}

namespace {
struct DecomposeAttentionPass
    : fp8::impl::DecomposeAttentionPassBase<DecomposeAttentionPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  /// Those without a kernel become attention, which is among `ops` then.
  void expandQuantized(SmallVectorImpl<Operation *> &ops,
                       const std::optional<KernelTarget> &target) {
    SmallVector<QuantizedAttentionOp> quantized;
    getOperation().walk(
        [&](QuantizedAttentionOp op) { quantized.push_back(op); });
    for (QuantizedAttentionOp op : quantized) {
      std::string reason;
      if (target && hasKernel(op, *target, reason))
        continue;
      IRRewriter rewriter(op);
      ops.push_back(expandQuantizedAttention(rewriter, op));
    }
  }

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    bool hasQuantized = false;
    getOperation().walk([&](Operation *op) {
      hasQuantized |= isa<QuantizedAttentionOp>(op);
      bool isPart = isa_and_nonnull<QuantizedAttentionOp>(op->getParentOp());
      if (isa<AttentionOp, AttentionBackwardOp>(op) && !isPart)
        ops.push_back(op);
    });
    if (ops.empty() && !hasQuantized)
      return markAllAnalysesPreserved();
    std::optional<KernelTarget> target;
    if (!chip.empty()) {
      FailureOr<KernelTarget> found = lookupChip(getOperation(), chip);
      if (failed(found))
        return signalPassFailure();
      target = *found;
    }
    expandQuantized(ops, target);
    for (Operation *op : ops) {
      std::string reason;
      if (target && hasKernel(op, *target, reason))
        continue;
      auto backward = dyn_cast<AttentionBackwardOp>(op);
      if (target)
        op->emitRemark() << "no kernel: " << reason << "; computed as "
                         << (backward ? "products"
                                      : "two products and a softmax");
      IRRewriter rewriter(op);
      if (backward)
        decomposeAttentionBackward(rewriter, backward);
      else
        Decomposer(rewriter, cast<AttentionOp>(op)).decompose();
      ++numDecomposed;
    }
  }
};
} // namespace

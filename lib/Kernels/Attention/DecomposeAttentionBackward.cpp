//===- DecomposeAttentionBackward.cpp - Its gradients as products ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecomposeAttentionBackward.h"
#include "AttentionDropoutState.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// The definition to the letter, all scores in memory. Heads of Q are those of
/// K times the heads of a group.
class BackwardDecomposer {
public:
  BackwardDecomposer(RewriterBase &b, AttentionBackwardOp op)
      : b(b), op(op), loc(op.getLoc()) {
    bindDims(b.getContext(), batch, head, group, query, key, column);
    int64_t heads = AttentionOp::getShapeOf(op.getQ())[op.getHeadDim()];
    headsOfK = AttentionOp::getShapeOf(op.getK())[op.getHeadDim()];
    headsOfGroup = headsOfK == 0 ? 0 : heads / headsOfK;
  }

  void decompose();

private:
  using Body = llvm::function_ref<Value(ValueRange)>;

  /// The values of an operand (f32), with the heads of Q as two dimensions.
  Value getValues(Value operand);
  Value splitHeads(Value tensor, int64_t dim);
  /// A result (f32) whose dimensions, and those of its sources, are as the
  /// expressions say; a sum begins with zeros.
  Value build(ArrayRef<AffineExpr> result, ArrayRef<Value> sources,
              ArrayRef<ArrayRef<AffineExpr>> maps, bool isSum, Body body);
  /// The sum of products over the dimensions that the result has not.
  Value multiply(ArrayRef<AffineExpr> result, Value lhs,
                 ArrayRef<AffineExpr> ofLhs, Value rhs,
                 ArrayRef<AffineExpr> ofRhs);
  Value isVisible();
  /// `value` of this score times what is kept by, or 0 if it is left out.
  Value drop(Value value);
  Value round(Value value);
  /// P, f32.
  Value buildPowers(Value products, Value lse);
  /// T(1 - tanh^2) of each score; null without a cap.
  Value buildSlopes(Value products);
  /// The hyperbolic tangent of a product as a part of the cap.
  Value bend(Value product, float cap);
  /// A result of the element type of gradients, times `factor`.
  Value finish(Value sums, Type result, float factor);

  SmallVector<AffineExpr> ofQueries() {
    return op.getLayout() == AttentionLayout::BSHD
               ? SmallVector<AffineExpr>{batch, query, head, group, column}
               : SmallVector<AffineExpr>{batch, head, group, query, column};
  }
  SmallVector<AffineExpr> ofKeys() {
    return op.getLayout() == AttentionLayout::BSHD
               ? SmallVector<AffineExpr>{batch, key, head, column}
               : SmallVector<AffineExpr>{batch, head, key, column};
  }
  Value f32(float value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }

  RewriterBase &b;
  AttentionBackwardOp op;
  Location loc;
  AffineExpr batch, head, group, query, key, column;
  int64_t headsOfK, headsOfGroup;
};
} // namespace

Value BackwardDecomposer::splitHeads(Value tensor, int64_t dim) {
  auto type = cast<RankedTensorType>(tensor.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = headsOfK;
  shape.insert(shape.begin() + dim + 1, headsOfGroup);
  sizes[dim] = b.getIndexAttr(headsOfK);
  sizes.insert(sizes.begin() + dim + 1, b.getIndexAttr(headsOfGroup));
  SmallVector<ReassociationIndices> parts;
  for (int64_t i = 0, next = 0; i < type.getRank(); ++i) {
    ReassociationIndices &part = parts.emplace_back();
    part.push_back(next++);
    if (i == dim)
      part.push_back(next++);
  }
  return tensor::ExpandShapeOp::create(
      b, loc, RankedTensorType::get(shape, type.getElementType()), tensor,
      parts, sizes);
}

Value BackwardDecomposer::build(ArrayRef<AffineExpr> result,
                                ArrayRef<Value> sources,
                                ArrayRef<ArrayRef<AffineExpr>> maps, bool isSum,
                                Body body) {
  MLIRContext *context = b.getContext();
  // Dimensions in the order in which the result, then the sources, have them.
  SmallVector<AffineExpr> dims;
  auto note = [&](ArrayRef<AffineExpr> map) {
    for (AffineExpr dim : map)
      if (!llvm::is_contained(dims, dim))
        dims.push_back(dim);
  };
  note(result);
  for (ArrayRef<AffineExpr> map : maps)
    note(map);
  DenseMap<AffineExpr, AffineExpr> renamed;
  for (auto [i, dim] : llvm::enumerate(dims))
    renamed[dim] = getAffineDimExpr(i, context);
  auto makeMap = [&](ArrayRef<AffineExpr> map) {
    SmallVector<AffineExpr> exprs;
    for (AffineExpr dim : map)
      exprs.push_back(renamed[dim]);
    return AffineMap::get(dims.size(), 0, exprs, context);
  };
  SmallVector<AffineMap> all;
  SmallVector<OpFoldResult> sizes(result.size());
  for (auto [source, map] : llvm::zip_equal(sources, maps)) {
    all.push_back(makeMap(map));
    SmallVector<OpFoldResult> ofSource = tensor::getMixedSizes(b, loc, source);
    for (auto [i, dim] : llvm::enumerate(result))
      for (auto [size, other] : llvm::zip_equal(ofSource, map))
        if (dim == other && !sizes[i])
          sizes[i] = size;
  }
  all.push_back(makeMap(result));
  SmallVector<utils::IteratorType> iterators(dims.size(),
                                             utils::IteratorType::reduction);
  for (size_t i = 0; i < result.size(); ++i)
    iterators[i] = utils::IteratorType::parallel;
  Value init = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  if (isSum)
    init = linalg::FillOp::create(b, loc, f32(0.0f), init).getResult(0);
  return linalg::GenericOp::create(
             b, loc, init.getType(), sources, init, all, iterators,
             [&](OpBuilder &builder, Location, ValueRange elements) {
               OpBuilder::InsertionGuard guard(b);
               b.setInsertionPointToEnd(builder.getInsertionBlock());
               linalg::YieldOp::create(b, loc, body(elements));
             })
      .getResult(0);
}

Value BackwardDecomposer::multiply(ArrayRef<AffineExpr> result, Value lhs,
                                   ArrayRef<AffineExpr> ofLhs, Value rhs,
                                   ArrayRef<AffineExpr> ofRhs) {
  return build(result, {lhs, rhs}, {ofLhs, ofRhs}, /*isSum=*/true,
               [&](ValueRange elements) -> Value {
                 Value product =
                     arith::MulFOp::create(b, loc, elements[0], elements[1]);
                 return arith::AddFOp::create(b, loc, elements[2], product);
               });
}

Value BackwardDecomposer::getValues(Value operand) {
  Value elements = operand, factors;
  if (auto scaled = dyn_cast<ScaledType>(operand.getType())) {
    auto parts = DisassembleOp::create(b, loc, operand);
    elements = parts.getPayload();
    factors = parts.getScaleInv();
  }
  auto type = cast<RankedTensorType>(elements.getType());
  SmallVector<AffineExpr> dims;
  for (int64_t i = 0; i < type.getRank(); ++i)
    dims.push_back(b.getAffineDimExpr(i));
  if (!factors && type.getElementType().isF32())
    return elements;
  return build(
      dims, {elements}, {dims}, /*isSum=*/false,
      [&](ValueRange element) -> Value {
        Value value = element[0];
        if (!value.getType().isF32())
          value = arith::ExtFOp::create(b, loc, b.getF32Type(), value);
        if (!factors)
          return value;
        SmallVector<Value> place;
        auto shape = cast<RankedTensorType>(factors.getType()).getShape();
        for (auto [i, size] : llvm::enumerate(shape))
          place.push_back(
              size == 1 ? arith::ConstantIndexOp::create(b, loc, 0).getResult()
                        : linalg::IndexOp::create(b, loc, i).getResult());
        return arith::MulFOp::create(
            b, loc, value, tensor::ExtractOp::create(b, loc, factors, place));
      });
}

Value BackwardDecomposer::isVisible() {
  if (!op.getLeft() && !op.getRight() && !op.getKeyRanges())
    return {};
  // Scores' indices, whose dimensions are batch, head, group, query and key.
  Value own = linalg::IndexOp::create(b, loc, 3);
  Value ofKey = linalg::IndexOp::create(b, loc, 4);
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  if (op.getBottomRight()) {
    auto getPositions = [&](Value operand) -> Value {
      if (isa<ScaledType>(operand.getType()))
        operand = DisassembleOp::create(b, loc, operand).getPayload();
      return tensor::DimOp::create(b, loc, operand, op.getSequenceDim());
    };
    own = arith::AddIOp::create(b, loc, own,
                                arith::SubIOp::create(b, loc,
                                                      getPositions(op.getK()),
                                                      getPositions(op.getQ())));
  }
  Value visible;
  auto limit = [&](arith::CmpIPredicate predicate, Value bound) {
    Value within = arith::CmpIOp::create(b, loc, predicate, ofKey, bound);
    visible =
        visible ? b.createOrFold<arith::AndIOp>(loc, visible, within) : within;
  };
  if (std::optional<int64_t> right = op.getRight())
    limit(arith::CmpIPredicate::sle,
          arith::AddIOp::create(b, loc, own, index(*right)));
  if (std::optional<int64_t> left = op.getLeft())
    limit(arith::CmpIPredicate::sge,
          arith::SubIOp::create(b, loc, own, index(*left)));
  if (Value ranges = op.getKeyRanges())
    for (auto [side, predicate] : {std::pair{0, arith::CmpIPredicate::sge},
                                   std::pair{1, arith::CmpIPredicate::slt}}) {
      SmallVector<Value> place{linalg::IndexOp::create(b, loc, 0),
                               linalg::IndexOp::create(b, loc, 3), index(side)};
      limit(predicate, arith::IndexCastOp::create(
                           b, loc, b.getIndexType(),
                           tensor::ExtractOp::create(b, loc, ranges, place)));
    }
  return visible;
}

Value BackwardDecomposer::drop(Value value) {
  int64_t threshold = getDropThreshold(op.getRate());
  if (threshold == 0)
    return value;
  auto index = [&](int64_t dim) -> Value {
    return linalg::IndexOp::create(b, loc, dim);
  };
  auto next = [&](Value number, int64_t count, Value inner) -> Value {
    Value outer = arith::MulIOp::create(
        b, loc, number, arith::ConstantIndexOp::create(b, loc, count));
    return arith::AddIOp::create(b, loc, outer, inner);
  };
  // Dimensions are batch, head of K, head of its group, query and key.
  Value head = next(next(index(0), headsOfK, index(1)), headsOfGroup, index(2));
  Value isKept =
      buildIsKept(b, loc, op.getDropout(), threshold, head, index(3), index(4));
  value = arith::MulFOp::create(b, loc, value, f32(getFactorOfKept(threshold)));
  return arith::SelectOp::create(b, loc, isKept, value, f32(0.0f));
}

Value BackwardDecomposer::round(Value value) {
  Type type = op.getGrad().getType().getElementType();
  if (type.isF32())
    return value;
  Value narrow = arith::TruncFOp::create(b, loc, type, value);
  return arith::ExtFOp::create(b, loc, b.getF32Type(), narrow);
}

Value BackwardDecomposer::finish(Value sums, Type result, float factor) {
  auto type = cast<RankedTensorType>(result);
  Type element = type.getElementType();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, sums);
  AffineMap identity = b.getMultiDimIdentityMap(sizes.size());
  SmallVector<utils::IteratorType> iterators(sizes.size(),
                                             utils::IteratorType::parallel);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, element);
  Value found = linalg::GenericOp::create(
                    b, loc, empty.getType(), sums, empty,
                    ArrayRef{identity, identity}, iterators,
                    [&](OpBuilder &builder, Location, ValueRange elements) {
                      OpBuilder::InsertionGuard guard(b);
                      b.setInsertionPointToEnd(builder.getInsertionBlock());
                      Value value = arith::MulFOp::create(b, loc, elements[0],
                                                          f32(factor));
                      if (!element.isF32())
                        value = arith::TruncFOp::create(b, loc, element, value);
                      linalg::YieldOp::create(b, loc, value);
                    })
                    .getResult(0);
  if (sizes.size() == 5) {
    int64_t dim = op.getHeadDim();
    SmallVector<ReassociationIndices> parts;
    for (int64_t i = 0, next = 0; i < 4; ++i) {
      ReassociationIndices &part = parts.emplace_back();
      part.push_back(next++);
      if (i == dim)
        part.push_back(next++);
    }
    found = tensor::CollapseShapeOp::create(b, loc, found, parts);
  }
  return found.getType() == type
             ? found
             : tensor::CastOp::create(b, loc, type, found).getResult();
}

Value BackwardDecomposer::bend(Value product, float cap) {
  Value score = arith::MulFOp::create(
      b, loc, product, f32(op.getSoftmaxScale().convertToFloat()));
  return math::TanhOp::create(b, loc,
                              arith::DivFOp::create(b, loc, score, f32(cap)));
}

Value BackwardDecomposer::buildPowers(Value products, Value lse) {
  SmallVector<AffineExpr> scores{batch, head, group, query, key};
  SmallVector<AffineExpr> rows{batch, head, group, query};
  float scale = op.getSoftmaxScale().convertToFloat();
  return build(
      scores, {products, lse}, {scores, rows}, /*isSum=*/false,
      [&](ValueRange elements) -> Value {
        Value score = arith::MulFOp::create(b, loc, elements[0], f32(scale));
        if (std::optional<APFloat> cap = op.getCap())
          score = arith::MulFOp::create(
              b, loc, bend(elements[0], cap->convertToFloat()),
              f32(cap->convertToFloat()));
        Value power = math::ExpOp::create(
            b, loc, arith::SubFOp::create(b, loc, score, elements[1]));
        Value seesNone = arith::CmpFOp::create(
            b, loc, arith::CmpFPredicate::OEQ, elements[1],
            f32(-std::numeric_limits<float>::infinity()));
        power = arith::SelectOp::create(b, loc, seesNone, f32(0.0f), power);
        if (Value visible = isVisible())
          power = arith::SelectOp::create(b, loc, visible, power, f32(0.0f));
        return power;
      });
}

Value BackwardDecomposer::buildSlopes(Value products) {
  std::optional<APFloat> cap = op.getCap();
  if (!cap)
    return {};
  SmallVector<AffineExpr> scores{batch, head, group, query, key};
  return build(scores, {products}, {scores}, /*isSum=*/false,
               [&](ValueRange elements) -> Value {
                 Value bent = bend(elements[0], cap->convertToFloat());
                 Value square = arith::MulFOp::create(b, loc, bent, bent);
                 return round(arith::SubFOp::create(b, loc, f32(1.0f), square));
               });
}

void BackwardDecomposer::decompose() {
  SmallVector<AffineExpr> queries = ofQueries(), keys = ofKeys();
  SmallVector<AffineExpr> scores{batch, head, group, query, key};
  SmallVector<AffineExpr> rows{batch, head, group, query};
  Value q = splitHeads(getValues(op.getQ()), op.getHeadDim());
  Value grad = splitHeads(getValues(op.getGrad()), op.getHeadDim());
  Value k = getValues(op.getK()), v = getValues(op.getV());
  Value lse = splitHeads(op.getLse(), 1), delta = splitHeads(op.getDelta(), 1);
  Value products = multiply(scores, q, queries, k, keys);
  Value ofGrad = multiply(scores, grad, queries, v, keys);
  Value p = build(scores, {buildPowers(products, lse)}, {scores},
                  /*isSum=*/false,
                  [&](ValueRange elements) { return round(elements[0]); });
  SmallVector<Value> sources{p, ofGrad, delta};
  SmallVector<ArrayRef<AffineExpr>> maps{scores, scores, rows};
  if (Value slopes = buildSlopes(products)) {
    sources.push_back(slopes);
    maps.push_back(scores);
  }
  Value g =
      build(scores, sources, maps, /*isSum=*/false,
            [&](ValueRange elements) -> Value {
              Value difference =
                  arith::SubFOp::create(b, loc, drop(elements[1]), elements[2]);
              Value product =
                  arith::MulFOp::create(b, loc, elements[0], difference);
              if (sources.size() == 4)
                product = arith::MulFOp::create(b, loc, product, elements[3]);
              return round(product);
            });
  float scale = op.getSoftmaxScale().convertToFloat();
  Value dq = finish(multiply(queries, g, scores, k, keys), op.getDq().getType(),
                    scale);
  Value dk = finish(multiply(keys, g, scores, q, queries), op.getDk().getType(),
                    scale);
  Value kept = p;
  if (getDropThreshold(op.getRate()))
    kept = build(scores, {p}, {scores}, /*isSum=*/false,
                 [&](ValueRange elements) { return drop(elements[0]); });
  Value dv = finish(multiply(keys, kept, scores, grad, queries),
                    op.getDv().getType(), 1.0f);
  b.replaceOp(op, {dq, dk, dv});
}

void fp8::decomposeAttentionBackward(RewriterBase &b, AttentionBackwardOp op) {
  BackwardDecomposer(b, op).decompose();
}

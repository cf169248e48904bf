//===- DecomposeAttention.cpp - Attention as products and a softmax -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
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
/// An attention as batches, one for each head of Q of each batch, of
/// `fp8.matmul` and of what is between them. The definition to the letter: the
/// maximum of a query is that of all keys.
class Decomposer {
public:
  Decomposer(RewriterBase &b, AttentionOp op)
      : b(b), op(op), loc(op.getLoc()) {}

  void decompose();

private:
  using Body = llvm::function_ref<Value(ValueRange)>;

  /// Batches x rows x columns of an operand: codes and factors, or numbers.
  /// Heads of K and V come once for each head of Q that reads them.
  Value toBatches(Value operand);
  /// Pages of K or of V as keys of batches.
  Value gatherPages(Value pages);
  /// The number of keys of all batches (index).
  Value getNumKeys();
  /// `values`, as batches, with zeros in place of those beyond its batch's
  /// keys.
  Value hideValues(Value values);
  /// `isWhole` if it is one element for the whole operand.
  Value spread(Value tensor, bool isWhole = false);
  Value fromBatches(Value tensor);

  /// Scores of visible keys, with the scale and the mask, else -inf.
  Value buildScores(Value q, Value k);
  Value addMask(Value score);
  /// The number of keys (index) of this element's batch.
  Value getOwnKeys();
  Value isVisible();
  Value buildProduct(Value p, Value v);

  /// Element by element; sources of a dimension less are of rows.
  Value map(ValueRange sources, Type element, Body body);
  /// All elements of each row, f32.
  Value reduce(Value source, float neutral,
               llvm::function_ref<Value(Value, Value)> combine);

  Value f32(float value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  }
  Value toF32(Value value) {
    return value.getType().isF32()
               ? value
               : arith::ExtFOp::create(b, loc, b.getF32Type(), value);
  }
  int64_t getHeads(Value operand) {
    return AttentionOp::getShapeOf(operand)[op.getHeadDim()];
  }
  /// A dimension of Q or K (index).
  Value getExtent(Value operand, int64_t dim) {
    if (auto scaled = dyn_cast<ScaledType>(operand.getType()))
      operand = DisassembleOp::create(b, loc, operand).getPayload();
    return tensor::DimOp::create(b, loc, operand, dim);
  }

  RewriterBase &b;
  AttentionOp op;
  Location loc;
};
} // namespace

//===----------------------------------------------------------------------===//
// Heads as batches
//===----------------------------------------------------------------------===//

Value Decomposer::spread(Value tensor, bool isWhole) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t own = type.getDimSize(op.getHeadDim());
  int64_t heads = isWhole ? 1 : getHeads(op.getQ());
  bool isBSHD = op.getLayout() == AttentionLayout::BSHD;
  if (!isWhole && (isBSHD || own != heads)) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
    if (isBSHD)
      std::swap(sizes[1], sizes[2]);
    sizes[1] = b.getIndexAttr(heads);
    Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
    if (own == heads) {
      tensor = linalg::TransposeOp::create(b, loc, tensor, empty,
                                           ArrayRef<int64_t>{0, 2, 1, 3})
                   ->getResult(0);
    } else {
      AffineExpr batch, head, row, column;
      bindDims(b.getContext(), batch, head, row, column);
      AffineExpr read = head.floorDiv(heads / own);
      SmallVector<AffineExpr> from{batch, isBSHD ? row : read,
                                   isBSHD ? read : row, column};
      AffineMap identity = b.getMultiDimIdentityMap(4);
      tensor =
          linalg::GenericOp::create(
              b, loc, empty.getType(), tensor, empty,
              ArrayRef{AffineMap::get(4, 0, from, b.getContext()), identity},
              SmallVector<utils::IteratorType>(4,
                                               utils::IteratorType::parallel),
              [](OpBuilder &builder, Location loc, ValueRange elements) {
                linalg::YieldOp::create(builder, loc, elements.front());
              })
              .getResult(0);
    }
  }
  return tensor::CollapseShapeOp::create(
      b, loc, tensor, ArrayRef<ReassociationIndices>{{0, 1}, {2}, {3}});
}

Value Decomposer::getNumKeys() {
  Value table = op.getPageTable();
  if (!table)
    return getExtent(op.getK(), op.getSequenceDim());
  Value size = arith::ConstantIndexOp::create(b, loc, op.getPageSize());
  return b.createOrFold<arith::MulIOp>(
      loc, b.createOrFold<tensor::DimOp>(loc, table, 1), size);
}

Value Decomposer::gatherPages(Value pages) {
  Value table = op.getPageTable();
  auto type = cast<RankedTensorType>(pages.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, pages);
  OpFoldResult most = sizes[0];
  int64_t sequence = op.getSequenceDim();
  sizes[0] = tensor::getMixedSize(b, loc, table, 0);
  sizes[sequence] = ShapedType::isDynamic(op.getNumKeys())
                        ? OpFoldResult(getNumKeys())
                        : OpFoldResult(b.getIndexAttr(op.getNumKeys()));
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  AffineMap identity = b.getMultiDimIdentityMap(4);
  SmallVector<utils::IteratorType> iterators(4, utils::IteratorType::parallel);
  auto gather = [&](OpBuilder &builder, Location, ValueRange) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(builder.getInsertionBlock());
    SmallVector<Value> place;
    for (int64_t dim = 0; dim < 4; ++dim)
      place.push_back(linalg::IndexOp::create(b, loc, dim));
    Value size = arith::ConstantIndexOp::create(b, loc, op.getPageSize());
    Value number = arith::DivUIOp::create(b, loc, place[sequence], size);
    Value page = arith::IndexCastOp::create(
        b, loc, b.getIndexType(),
        tensor::ExtractOp::create(b, loc, table, ValueRange{place[0], number}));
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value last = arith::SubIOp::create(
        b, loc, getValueOrCreateConstantIndexOp(b, loc, most), one);
    page = arith::MaxSIOp::create(b, loc, page,
                                  arith::ConstantIndexOp::create(b, loc, 0));
    place[0] = arith::MinSIOp::create(b, loc, page, last);
    place[sequence] = arith::RemUIOp::create(b, loc, place[sequence], size);
    linalg::YieldOp::create(
        b, loc, tensor::ExtractOp::create(b, loc, pages, place).getResult());
  };
  return linalg::GenericOp::create(b, loc, empty.getType(), ValueRange(), empty,
                                   identity, iterators, gather)
      .getResult(0);
}

Value Decomposer::toBatches(Value operand) {
  bool hasPages = op.getPageTable() && operand != op.getQ();
  auto gathered = [&](Value elements) {
    return hasPages ? gatherPages(elements) : elements;
  };
  auto scaled = dyn_cast<ScaledType>(operand.getType());
  if (!scaled)
    return spread(gathered(operand));
  auto parts = DisassembleOp::create(b, loc, operand);
  Value codes = spread(gathered(parts.getPayload()));
  Value factors = spread(parts.getScaleInv(), scaled.isPerTensor());
  SmallVector<int64_t> block(3, ScaledType::kWhole);
  if (!scaled.isPerTensor())
    block[0] = 1;
  ArrayRef<int64_t> shape = cast<RankedTensorType>(codes.getType()).getShape();
  return AssembleOp::create(b, loc, scaled.cloneWith(shape, block), codes,
                            factors, /*tensor_scale_inv=*/Value());
}

Value Decomposer::fromBatches(Value tensor) {
  RankedTensorType type = op.getOutput().getType();
  int64_t heads = getHeads(op.getQ());
  bool isBSHD = op.getLayout() == AttentionLayout::BSHD;
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, tensor);
  sizes.insert(sizes.begin() + 1, b.getIndexAttr(heads));
  sizes[0] = getAsOpFoldResult(getExtent(op.getQ(), 0));
  SmallVector<int64_t> shape(type.getShape());
  if (isBSHD)
    std::swap(shape[1], shape[2]);
  auto expanded = RankedTensorType::get(shape, type.getElementType());
  for (auto [size, extent] : llvm::zip_equal(sizes, shape))
    if (!ShapedType::isDynamic(extent))
      size = b.getIndexAttr(extent);
  SmallVector<int64_t> batches(
      cast<RankedTensorType>(tensor.getType()).getShape());
  batches[1] = shape[2];
  batches[2] = shape[3];
  tensor = b.createOrFold<tensor::CastOp>(
      loc, RankedTensorType::get(batches, type.getElementType()), tensor);
  tensor = tensor::ExpandShapeOp::create(
      b, loc, expanded, tensor,
      ArrayRef<ReassociationIndices>{{0, 1}, {2}, {3}}, sizes);
  if (!isBSHD)
    return tensor;
  std::swap(sizes[1], sizes[2]);
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  return linalg::TransposeOp::create(b, loc, tensor, empty,
                                     ArrayRef<int64_t>{0, 2, 1, 3})
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

Value Decomposer::map(ValueRange sources, Type element, Body body) {
  Value first = sources.front();
  int64_t rank = cast<RankedTensorType>(first.getType()).getRank();
  Value empty = tensor::EmptyOp::create(
      b, loc, tensor::getMixedSizes(b, loc, first), element);
  SmallVector<AffineMap> maps;
  for (Value source : sources)
    maps.push_back(b.getMultiDimIdentityMap(rank).getMajorSubMap(
        cast<RankedTensorType>(source.getType()).getRank()));
  maps.push_back(b.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank,
                                             utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             b, loc, empty.getType(), sources, empty, maps, iterators,
             [&](OpBuilder &builder, Location, ValueRange elements) {
               OpBuilder::InsertionGuard guard(b);
               b.setInsertionPointToEnd(builder.getInsertionBlock());
               linalg::YieldOp::create(b, loc, body(elements.drop_back()));
             })
      .getResult(0);
}

Value Decomposer::reduce(Value source, float neutral,
                         llvm::function_ref<Value(Value, Value)> combine) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
  sizes.pop_back();
  Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  Value init = linalg::FillOp::create(b, loc, f32(neutral), empty).getResult(0);
  return linalg::ReduceOp::create(
             b, loc, source, init, ArrayRef<int64_t>{2},
             [&](OpBuilder &builder, Location, ValueRange elements) {
               OpBuilder::InsertionGuard guard(b);
               b.setInsertionPointToEnd(builder.getInsertionBlock());
               linalg::YieldOp::create(b, loc,
                                       combine(elements[0], elements[1]));
             })
      ->getResult(0);
}

//===----------------------------------------------------------------------===//
// Scores, powers and the second product
//===----------------------------------------------------------------------===//

Value Decomposer::getOwnKeys() {
  Value heads = arith::ConstantIndexOp::create(b, loc, getHeads(op.getQ()));
  Value batch =
      arith::DivUIOp::create(b, loc, linalg::IndexOp::create(b, loc, 0), heads);
  Value length = arith::IndexCastOp::create(
      b, loc, b.getIndexType(),
      tensor::ExtractOp::create(b, loc, op.getKeyLengths(), batch));
  length = arith::MaxSIOp::create(b, loc, length,
                                  arith::ConstantIndexOp::create(b, loc, 0));
  return arith::MinSIOp::create(b, loc, length, getNumKeys());
}

Value Decomposer::hideValues(Value values) {
  if (!op.getKeyLengths())
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
    Value isThere =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                              linalg::IndexOp::create(b, loc, 1), getOwnKeys());
    return arith::SelectOp::create(b, loc, isThere, element.front(), zero);
  });
  if (!scaled)
    return elements;
  return AssembleOp::create(b, loc, scaled, elements, factors,
                            /*tensor_scale_inv=*/Value());
}

/// Whether the key of this element is in its query's window; null if every key
/// is.
Value Decomposer::isVisible() {
  bool hasLengths = op.getKeyLengths() != nullptr;
  if (!op.getLeft() && !op.getRight() && !hasLengths)
    return {};
  Value own = linalg::IndexOp::create(b, loc, 1);
  Value key = linalg::IndexOp::create(b, loc, 2);
  int64_t sequence = op.getSequenceDim();
  Value keys = hasLengths ? getOwnKeys() : getNumKeys();
  if (op.getBottomRight())
    own = arith::AddIOp::create(
        b, loc, own,
        arith::SubIOp::create(b, loc, keys, getExtent(op.getQ(), sequence)));
  auto compare = [&](arith::CmpIPredicate predicate, Value bound) -> Value {
    return arith::CmpIOp::create(b, loc, predicate, key, bound);
  };
  auto index = [&](int64_t value) {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value visible;
  auto limit = [&](arith::CmpIPredicate predicate, Value bound) {
    Value within = compare(predicate, bound);
    visible =
        visible ? b.createOrFold<arith::AndIOp>(loc, visible, within) : within;
  };
  if (hasLengths)
    limit(arith::CmpIPredicate::slt, keys);
  if (std::optional<int64_t> right = op.getRight())
    limit(arith::CmpIPredicate::sle,
          arith::AddIOp::create(b, loc, own, index(*right)));
  if (std::optional<int64_t> left = op.getLeft())
    limit(arith::CmpIPredicate::sge,
          arith::SubIOp::create(b, loc, own, index(*left)));
  return visible;
}

/// The score of this element with the mask's element, which is broadcast.
Value Decomposer::addMask(Value score) {
  Value mask = op.getMask();
  if (!mask)
    return score;
  auto type = cast<RankedTensorType>(mask.getType());
  Value heads = arith::ConstantIndexOp::create(b, loc, getHeads(op.getQ()));
  Value batch = linalg::IndexOp::create(b, loc, 0);
  SmallVector<Value> place{arith::DivUIOp::create(b, loc, batch, heads),
                           arith::RemUIOp::create(b, loc, batch, heads),
                           linalg::IndexOp::create(b, loc, 1),
                           linalg::IndexOp::create(b, loc, 2)};
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

Value Decomposer::buildScores(Value q, Value k) {
  auto getShape = [](Value value) { return AttentionOp::getShapeOf(value); };
  SmallVector<int64_t> shape{getShape(q)[0], getShape(q)[1], getShape(k)[1]};
  Value products =
      MatmulOp::create(b, loc, RankedTensorType::get(shape, b.getF32Type()), q,
                       k, ValueRange(), Accumulate::Fast)
          .getResult();
  return map(products, b.getF32Type(), [&](ValueRange elements) -> Value {
    Value score = arith::MulFOp::create(
        b, loc, elements.front(), f32(op.getSoftmaxScale().convertToFloat()));
    score = addMask(score);
    if (Value visible = isVisible())
      score = arith::SelectOp::create(b, loc, visible, score, f32(-kInfinity));
    return score;
  });
}

Value Decomposer::buildProduct(Value p, Value v) {
  auto factor = static_cast<float>(op.getFactorOfP());
  Type element = AttentionOp::getElementTypeOf(op.getV());
  ArrayRef<int64_t> shape = AttentionOp::getShapeOf(v);
  SmallVector<int64_t> result(cast<RankedTensorType>(p.getType()).getShape());
  result[2] = shape[2];
  Value rounded = map(p, element, [&](ValueRange elements) -> Value {
    Value scaled = arith::MulFOp::create(b, loc, elements.front(), f32(factor));
    return element.isF32() ? scaled
                           : arith::TruncFOp::create(b, loc, element, scaled);
  });
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

void Decomposer::decompose() {
  Type f32Type = b.getF32Type();
  Value scores = buildScores(toBatches(op.getQ()), toBatches(op.getK()));
  Value max = reduce(scores, -kInfinity, [&](Value lhs, Value rhs) -> Value {
    return arith::MaximumFOp::create(b, loc, lhs, rhs);
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
  Value product = buildProduct(powers, hideValues(toBatches(op.getV())));
  Type element = op.getOutput().getType().getElementType();
  auto factor = static_cast<float>(op.getFactorOfP());
  Value output =
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
      });
  SmallVector<Value> results{fromBatches(output)};
  if (op.getLse()) {
    Value lse = map({max, sums}, f32Type, [&](ValueRange elements) -> Value {
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
    SmallVector<int64_t> rows{
        cast<RankedTensorType>(lse.getType()).getDimSize(0),
        type.getDimSize(2)};
    lse = b.createOrFold<tensor::CastOp>(
        loc, RankedTensorType::get(rows, f32Type), lse);
    results.push_back(tensor::ExpandShapeOp::create(
        b, loc, type, lse, ArrayRef<ReassociationIndices>{{0, 1}, {2}}, sizes));
  }
  b.replaceOp(op, results);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Whether a kernel of the target computes `op`; says why if none does.
static bool hasKernel(AttentionOp op, const KernelTarget &target,
                      std::string &reason) {
  auto kernel = dyn_cast<KernelOpInterface>(op.getOperation());
  if (!kernel)
    return false;
  FailureOr<std::unique_ptr<KernelSpec>> spec = kernel.getKernelSpec(reason);
  if (failed(spec))
    return false;
  const KernelGenerator *generator =
      target.architecture->getGenerator(**spec, reason);
  return generator &&
         succeeded(generator->select(**spec, target.attribute, reason));
}

namespace {
struct DecomposeAttentionPass
    : fp8::impl::DecomposeAttentionPassBase<DecomposeAttentionPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }

  void runOnOperation() override {
    SmallVector<AttentionOp> ops;
    getOperation().walk([&](AttentionOp op) { ops.push_back(op); });
    if (ops.empty())
      return markAllAnalysesPreserved();
    std::optional<KernelTarget> target;
    if (!chip.empty()) {
      FailureOr<KernelTarget> found = lookupChip(getOperation(), chip);
      if (failed(found))
        return signalPassFailure();
      target = *found;
    }
    for (AttentionOp op : ops) {
      std::string reason;
      if (target && hasKernel(op, *target, reason))
        continue;
      if (target)
        op.emitRemark() << "no kernel: " << reason
                        << "; computed as two products and a softmax";
      IRRewriter rewriter(op);
      Decomposer(rewriter, op).decompose();
      ++numDecomposed;
    }
  }
};
} // namespace

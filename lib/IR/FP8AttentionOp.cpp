//===- FP8AttentionOp.cpp - Attention -------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulVerifiers.h"

using namespace mlir;
using namespace mlir::fp8;

ArrayRef<int64_t> AttentionOp::getShapeOf(Value operand) {
  if (auto scaled = dyn_cast<ScaledType>(operand.getType()))
    return scaled.getShape();
  return cast<RankedTensorType>(operand.getType()).getShape();
}

Type AttentionOp::getElementTypeOf(Value operand) {
  return getElementTypeOfOperand(operand.getType());
}

static std::optional<int64_t> getLimit(AttentionOp op, size_t side) {
  std::optional<ArrayRef<int64_t>> window = op.getWindow();
  if (!window || (*window)[side] < 0)
    return std::nullopt;
  return (*window)[side];
}

std::optional<int64_t> AttentionOp::getLeft() { return getLimit(*this, 0); }
std::optional<int64_t> AttentionOp::getRight() { return getLimit(*this, 1); }

double AttentionOp::getFactorOfP() {
  if (std::optional<APFloat> factor = getPScale())
    return factor->convertToDouble();
  return isScaled() ? 256.0 : 1.0;
}

Accumulate AttentionOp::getSums() {
  return getAccumulate().value_or(isScaled() ? Accumulate::Promote
                                             : Accumulate::Fast);
}

int64_t AttentionOp::getPageSize() {
  return getPageTable() ? getShapeOf(getK())[getSequenceDim()]
                        : ShapedType::kDynamic;
}

int64_t AttentionOp::getNumKeys() {
  if (!getPageTable())
    return getShapeOf(getK())[getSequenceDim()];
  int64_t pages = getPageTable().getType().getDimSize(1);
  return ShapedType::isDynamic(pages) ? pages : pages * getPageSize();
}

/// Verifies attention_c1.
static LogicalResult verifyShapes(AttentionOp op) {
  auto output = op.getOutput().getType();
  for (auto [name, operand] : {std::pair<StringRef, Value>{"q", op.getQ()},
                               {"k", op.getK()},
                               {"v", op.getV()},
                               {"the result", op.getOutput()}}) {
    if (int64_t rank = AttentionOp::getShapeOf(operand).size(); rank != 4)
      return op.emitOpError("expected ")
             << name << " to have rank 4, but got " << operand.getType();
    if (ShapedType::isDynamic(
            AttentionOp::getShapeOf(operand)[op.getHeadDim()]))
      return op.emitOpError("expected ")
             << name << " to have a static number of heads, but got "
             << operand.getType();
  }
  ArrayRef<int64_t> q = AttentionOp::getShapeOf(op.getQ());
  ArrayRef<int64_t> k = AttentionOp::getShapeOf(op.getK());
  ArrayRef<int64_t> v = AttentionOp::getShapeOf(op.getV());
  int64_t sequence = op.getSequenceDim(), head = op.getHeadDim();
  int64_t heads = q[head], headsOfK = k[head];
  auto agree = [](int64_t a, int64_t b) { return areCompatible({a}, {b}); };
  if ((!op.getPageTable() && !agree(q[0], k[0])) || !agree(q[3], k[3]))
    return op.emitOpError("expected q and k to agree in batches and head "
                          "dimension, but got ")
           << op.getQ().getType() << " and " << op.getK().getType();
  if (!areCompatible(k.take_front(3), v.take_front(3)))
    return op.emitOpError("expected k and v to agree in all but the head "
                          "dimension, but got ")
           << op.getK().getType() << " and " << op.getV().getType();
  if (headsOfK == 0 ? heads != 0 : heads % headsOfK != 0)
    return op.emitOpError("expected the number of heads of q to be a multiple "
                          "of that of k, but got ")
           << heads << " and " << headsOfK;
  SmallVector<int64_t> expected(q);
  expected[3] = v[3];
  if (!areCompatible(expected, output.getShape()))
    return op.emitOpError("expected result to have shape ")
           << RankedTensorType::get(expected, output.getElementType())
           << ", but got " << output;
  // attention_c7
  if (!op.getLse())
    return success();
  SmallVector<int64_t> rows{q[0], heads, q[sequence]};
  if (!areCompatible(rows, op.getLse().getType().getShape()))
    return op.emitOpError("expected lse to have shape ")
           << RankedTensorType::get(rows, Float32Type::get(op.getContext()))
           << ", but got " << op.getLse().getType();
  return success();
}

/// Verifies attention_c2 and attention_c3.
static LogicalResult verifyElements(AttentionOp op) {
  bool isScaled = op.isScaled();
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"k", op.getK()}, {"v", op.getV()}}) {
    bool fits = isa<ScaledType>(operand.getType()) == isScaled &&
                (isScaled || AttentionOp::getElementTypeOf(operand) ==
                                 AttentionOp::getElementTypeOf(op.getQ()));
    if (!fits)
      return op.emitOpError("expected q and ")
             << name
             << " to be scaled, or tensors of one element type, but got "
             << op.getQ().getType() << " and " << operand.getType();
  }
  if (!isScaled)
    return success();
  for (auto [name, operand] : {std::pair<StringRef, Value>{"q", op.getQ()},
                               {"k", op.getK()},
                               {"v", op.getV()}}) {
    auto type = cast<ScaledType>(operand.getType());
    if (type.getElementType().getIntOrFloatBitWidth() != 8)
      return op.emitOpError("expected ")
             << name << " to have codes of 8 bits, but got " << type;
    bool isOfHeads = type.getBlock()[0] == 1 &&
                     type.getBlock()[op.getHeadDim()] == 1 &&
                     !type.isBlocked(op.getSequenceDim()) && !type.isBlocked(3);
    if (!type.getScaleType().isF32() || (!type.isPerTensor() && !isOfHeads))
      return op.emitOpError("expected ")
             << name
             << " to have an f32 factor for the tensor, or for each head of "
                "each batch, but got "
             << type;
  }
  return success();
}

/// Verifies attention_c8.
static LogicalResult verifyMask(AttentionOp op) {
  if (!op.getMask())
    return success();
  auto type = cast<RankedTensorType>(op.getMask().getType());
  Type element = type.getElementType();
  ArrayRef<int64_t> q = AttentionOp::getShapeOf(op.getQ());
  SmallVector<int64_t> scores{q[0], q[op.getHeadDim()], q[op.getSequenceDim()],
                              op.getNumKeys()};
  bool fits = type.getRank() <= 4 && (element.isInteger(1) || element.isF32() ||
                                      element.isBF16() || element.isF16());
  for (int64_t i = 0, e = type.getRank(); fits && i < e; ++i) {
    int64_t extent = type.getDimSize(e - 1 - i);
    fits = extent == 1 || areCompatible({extent}, {scores[3 - i]});
  }
  if (fits)
    return success();
  return op.emitOpError("expected mask to be of i1, f32, bf16 or f16 and to be "
                        "broadcast to ")
         << RankedTensorType::get(scores, element) << ", but got " << type;
}

/// Verifies attention_c10, attention_c12, attention_c13 and attention_c14.
static LogicalResult verifyNumbers(AttentionOp op) {
  ArrayRef<int64_t> q = AttentionOp::getShapeOf(op.getQ());
  int64_t batch = q[0], queries = q[op.getSequenceDim()];
  auto verify = [&](StringRef name, Value operand,
                    ArrayRef<int64_t> shape) -> LogicalResult {
    if (!operand)
      return success();
    auto type = cast<RankedTensorType>(operand.getType());
    if (areCompatible(type.getShape(), shape))
      return success();
    return op.emitOpError("expected ")
           << name << " to have shape "
           << RankedTensorType::get(shape, type.getElementType())
           << ", but got " << type;
  };
  return success(
      succeeded(verify("key_lengths", op.getKeyLengths(), {batch})) &&
      succeeded(verify("key_starts", op.getKeyStarts(), {batch})) &&
      succeeded(verify("key_ranges", op.getKeyRanges(), {batch, queries, 2})) &&
      succeeded(verify("sinks", op.getSinks(), {q[op.getHeadDim()]})));
}

/// Verifies attention_c11.
static LogicalResult verifyPages(AttentionOp op) {
  if (!op.getPageTable())
    return success();
  int64_t batch = AttentionOp::getShapeOf(op.getQ())[0];
  RankedTensorType table = op.getPageTable().getType();
  if (!areCompatible(table.getShape().take_front(), {batch}))
    return op.emitOpError("expected page_table to have ")
           << batch << " rows, as q has batches, but got " << table;
  if (op.getPageSize() < 1)
    return op.emitOpError("expected pages of a static, positive number of "
                          "keys, but got ")
           << op.getK().getType();
  for (auto [name, operand] :
       {std::pair<StringRef, Value>{"k", op.getK()}, {"v", op.getV()}})
    if (auto scaled = dyn_cast<ScaledType>(operand.getType());
        scaled && !scaled.isPerTensor())
      return op.emitOpError("expected ")
             << name << " to have a factor for the tensor with page_table, "
             << "but got " << scaled;
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyShapes(*this)) || failed(verifyElements(*this)) ||
      failed(verifyMask(*this)))
    return failure();
  if (failed(verifyNumbers(*this)) || failed(verifyPages(*this)))
    return failure();
  // attention_c4
  const APFloat &scale = getSoftmaxScale();
  if (!scale.isFinite() || scale.isNegative() || scale.isZero())
    return emitOpError("expected scale to be finite and positive, but got ")
           << getSoftmaxScaleAttr();
  // attention_c5
  if (std::optional<ArrayRef<int64_t>> window = getWindow();
      window && (window->size() != 2 ||
                 llvm::any_of(*window, [](int64_t side) { return side < -1; })))
    return emitOpError("expected window to have two entries, each at least 0 "
                       "or '*', but got ")
           << getWindowAttr();
  // attention_c6
  if (std::optional<APFloat> factor = getPScale()) {
    auto type = cast<FloatType>(getElementTypeOf(getV()));
    double most =
        APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
    double value = factor->convertToDouble();
    if (factor->getExactLog2() == INT_MIN || value < 1.0 || value > most)
      return emitOpError("expected p_scale to be a power of two from 1 to the "
                         "largest finite value of ")
             << type << ", but got " << getPScaleAttr();
  }
  // attention_c9
  if (!isScaled() && getSums() != Accumulate::Fast)
    return emitOpError("expected accumulate = fast with operands in high "
                       "precision, but got promote");
  return success();
}

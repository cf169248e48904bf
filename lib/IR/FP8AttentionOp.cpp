//===- FP8AttentionOp.cpp - Attention -------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulVerifiers.h"
#include "WindowSyntax.h"
#include "fp8/IR/Dropout.h"
#include "fp8/IR/FP8AttentionBackwardOp.h"

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

template <class OpTy>
static std::optional<int64_t> getLimit(OpTy op, size_t side) {
  std::optional<ArrayRef<int64_t>> window = op.getWindow();
  if (!window || (*window)[side] < 0)
    return std::nullopt;
  return (*window)[side];
}

std::optional<int64_t> AttentionOp::getLeft() { return getLimit(*this, 0); }
std::optional<int64_t> AttentionOp::getRight() { return getLimit(*this, 1); }

std::optional<int64_t> AttentionBackwardOp::getLeft() {
  return getLimit(*this, 0);
}
std::optional<int64_t> AttentionBackwardOp::getRight() {
  return getLimit(*this, 1);
}

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

/// Verifies attention_c1, and attention_backward_c1: the shapes of operands,
/// and of `result`, which is called `name`.
template <class OpTy>
static LogicalResult verifyShapes(OpTy op, StringRef name, Value result) {
  for (auto [name, operand] : {std::pair<StringRef, Value>{"q", op.getQ()},
                               {"k", op.getK()},
                               {"v", op.getV()},
                               {name, result}}) {
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
  int64_t head = op.getHeadDim();
  int64_t heads = q[head], headsOfK = k[head];
  auto agree = [](int64_t a, int64_t b) { return areCompatible({a}, {b}); };
  bool hasPages = false;
  if constexpr (std::is_same_v<OpTy, AttentionOp>)
    hasPages = op.getPageTable() != nullptr;
  if ((!hasPages && !agree(q[0], k[0])) || !agree(q[3], k[3]))
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
  auto type = cast<RankedTensorType>(result.getType());
  if (!areCompatible(expected, type.getShape()))
    return op.emitOpError("expected ")
           << name << " to have shape "
           << RankedTensorType::get(expected, type.getElementType())
           << ", but got " << type;
  return success();
}

/// Verifies attention_c7, and attention_backward_c6: `numbers` are of rows.
template <class OpTy>
static LogicalResult verifyRows(OpTy op, StringRef name, Value numbers) {
  if (!numbers)
    return success();
  ArrayRef<int64_t> q = AttentionOp::getShapeOf(op.getQ());
  SmallVector<int64_t> rows{q[0], q[op.getHeadDim()], q[op.getSequenceDim()]};
  if (areCompatible(rows, cast<RankedTensorType>(numbers.getType()).getShape()))
    return success();
  return op.emitOpError("expected ")
         << name << " to have shape "
         << RankedTensorType::get(rows, Float32Type::get(op.getContext()))
         << ", but got " << numbers.getType();
}

/// Verifies c2 and c3 of both.
template <class OpTy>
static LogicalResult verifyElements(OpTy op) {
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
    constexpr bool takesBlocks = std::is_same_v<OpTy, AttentionOp>;
    bool isInBlocks = type.isBlocked(op.getSequenceDim());
    bool isOfHeads = type.getBlock()[0] == 1 &&
                     type.getBlock()[op.getHeadDim()] == 1 &&
                     !type.isBlocked(3) && (takesBlocks || !isInBlocks);
    if (!type.getScaleType().isF32() || (!type.isPerTensor() && !isOfHeads))
      return op.emitOpError("expected ")
             << name
             << " to have an f32 factor for the tensor, or for each head of "
                "each batch"
             << (takesBlocks ? " and each block of its positions" : "")
             << ", but got " << type;
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

/// Verifies that numbers of keys, ranges or sinks, if there are any, are of
/// `shape`.
template <class OpTy>
static LogicalResult verifyNumbers(OpTy op, StringRef name, Value operand,
                                   ArrayRef<int64_t> shape) {
  if (!operand)
    return success();
  auto type = cast<RankedTensorType>(operand.getType());
  if (areCompatible(type.getShape(), shape))
    return success();
  return op.emitOpError("expected ")
         << name << " to have shape "
         << RankedTensorType::get(shape, type.getElementType()) << ", but got "
         << type;
}

/// Verifies attention_c13, and attention_backward_c8.
template <class OpTy>
static LogicalResult verifyRanges(OpTy op) {
  ArrayRef<int64_t> q = AttentionOp::getShapeOf(op.getQ());
  return verifyNumbers(op, "key_ranges", op.getKeyRanges(),
                       {q[0], q[op.getSequenceDim()], 2});
}

/// Verifies attention_c10, attention_c12, attention_c13 and attention_c14.
static LogicalResult verifyAllNumbers(AttentionOp op) {
  ArrayRef<int64_t> q = AttentionOp::getShapeOf(op.getQ());
  if (failed(verifyNumbers(op, "key_lengths", op.getKeyLengths(), {q[0]})) ||
      failed(verifyNumbers(op, "key_starts", op.getKeyStarts(), {q[0]})) ||
      failed(verifyRanges(op)))
    return failure();
  return verifyNumbers(op, "sinks", op.getSinks(), {q[op.getHeadDim()]});
}

/// Verifies the rest of attention_c3: sums of products with values that have
/// other factors are added one by one.
static LogicalResult verifyBlocks(AttentionOp op) {
  auto type = dyn_cast<ScaledType>(op.getV().getType());
  if (!type || type.isPerTensor() || !type.isBlocked(op.getSequenceDim()) ||
      op.getSums() != Accumulate::Fast)
    return success();
  return op.emitOpError("expected accumulate = promote with factors for blocks "
                        "of positions of v, but got fast with ")
         << type;
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

/// Verifies attention_c16, and attention_backward_c10.
template <class OpTy>
static LogicalResult verifyDropout(OpTy op) {
  std::optional<APFloat> rate = op.getRate();
  if (rate.has_value() != (op.getDropout() != nullptr))
    return op.emitOpError("expected dropout and its rate, but got one of both");
  if (!rate)
    return success();
  constexpr int64_t kOne = int64_t(1) << 16;
  if (!rate->isFinite() || (rate->isNegative() && !rate->isZero()) ||
      rate->convertToDouble() >= 1.0 || getDropThreshold(rate) >= kOne)
    return op.emitOpError("expected a rate from 0 to 1 - 2^-16, but got ")
           << op.getRateAttr();
  // Kernels read both.
  if (auto type = cast<ShapedType>(op.getDropout().getType());
      type.hasRank() && !type.hasStaticShape())
    return op.emitOpError(
               "expected dropout to have shape 'tensor<2xi64>', but got ")
           << type;
  return verifyNumbers(op, "dropout", op.getDropout(), {2});
}

/// Verifies c4 and c5 of both, attention_c15 and attention_backward_c9.
template <class OpTy>
static LogicalResult verifyScores(OpTy op) {
  const APFloat &scale = op.getSoftmaxScale();
  if (!scale.isFinite() || scale.isNegative() || scale.isZero())
    return op.emitOpError("expected scale to be finite and positive, but got ")
           << op.getSoftmaxScaleAttr();
  if (std::optional<APFloat> cap = op.getCap();
      cap && (!cap->isFinite() || cap->isNegative() || cap->isZero()))
    return op.emitOpError("expected cap to be finite and positive, but got ")
           << op.getCapAttr();
  if (std::optional<ArrayRef<int64_t>> window = op.getWindow();
      window && (window->size() != 2 ||
                 llvm::any_of(*window, [](int64_t side) { return side < -1; })))
    return op.emitOpError("expected window to have two entries, each at least "
                          "0 or '*', but got ")
           << op.getWindowAttr();
  return success();
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyShapes(*this, "result", getOutput())) ||
      failed(verifyRows(*this, "lse", getLse())) ||
      failed(verifyElements(*this)) || failed(verifyMask(*this)))
    return failure();
  if (failed(verifyAllNumbers(*this)) || failed(verifyPages(*this)) ||
      failed(verifyBlocks(*this)) || failed(verifyScores(*this)) ||
      failed(verifyDropout(*this)))
    return failure();
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

LogicalResult AttentionBackwardOp::verify() {
  if (failed(verifyShapes(*this, "grad", getGrad())) ||
      failed(verifyElements(*this)) || failed(verifyScores(*this)) ||
      failed(verifyRanges(*this)) || failed(verifyDropout(*this)) ||
      failed(verifyRows(*this, "lse", getLse())) ||
      failed(verifyRows(*this, "delta", getDelta())))
    return failure();
  // attention_backward_c7
  Type element = getGrad().getType().getElementType();
  for (auto [name, operand, result] :
       {std::tuple<StringRef, Value, Value>{"q", getQ(), getDq()},
        {"k", getK(), getDk()},
        {"v", getV(), getDv()}}) {
    auto type = cast<RankedTensorType>(result.getType());
    ArrayRef<int64_t> shape = AttentionOp::getShapeOf(operand);
    if (!areCompatible(shape, type.getShape()) ||
        type.getElementType() != element)
      return emitOpError("expected the gradient of ")
             << name << " to be " << RankedTensorType::get(shape, element)
             << ", but got " << type;
    if (!isScaled() && AttentionOp::getElementTypeOf(operand) != element)
      return emitOpError("expected ")
             << name << " to have the element type of grad, " << element
             << ", but got " << operand.getType();
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Windows, as they are written
//===----------------------------------------------------------------------===//

ParseResult fp8::parseWindow(OpAsmParser &parser, DenseI64ArrayAttr &window) {
  if (failed(parser.parseOptionalKeyword("window")))
    return success();
  SmallVector<int64_t> sides;
  auto parseSide = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalStar())) {
      sides.push_back(-1);
      return success();
    }
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseInteger(sides.emplace_back()))
      return failure();
    if (sides.back() < 0)
      return parser.emitError(loc, "expected a side of the window to be at "
                                   "least 0 or '*', but got ")
             << sides.back();
    return success();
  };
  if (parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseSide))
    return failure();
  window = parser.getBuilder().getDenseI64ArrayAttr(sides);
  return success();
}

void fp8::printWindow(OpAsmPrinter &printer, Operation *,
                      DenseI64ArrayAttr window) {
  if (!window)
    return;
  printer << "window = [";
  llvm::interleaveComma(window.asArrayRef(), printer, [&](int64_t side) {
    if (side < 0)
      printer << '*';
    else
      printer << side;
  });
  printer << ']';
}

/// `order = deterministic`, the default, or `order = any`.
static ParseResult parseSumOrder(OpAsmParser &parser, UnitAttr &anyOrder) {
  if (failed(parser.parseOptionalKeyword("order")))
    return success();
  StringRef word;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseEqual())
    return failure();
  if (failed(parser.parseOptionalKeyword(&word, {"deterministic", "any"})))
    return parser.emitError(loc, "expected order to be deterministic or any");
  if (word == "any")
    anyOrder = parser.getBuilder().getUnitAttr();
  return success();
}

static void printSumOrder(OpAsmPrinter &printer, Operation *,
                          UnitAttr anyOrder) {
  if (anyOrder)
    printer << "order = any";
}

#define GET_OP_CLASSES
#include "fp8/IR/FP8AttentionBackwardOp.cpp.inc"

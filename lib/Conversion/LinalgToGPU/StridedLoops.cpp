//===- StridedLoops.cpp - Loops and how operands go along them ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StridedLoops.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::fp8;

std::optional<int64_t> fp8::getElementBytes(Type type) {
  if (type.isIndex())
    return 8;
  if (!isa<IntegerType, FloatType>(type))
    return std::nullopt;
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return 1;
  case 8:
  case 16:
  case 32:
  case 64:
    return type.getIntOrFloatBitWidth() / 8;
  default:
    return std::nullopt;
  }
}

OpFoldResult fp8::multiply(OpBuilder &b, Location loc, OpFoldResult lhs,
                           OpFoldResult rhs) {
  AffineExpr first, second;
  bindSymbols(b.getContext(), first, second);
  return affine::makeComposedFoldedAffineApply(b, loc, first * second,
                                               {lhs, rhs});
}

OpFoldResult fp8::add(OpBuilder &b, Location loc, OpFoldResult lhs,
                      OpFoldResult rhs) {
  AffineExpr first, second;
  bindSymbols(b.getContext(), first, second);
  return affine::makeComposedFoldedAffineApply(b, loc, first + second,
                                               {lhs, rhs});
}

LogicalResult fp8::getMixedLayout(OpBuilder &b, Location loc, Value memref,
                                  SmallVectorImpl<OpFoldResult> &strides,
                                  OpFoldResult &offset) {
  auto type = cast<MemRefType>(memref.getType());
  SmallVector<int64_t> known;
  int64_t first;
  if (failed(type.getStridesAndOffset(known, first)))
    return failure();
  if (!ShapedType::isDynamic(first) && !ShapedType::isDynamicShape(known)) {
    strides = getAsIndexOpFoldResult(b.getContext(), known);
    offset = b.getIndexAttr(first);
    return success();
  }
  auto metadata = memref::ExtractStridedMetadataOp::create(b, loc, memref);
  strides = metadata.getConstifiedMixedStrides();
  offset = metadata.getConstifiedMixedOffset();
  return success();
}

namespace {
/// A sum of dimensions with known factors.
struct LinearExpr {
  SmallVector<int64_t> factors;
  int64_t constant = 0;
};
} // namespace

static std::optional<LinearExpr> getLinear(AffineExpr expr, unsigned numDims) {
  LinearExpr result;
  result.factors.assign(numDims, 0);
  if (auto constant = dyn_cast<AffineConstantExpr>(expr)) {
    result.constant = constant.getValue();
    return result;
  }
  if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
    result.factors[dim.getPosition()] = 1;
    return result;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  if (!binary)
    return std::nullopt;
  std::optional<LinearExpr> lhs = getLinear(binary.getLHS(), numDims);
  std::optional<LinearExpr> rhs = getLinear(binary.getRHS(), numDims);
  if (!lhs || !rhs)
    return std::nullopt;
  if (expr.getKind() == AffineExprKind::Add) {
    for (unsigned dim = 0; dim < numDims; ++dim)
      result.factors[dim] = lhs->factors[dim] + rhs->factors[dim];
    result.constant = lhs->constant + rhs->constant;
    return result;
  }
  // A product has its constant on the right.
  if (expr.getKind() != AffineExprKind::Mul ||
      !isa<AffineConstantExpr>(binary.getRHS()))
    return std::nullopt;
  for (unsigned dim = 0; dim < numDims; ++dim)
    result.factors[dim] = lhs->factors[dim] * rhs->constant;
  result.constant = lhs->constant * rhs->constant;
  return result;
}

static StridedOperand makeOperand(RewriterBase &b, linalg::LinalgOp op,
                                  OpOperand &operand) {
  StridedOperand result;
  result.operand = &operand;
  auto type = dyn_cast<MemRefType>(operand.get().getType());
  SmallVector<OpFoldResult> strides;
  Location loc = op.getLoc();
  if (!type || !getElementBytes(type.getElementType()))
    return result;
  AffineMap map = op.getMatchingIndexingMap(&operand);
  SmallVector<LinearExpr> exprs;
  for (AffineExpr expr : map.getResults()) {
    std::optional<LinearExpr> linear = getLinear(expr, map.getNumDims());
    if (!linear)
      return result;
    exprs.push_back(std::move(*linear));
  }
  if (failed(getMixedLayout(b, loc, operand.get(), strides, result.offset)))
    return result;
  result.isStrided = true;
  result.strides.assign(map.getNumDims(), b.getIndexAttr(0));
  auto raise = [&](OpFoldResult &sum, OpFoldResult stride, int64_t factor) {
    if (factor)
      sum = add(b, loc, sum, multiply(b, loc, stride, b.getIndexAttr(factor)));
  };
  for (auto [expr, stride] : llvm::zip_equal(exprs, strides)) {
    for (auto [sum, factor] : llvm::zip_equal(result.strides, expr.factors))
      raise(sum, stride, factor);
    raise(result.offset, stride, expr.constant);
  }
  return result;
}

/// The last dimension of a memref that a loop goes along.
static int64_t findResult(AffineMap map, unsigned dim) {
  for (int64_t result = map.getNumResults(); result-- > 0;)
    if (map.getResult(result).isFunctionOfDim(dim))
      return result;
  return -1;
}

std::optional<StridedLoops> StridedLoops::get(RewriterBase &b,
                                              linalg::LinalgOp op) {
  StridedLoops result;
  for (OpOperand &operand : op->getOpOperands())
    result.operands.push_back(makeOperand(b, op, operand));
  SmallVector<utils::IteratorType> kinds = op.getIteratorTypesArray();
  for (OpOperand &init : op.getDpsInitsMutable()) {
    const StridedOperand &written = result.getOperand(&init);
    if (!written.isStrided)
      return std::nullopt;
    // Threads do not write the same element.
    for (auto [dim, kind] : llvm::enumerate(kinds))
      if (kind == utils::IteratorType::parallel && written.isSame(dim) &&
          op.getStaticLoopRanges()[dim] != 1)
        return std::nullopt;
  }
  for (auto [dim, range] : llvm::enumerate(op.createLoopRanges(b, op.getLoc())))
    result.loops.push_back({{static_cast<unsigned>(dim)},
                            range.size,
                            kinds[dim] == utils::IteratorType::reduction});
  result.sort(op);
  result.merge(b, op);
  return result;
}

std::optional<unsigned> StridedLoops::findLoop(unsigned dim) const {
  for (auto [index, loop] : llvm::enumerate(loops))
    if (loop.dims.size() == 1 && loop.dims.front() == dim)
      return index;
  return std::nullopt;
}

bool StridedLoops::isGapless(const StridedOperand &operand) const {
  if (!operand.isStrided || getConstantIntValue(operand.offset) != 0)
    return false;
  int64_t distance = 1;
  for (size_t loop = loops.size(); loop-- > 0;) {
    std::optional<int64_t> size = getConstantIntValue(loops[loop].size);
    if (!size || operand.getStride(loop) != distance)
      return false;
    distance *= *size;
  }
  return true;
}

/// Loops by the distances in what is written, the longest first; without those
/// that have one iteration.
void StridedLoops::sort(linalg::LinalgOp op) {
  const StridedOperand &written = getOperand(op.getDpsInitOperand(0));
  AffineMap map = op.getMatchingIndexingMap(written.operand);
  bool isKnown = true;
  for (unsigned loop = 0; loop < loops.size(); ++loop)
    isKnown &= loops[loop].isReduction || written.getStride(loop).has_value();
  auto isBefore = [&](unsigned lhs, unsigned rhs) {
    if (loops[lhs].isReduction || loops[rhs].isReduction)
      return loops[lhs].isReduction == loops[rhs].isReduction
                 ? lhs < rhs
                 : loops[rhs].isReduction;
    auto getKey = [&](unsigned loop) {
      return std::pair(
          isKnown ? -*written.getStride(loop) : findResult(map, loop), loop);
    };
    return getKey(lhs) < getKey(rhs);
  };
  auto order = llvm::to_vector(llvm::seq<unsigned>(0, loops.size()));
  llvm::sort(order, isBefore);
  llvm::erase_if(order, [&](unsigned loop) {
    return getConstantIntValue(loops[loop].size) == 1;
  });
  auto permute = [&](auto &values) {
    auto old = std::move(values);
    values.clear();
    for (unsigned loop : order)
      values.push_back(old[loop]);
  };
  permute(loops);
  for (StridedOperand &operand : operands)
    if (operand.isStrided)
      permute(operand.strides);
}

/// Whether every operand goes through loops `outer` and the next as through
/// one.
bool StridedLoops::canMerge(unsigned outer, linalg::LinalgOp op,
                            const llvm::SmallBitVector &isApart) const {
  const StridedLoop &first = loops[outer], &second = loops[outer + 1];
  unsigned last = first.dims.back(), next = second.dims.front();
  if (first.isReduction != second.isReduction || isApart[last] || isApart[next])
    return false;
  std::optional<int64_t> size = getConstantIntValue(second.size);
  return llvm::all_of(operands, [&](const StridedOperand &operand) {
    if (!operand.isStrided)
      return true;
    std::optional<int64_t> far = operand.getStride(outer),
                           near = operand.getStride(outer + 1);
    if (far == 0 && near == 0)
      return true;
    if (far && near && size)
      return *far == *near * *size;
    // Neighbours in what has no gaps, however long they are.
    AffineMap map = op.getMatchingIndexingMap(operand.operand);
    auto type = cast<MemRefType>(operand.operand->get().getType());
    int64_t place = findResult(map, last);
    return type.getLayout().isIdentity() && map.isProjectedPermutation() &&
           place >= 0 && findResult(map, next) == place + 1;
  });
}

void StridedLoops::merge(RewriterBase &b, linalg::LinalgOp op) {
  llvm::SmallBitVector isApart(op.getNumLoops());
  op.getBlock()->walk(
      [&](linalg::IndexOp index) { isApart.set(index.getDim()); });
  for (const StridedOperand &operand : operands)
    if (!operand.isStrided)
      for (unsigned dim = 0; dim < op.getNumLoops(); ++dim)
        if (op.getMatchingIndexingMap(operand.operand).isFunctionOfDim(dim))
          isApart.set(dim);
  for (unsigned outer = loops.size(); outer-- > 1;) {
    unsigned place = outer - 1;
    if (!canMerge(place, op, isApart))
      continue;
    StridedLoop &first = loops[place], &second = loops[place + 1];
    llvm::append_range(first.dims, second.dims);
    first.size = multiply(b, op.getLoc(), first.size, second.size);
    loops.erase(loops.begin() + place + 1);
    for (StridedOperand &operand : operands)
      if (operand.isStrided)
        operand.strides.erase(operand.strides.begin() + place);
  }
}

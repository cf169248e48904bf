//===- FP8GroupedMatmulOp.cpp - Matmuls of ranges -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulVerifiers.h"

using namespace mlir;
using namespace mlir::fp8;

bool GroupedMatmulOp::sumsGroups() { return getShapeOfB().size() == 2; }

int64_t GroupedMatmulOp::getNumGroups() {
  int64_t bounds = getOffsets().getType().getDimSize(0);
  if (!ShapedType::isDynamic(bounds))
    return bounds - 1;
  if (!sumsGroups())
    return getShapeOfB().front();
  RankedTensorType result = getResult().getType();
  return result.getRank() == 3 ? result.getDimSize(0) : ShapedType::kDynamic;
}

SmallVector<int64_t> GroupedMatmulOp::getShapeOfA() {
  return getShapeWithKLast(getA().getType(), getTransposeA());
}
SmallVector<int64_t> GroupedMatmulOp::getShapeOfB() {
  return getShapeWithKLast(getB().getType(), getTransposeB());
}
ScaledType GroupedMatmulOp::getScaledA() {
  return getScaledWithKLast(getA(), getTransposeA());
}
ScaledType GroupedMatmulOp::getScaledB() {
  return getScaledWithKLast(getB(), getTransposeB());
}
Type GroupedMatmulOp::getElementTypeOfA() {
  return getElementTypeOfOperand(getA().getType());
}
Type GroupedMatmulOp::getElementTypeOfB() {
  return getElementTypeOfOperand(getB().getType());
}

/// Whether T x K goes with G x N x K, or M x T with N x T; says why not, in
/// terms of the types `a` and `b`.
static bool areMultipliable(raw_ostream &os, ArrayRef<int64_t> aShape,
                            ArrayRef<int64_t> bShape, Type a, Type b) {
  // grouped_matmul_c1
  if (aShape.size() != 2 || (bShape.size() != 2 && bShape.size() != 3))
    os << "expected a to have rank 2 and b rank 3 or 2, but got '" << a
       << "' and '" << b << "'";
  // grouped_matmul_c2
  else if (!areCompatible(aShape.take_back(), bShape.take_back()))
    os << "expected a and b to agree in "
       << (bShape.size() == 3 ? "K," : "T, which is summed over,")
       << " but got '" << a << "' and '" << b << "'";
  else
    return true;
  return false;
}

std::string GroupedMatmulOp::describeMismatch(ScaledType a, ScaledType b,
                                              Accumulate accumulate) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!areMultipliable(os, a.getShape(), b.getShape(), a, b))
    return text;
  // grouped_matmul_c5
  if (b.getRank() == 2)
    return MatmulOp::describeMismatch(a, b, accumulate);
  if (!b.isPerTensor() && b.getBlock()[0] == ScaledType::kWhole &&
      b.getShape()[0] != 1) {
    os << "expected one scale for the tensor or a block of 1 in the dimension "
          "of groups, but got '"
       << b << "'";
    return text;
  }
  if (a.getBlock()[0] != 1 && a.getBlock()[0] != ScaledType::kWhole) {
    os << "expected a to have a factor for each row or for all, as groups "
          "begin anywhere, but got '"
       << a << "'";
    return text;
  }
  auto ofGroup = ScaledType::get(b.getContext(), b.getShape().drop_front(),
                                 b.getElementType(), b.getBlock().drop_front(),
                                 b.getScaleType(), b.getHasTensorScale());
  return MatmulOp::describeMismatch(a, ofGroup, accumulate);
}

LogicalResult GroupedMatmulOp::verify() {
  std::string mismatch = describeOperandMismatch(*this, areMultipliable);
  if (!mismatch.empty())
    return emitOpError(mismatch);
  RankedTensorType result = getResult().getType();
  SmallVector<int64_t> a = getShapeOfA(), b = getShapeOfB();
  // grouped_matmul_c3
  int64_t bounds = getOffsets().getType().getDimSize(0);
  int64_t groups = sumsGroups() ? ShapedType::kDynamic : b.front();
  if (sumsGroups() && result.getRank() == 3)
    groups = result.getDimSize(0);
  if (!ShapedType::isDynamic(bounds) &&
      (bounds < 1 || (!ShapedType::isDynamic(groups) && bounds != groups + 1)))
    return emitOpError("expected offsets to have one element more than there "
                       "are groups, but got ")
           << getOffsets().getType() << " for "
           << (ShapedType::isDynamic(groups) ? std::string("?")
                                             : std::to_string(groups))
           << " groups";
  // grouped_matmul_c4
  SmallVector<int64_t> expected{a.front(), b[b.size() - 2]};
  if (sumsGroups())
    expected.insert(expected.begin(), getNumGroups());
  if (!areCompatible(expected, result.getShape()))
    return emitOpError("expected result to have shape ")
           << RankedTensorType::get(expected, result.getElementType())
           << ", but got " << result;
  return success();
}

LogicalResult GroupedMatmulOp::verifyRegions() {
  return verifyEpilogue(*this, getEpilogue(), getEpilogueOperands(),
                        getResult().getType(), /*hasAmax=*/false);
}

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

bool GroupedMatmulOp::sumsGroups() {
  return isMasked() ? getBoundedBy() == GroupBounds::CountsK
                    : getShapeOfB().size() == 2;
}

int64_t GroupedMatmulOp::getNumGroups() {
  int64_t bounds = getBounds().getType().getDimSize(0);
  if (!ShapedType::isDynamic(bounds))
    return isMasked() ? bounds : bounds - 1;
  if (isMasked() && !ShapedType::isDynamic(getShapeOfA().front()))
    return getShapeOfA().front();
  if (isMasked() || !sumsGroups())
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

/// Whether T x K goes with G x N x K, M x T with N x T, or G x M x K with
/// G x N x K; says why not, in terms of the types `a` and `b`.
static bool areMultipliable(raw_ostream &os, ArrayRef<int64_t> aShape,
                            ArrayRef<int64_t> bShape, Type a, Type b) {
  bool isMasked = aShape.size() == 3 && bShape.size() == 3;
  // grouped_matmul_c1
  if (!isMasked &&
      (aShape.size() != 2 || (bShape.size() != 2 && bShape.size() != 3)))
    os << "expected a to have rank 2 and b rank 3 or 2, or both rank 3, but "
          "got '"
       << a << "' and '" << b << "'";
  // grouped_matmul_c2
  else if (isMasked && !areCompatible(aShape.take_front(), bShape.take_front()))
    os << "expected a and b to agree in the number of groups, but got '" << a
       << "' and '" << b << "'";
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
  for (ScaledType type : {a, b})
    if (type.getRank() == 3 && !type.isPerTensor() && type.getBlock()[0] != 1 &&
        type.getShape()[0] != 1) {
      os << "expected one scale for the tensor or a block of 1 in the "
            "dimension "
            "of groups, but got '"
         << type << "'";
      return text;
    }
  auto getOfGroup = [](ScaledType type) {
    return ScaledType::get(type.getContext(), type.getShape().drop_front(),
                           type.getElementType(), type.getBlock().drop_front(),
                           type.getScaleType(), type.getHasTensorScale());
  };
  if (a.getRank() == 3)
    return MatmulOp::describeMismatch(getOfGroup(a), getOfGroup(b), accumulate);
  if (a.getBlock()[0] != 1 && a.getBlock()[0] != ScaledType::kWhole) {
    os << "expected a to have a scale factor for each row or for all, as "
          "groups "
          "begin anywhere, but got '"
       << a << "'";
    return text;
  }
  return MatmulOp::describeMismatch(a, getOfGroup(b), accumulate);
}

/// Whether the number of bounds is that of groups.
static LogicalResult verifyBounds(GroupedMatmulOp op) {
  bool isMasked = op.isMasked();
  RankedTensorType result = op.getResult().getType();
  int64_t groups = ShapedType::kDynamic;
  if (isMasked || !op.sumsGroups())
    groups = op.getShapeOfB().front();
  else if (result.getRank() == 3)
    groups = result.getDimSize(0);
  int64_t bounds = op.getBounds().getType().getDimSize(0);
  if (ShapedType::isDynamic(bounds))
    return success();
  bool isKnown = !ShapedType::isDynamic(groups);
  int64_t least = isMasked ? 0 : 1;
  if (bounds >= least && (!isKnown || bounds == groups + least))
    return success();
  return op.emitOpError("expected ")
         << (isMasked ? "counts to have one element for each group"
                      : "offsets to have one element more than there are "
                        "groups")
         << ", but got " << op.getBounds().getType() << " for "
         << (isKnown ? std::to_string(groups) : std::string("?")) << " groups";
}

LogicalResult GroupedMatmulOp::verify() {
  std::string mismatch = describeOperandMismatch(*this, areMultipliable);
  if (!mismatch.empty())
    return emitOpError(mismatch);
  RankedTensorType result = getResult().getType();
  SmallVector<int64_t> a = getShapeOfA(), b = getShapeOfB();
  // grouped_matmul_c1
  if ((a.size() == 3) != isMasked())
    return emitOpError("expected ")
           << (isMasked() ? "a of rank 3 with counts, but got "
                          : "a of rank 2 with offsets, but got ")
           << getA().getType();
  // grouped_matmul_c3
  if (failed(verifyBounds(*this)))
    return failure();
  // grouped_matmul_c4
  SmallVector<int64_t> expected{a[a.size() - 2], b[b.size() - 2]};
  if (isMasked() || sumsGroups())
    expected.insert(expected.begin(), getNumGroups());
  if (!areCompatible(expected, result.getShape()))
    return emitOpError("expected result to have shape ")
           << RankedTensorType::get(expected, result.getElementType())
           << ", but got " << result;
  // grouped_matmul_c8
  if (getUndefPadding() && sumsGroups())
    return emitOpError("expected undef_padding with groups of rows, but "
                       "these are of what is summed over");
  if (std::optional<uint64_t> count = getExpectedM();
      count && (!isMasked() || static_cast<int64_t>(*count) < 0))
    return emitOpError("expected expected_m with counts, and 0 or more, "
                       "but got ")
           << static_cast<int64_t>(*count) << " with "
           << stringifyGroupBounds(getBoundedBy());
  return success();
}

LogicalResult GroupedMatmulOp::verifyRegions() {
  return verifyEpilogue(*this, getEpilogue(), getEpilogueOperands(),
                        getResult().getType(), /*hasAmax=*/false);
}

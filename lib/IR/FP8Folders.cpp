//===- FP8Folders.cpp - Folders -------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether constant factors are the inverse of a constant scale, by one IEEE
/// division: a scale may have taken a factor of its tensor along.
static bool areInverse(Attribute scale, Attribute scaleInv) {
  auto scales = dyn_cast_or_null<DenseFPElementsAttr>(scale);
  auto factors = dyn_cast_or_null<DenseFPElementsAttr>(scaleInv);
  if (!scales || !factors)
    return !scales && !factors;
  for (auto [scale, factor] : llvm::zip_equal(scales.getValues<APFloat>(),
                                              factors.getValues<APFloat>())) {
    APFloat inverse(scale.getSemantics(), 1);
    inverse.divide(scale, APFloat::rmNearestTiesToEven);
    bool losesInfo;
    APFloat wide = factor;
    wide.convert(scale.getSemantics(), APFloat::rmNearestTiesToEven,
                 &losesInfo);
    if (!inverse.bitwiseIsEqual(wide))
      return false;
  }
  return true;
}

/// quantize(dequantize(q)) with the factors of q is q: a code lies at least
/// 2^-4 (relative) from the nearest rounding boundary, the two f32 products and
/// the rounding to bf16 in between move it by less than 2^-8. f16 is left out
/// for its range, and a seed, since what has moved at all may go further.
OpFoldResult QuantizeOp::fold(FoldAdaptor adaptor) {
  if (isUnresolved() || getSeed())
    return {};
  if (!getTensorScaleInv() &&
      !areInverse(adaptor.getScale(), adaptor.getScaleInv()))
    return {};
  auto dequantize = getSource().getDefiningOp<DequantizeOp>();
  if (!dequantize || dequantize.getResult().getType().getElementType().isF16())
    return {};
  auto inner = dequantize.getSource().getDefiningOp<QuantizeOp>();
  if (inner && inner.getResult().getType() == getResult().getType() &&
      inner.getScale() == getScale() && inner.getScaleInv() == getScaleInv() &&
      inner.getTensorScaleInv() == getTensorScaleInv())
    return dequantize.getSource();
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  ArrayRef<int64_t> permutation = getPermutation();
  bool isIdentity = llvm::all_of(llvm::enumerate(permutation), [](auto entry) {
    return static_cast<int64_t>(entry.index()) == entry.value();
  });
  if (isIdentity)
    return getSource();
  // transpose(transpose(x)) is one transpose, or none.
  auto inner = getSource().getDefiningOp<TransposeOp>();
  if (!inner)
    return {};
  SmallVector<int64_t> composed;
  for (int64_t dim : permutation)
    composed.push_back(inner.getPermutation()[dim]);
  setOperand(inner.getSource());
  setPermutation(composed);
  return getResult();
}

/// assemble(disassemble(q)) is q.
OpFoldResult AssembleOp::fold(FoldAdaptor) {
  auto disassemble = getPayload().getDefiningOp<DisassembleOp>();
  if (disassemble && getPayload() == disassemble.getPayload() &&
      getScaleInv() == disassemble.getScaleInv() &&
      getTensorScaleInv() == disassemble.getTensorScaleInv() &&
      disassemble.getSource().getType() == getResult().getType())
    return disassemble.getSource();
  return {};
}

/// disassemble(assemble(parts)) is the parts.
LogicalResult DisassembleOp::fold(FoldAdaptor,
                                  SmallVectorImpl<OpFoldResult> &results) {
  auto assemble = getSource().getDefiningOp<AssembleOp>();
  if (!assemble)
    return failure();
  results.push_back(assemble.getPayload());
  results.push_back(assemble.getScaleInv());
  if (assemble.getTensorScaleInv())
    results.push_back(assemble.getTensorScaleInv());
  return success();
}

//===- FusionCastLayouts.cpp - Where codes and factors of a fusion lie ----===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/FusionLayouts.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

LogicalResult FusionLayouts::addAmax(AmaxOp op, std::string &reason) {
  const FusionLayout *source = lookup(op.getSource());
  auto type = cast<RankedTensorType>(op.getSource().getType());
  if (!source) {
    if (!isDomain(type.getShape())) {
      reason = "expected the amax of the domain's blocks";
      return failure();
    }
    reads[&op.getSourceMutable()] = getFull();
    source = &reads[&op.getSourceMutable()];
  }
  FusionLayout result = *source;
  for (auto [dim, extent] : llvm::zip_equal(result.dims, op.getBlock())) {
    if (dim < 0)
      continue;
    int64_t &block = result.block[dim];
    block = extent == kWhole ? kWhole : block * extent;
    if (block == kWhole)
      dim = -1;
  }
  if (failed(checkReduction(result, /*isAmax=*/true, reason)))
    return failure();
  values[op.getAmax()] = result;
  return success();
}

LogicalResult FusionLayouts::addScale(ComputeScaleOp op, std::string &reason) {
  const FusionLayout *amax = lookup(op.getAmax());
  if (op.getTensorAmax()) {
    if (failed(read(op.getTensorAmaxMutable()[0], getSingle(), reason)))
      return failure();
    values[op.getTensorScaleInv()] = getSingle();
  }
  FusionLayout layout;
  if (amax) {
    layout = *amax;
  } else {
    // Only a tensor's own amax has one element: what has more is computed here.
    auto type = cast<RankedTensorType>(op.getAmax().getType());
    if (!type.hasStaticShape() || type.getNumElements() != 1) {
      reason = "expected an amax that is computed in the same fusion, or a "
               "single one";
      return failure();
    }
    layout = getBlocks(SmallVector<int64_t>(domain.size(), kWhole), 0);
    layout.dims.assign(type.getRank(), -1);
    reads[&op.getAmaxMutable()] = layout;
  }
  values[op.getScale()] = layout;
  values[op.getScaleInv()] = layout;
  return success();
}

FusionLayout FusionLayouts::getFactors(ScaledType type,
                                       const FusionLayout &codes) {
  FusionLayout factors = codes;
  for (auto [dim, extent] : llvm::zip_equal(factors.dims, type.getBlock())) {
    factors.block[dim] = extent;
    if (extent == kWhole)
      dim = -1;
  }
  return factors;
}

/// A rotation is along the rows or the columns of the domain, in the blocks of
/// 16 that both have.
LogicalResult FusionLayouts::addHadamard(HadamardOp op, std::string &reason) {
  FusionLayout layout = getFull();
  if (const FusionLayout *known = lookup(op.getSource())) {
    layout = *known;
  } else if (!isDomain(op.getSource().getType().getShape())) {
    reason = "expected a rotation of the domain";
    return failure();
  }
  auto rank = static_cast<int64_t>(domain.size());
  if (!layout.isFull() || layout.dims.back() < std::max<int64_t>(0, rank - 2)) {
    reason = "expected a rotation along one of the last two dimensions";
    return failure();
  }
  if (failed(read(op.getSourceMutable(), layout, reason)))
    return failure();
  values[op.getResult()] = layout;
  return success();
}

LogicalResult FusionLayouts::addQuantize(QuantizeOp op, std::string &reason) {
  ScaledType type = op.getResult().getType();
  if (op.isUnresolved()) {
    reason = "expected a quantize that has a scale";
    return failure();
  }
  // What has been transposed here is quantized as it lies.
  FusionLayout codes = getFull();
  if (const FusionLayout *known = lookup(op.getSource());
      known && known->isFull()) {
    codes = *known;
  } else if (!isDomain(type.getShape())) {
    reason = "expected a quantize of the domain";
    return failure();
  }
  FusionLayout factors = getFactors(type, codes);
  if (failed(read(op.getSourceMutable(), codes, reason)) ||
      failed(read(op.getScaleMutable()[0], factors, reason)) ||
      failed(read(op.getScaleInvMutable()[0], factors, reason)) ||
      (op.getTensorScaleInv() &&
       failed(read(op.getTensorScaleInvMutable()[0], getSingle(), reason))))
    return failure();
  if (op.getSeed()) {
    FusionLayout words = getSingle();
    words.dims = {-1};
    if (failed(read(op.getSeedMutable()[0], words, reason)))
      return failure();
  }
  values[op.getResult()] = codes;
  return success();
}

LogicalResult FusionLayouts::readCodes(OpOperand &operand,
                                       std::string &reason) {
  if (lookup(operand.get()))
    return success();
  auto type = cast<ScaledType>(operand.get().getType());
  if (!isDomain(type.getShape())) {
    reason = "expected codes of the domain";
    return failure();
  }
  reads[&operand] = getFull();
  return success();
}

LogicalResult FusionLayouts::addDequantize(DequantizeOp op,
                                           std::string &reason) {
  if (failed(readCodes(op.getSourceMutable(), reason)))
    return failure();
  FusionLayout full = getFull();
  if (!(lookup(op.getSourceMutable()) == full)) {
    reason = "expected codes to dequantize in the order of the domain";
    return failure();
  }
  values[op.getResult()] = full;
  return success();
}

LogicalResult FusionLayouts::addTranspose(TransposeOp op, std::string &reason) {
  if (failed(readCodes(op.getSourceMutable(), reason)))
    return failure();
  const FusionLayout &source = lookup(op.getSourceMutable());
  FusionLayout layout{
      applyPermutation(ArrayRef(source.dims), op.getPermutation()),
      source.block};
  values[op.getResult()] = layout;
  return success();
}

LogicalResult FusionLayouts::addAssemble(AssembleOp op, std::string &reason) {
  ScaledType type = op.getResult().getType();
  if (!isDomain(type.getShape())) {
    reason = "expected codes of the domain";
    return failure();
  }
  FusionLayout full = getFull();
  if (failed(read(op.getPayloadMutable(), full, reason)) ||
      failed(read(op.getScaleInvMutable(), getFactors(type, full), reason)) ||
      (op.getTensorScaleInv() &&
       failed(read(op.getTensorScaleInvMutable()[0], getSingle(), reason))))
    return failure();
  values[op.getResult()] = full;
  return success();
}

LogicalResult FusionLayouts::addDisassemble(DisassembleOp op,
                                            std::string &reason) {
  const FusionLayout *known = lookup(op.getSource());
  if (!known) {
    reason = "expected codes that are computed in the same fusion";
    return failure();
  }
  FusionLayout codes = *known;
  values[op.getScaleInv()] = getFactors(op.getSource().getType(), codes);
  if (op.getTensorScaleInv()) {
    values[op.getTensorScaleInv()] = getSingle();
  }
  values[op.getPayload()] = codes;
  return success();
}

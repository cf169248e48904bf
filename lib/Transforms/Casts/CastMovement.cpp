//===- CastMovement.cpp - Data movement on scaled values ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CastMovement.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Blocks through reshapes
//===----------------------------------------------------------------------===//

/// Block of the expanded tensor, of `shape`, that covers the same elements as
/// `block` of the collapsed one. A group of several dimensions has to be cut
/// into single elements or not at all, or its last dimension into whole blocks.
static FailureOr<SmallVector<int64_t>>
expandBlock(ArrayRef<int64_t> block,
            ArrayRef<ReassociationIndices> reassociation,
            ArrayRef<int64_t> shape) {
  SmallVector<int64_t> expanded;
  for (auto [extent, group] : llvm::zip_equal(block, reassociation)) {
    bool isUniform =
        group.size() == 1 || extent == 1 || extent == ScaledType::kWhole;
    int64_t last = shape[group.back()];
    if (!isUniform && (ShapedType::isDynamic(last) || last % extent != 0))
      return failure();
    expanded.append(group.size() - 1, isUniform ? extent : 1);
    expanded.push_back(extent);
  }
  return expanded;
}

/// The converse: all dimensions of a group have to be cut alike, or the last
/// one into whole blocks and the others into single elements.
static FailureOr<SmallVector<int64_t>>
collapseBlock(ArrayRef<int64_t> block,
              ArrayRef<ReassociationIndices> reassociation,
              ArrayRef<int64_t> shape) {
  SmallVector<int64_t> collapsed;
  for (const ReassociationIndices &group : reassociation) {
    int64_t extent = block[group.back()], last = shape[group.back()];
    bool isUniform =
        group.size() == 1 || extent == 1 || extent == ScaledType::kWhole;
    if (!isUniform && (ShapedType::isDynamic(last) || last % extent != 0))
      return failure();
    for (int64_t dim : ArrayRef(group).drop_back())
      if (block[dim] != (isUniform ? extent : 1))
        return failure();
    collapsed.push_back(extent);
  }
  return collapsed;
}

bool fp8::hasWholeBytes(ScaledType type) {
  return type.getElementType().getIntOrFloatBitWidth() == 8;
}

/// Whether whole bytes stay so if the codes in the last dimension of `from` are
/// those of `to`. An unknown number of half bytes may be odd, which nobody
/// remembers of codes that are taken out of their value to be moved.
static bool keepsBytes(RankedTensorType from, RankedTensorType to,
                       ScaledType type) {
  return hasWholeBytes(type) || (!from.isDynamicDim(from.getRank() - 1) &&
                                 !to.isDynamicDim(to.getRank() - 1));
}

//===----------------------------------------------------------------------===//
// Data movement on scaled values
//===----------------------------------------------------------------------===//

/// Moves every part of `scaled` with `move`, which maps a tensor and the wanted
/// type to the moved tensor.
static Value
moveParts(PatternRewriter &rewriter, Location loc, Value scaled,
          ScaledType type,
          llvm::function_ref<Value(Value, RankedTensorType)> move) {
  auto parts = DisassembleOp::create(rewriter, loc, scaled);
  Value payload = move(parts.getPayload(), type.getPayloadType());
  Value scaleInv = move(parts.getScaleInv(), type.getScaleInvType());
  Value tensorScaleInv;
  if (type.getHasTensorScale())
    tensorScaleInv =
        move(parts.getTensorScaleInv(), type.getTensorScaleInvType());
  return AssembleOp::create(rewriter, loc, type, payload, scaleInv,
                            tensorScaleInv);
}

// For each operation that moves data:
//   getMovedType(op, type)  the type of the moved value, given the scaled type
//                           of its source;
//   getSourceType(op, type) the converse;
//   move(rewriter, op, q)   the operation on a scaled value.
// The types fail where a block would be cut or straddle dimensions.

FailureOr<ScaledType> fp8::getMovedType(linalg::TransposeOp op,
                                        ScaledType type) {
  return type.permute(op.getPermutation());
}

FailureOr<ScaledType> fp8::getSourceType(linalg::TransposeOp op,
                                         ScaledType type) {
  return type.permute(invertPermutationVector(op.getPermutation()));
}

Value fp8::move(PatternRewriter &rewriter, linalg::TransposeOp op,
                Value scaled) {
  return TransposeOp::create(rewriter, op.getLoc(), scaled,
                             op.getPermutation());
}

FailureOr<ScaledType> fp8::getMovedType(tensor::CollapseShapeOp op,
                                        ScaledType type) {
  FailureOr<SmallVector<int64_t>> block =
      collapseBlock(type.getBlock(), op.getReassociationIndices(),
                    op.getSrcType().getShape());
  if (failed(block) || block->empty() ||
      !keepsBytes(op.getSrcType(), op.getResultType(), type))
    return failure();
  return type.cloneWith(op.getResultType().getShape(), *block);
}

FailureOr<ScaledType> fp8::getSourceType(tensor::CollapseShapeOp op,
                                         ScaledType type) {
  SmallVector<ReassociationIndices> reassociation =
      op.getReassociationIndices();
  if (reassociation.size() != type.getBlock().size() ||
      !keepsBytes(op.getSrcType(), op.getResultType(), type))
    return failure();
  FailureOr<SmallVector<int64_t>> block =
      expandBlock(type.getBlock(), reassociation, op.getSrcType().getShape());
  if (failed(block))
    return failure();
  return type.cloneWith(op.getSrcType().getShape(), *block);
}

Value fp8::move(PatternRewriter &rewriter, tensor::CollapseShapeOp op,
                Value scaled) {
  ScaledType type = *getMovedType(op, cast<ScaledType>(scaled.getType()));
  return moveParts(rewriter, op.getLoc(), scaled, type,
                   [&](Value part, RankedTensorType partType) -> Value {
                     return tensor::CollapseShapeOp::create(
                         rewriter, op.getLoc(), partType, part,
                         op.getReassociationIndices());
                   });
}

/// Static shapes only: dynamic extents would have to be computed anew for every
/// part.
FailureOr<ScaledType> fp8::getMovedType(tensor::ExpandShapeOp op,
                                        ScaledType type) {
  FailureOr<SmallVector<int64_t>> block = expandBlock(
      type.getBlock(), op.getReassociationIndices(), op.getType().getShape());
  if (failed(block) || !op.getType().hasStaticShape())
    return failure();
  return type.cloneWith(op.getType().getShape(), *block);
}

FailureOr<ScaledType> fp8::getSourceType(tensor::ExpandShapeOp op,
                                         ScaledType type) {
  FailureOr<SmallVector<int64_t>> block = collapseBlock(
      type.getBlock(), op.getReassociationIndices(), op.getType().getShape());
  if (failed(block) || block->empty() || !op.getType().hasStaticShape())
    return failure();
  return type.cloneWith(op.getSrcType().getShape(), *block);
}

Value fp8::move(PatternRewriter &rewriter, tensor::ExpandShapeOp op,
                Value scaled) {
  ScaledType type = *getMovedType(op, cast<ScaledType>(scaled.getType()));
  return moveParts(rewriter, op.getLoc(), scaled, type,
                   [&](Value part, RankedTensorType partType) -> Value {
                     return tensor::ExpandShapeOp::create(
                         rewriter, op.getLoc(), partType, part,
                         op.getReassociationIndices());
                   });
}

FailureOr<ScaledType> fp8::getMovedType(tensor::CastOp op, ScaledType type) {
  auto result = dyn_cast<RankedTensorType>(op.getType());
  if (!result || !keepsBytes(type.getPayloadType(), result, type))
    return failure();
  return type.cloneWith(result.getShape(), type.getBlock());
}

FailureOr<ScaledType> fp8::getSourceType(tensor::CastOp op, ScaledType type) {
  auto source = dyn_cast<RankedTensorType>(op.getSource().getType());
  if (!source || !keepsBytes(source, type.getPayloadType(), type))
    return failure();
  return type.cloneWith(source.getShape(), type.getBlock());
}

Value fp8::move(PatternRewriter &rewriter, tensor::CastOp op, Value scaled) {
  ScaledType type = *getMovedType(op, cast<ScaledType>(scaled.getType()));
  return moveParts(rewriter, op.getLoc(), scaled, type,
                   [&](Value part, RankedTensorType partType) -> Value {
                     if (part.getType() == partType)
                       return part;
                     return tensor::CastOp::create(rewriter, op.getLoc(),
                                                   partType, part);
                   });
}

/// Equal elements have one amax, however many they are: the new dimensions are
/// of one block where all others are, and else of one for each element, which
/// is a broadcast of the factors too.
FailureOr<ScaledType> fp8::getMovedType(linalg::BroadcastOp op,
                                        ScaledType type) {
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  // The amax of no elements is another.
  if (!result || !result.hasStaticShape() || result.getNumElements() == 0 ||
      !hasWholeBytes(type))
    return failure();
  int64_t added = type.isPerTensor() ? ScaledType::kWhole : 1;
  SmallVector<int64_t> block;
  ArrayRef<int64_t> source = type.getBlock();
  for (int64_t dim = 0; dim < result.getRank(); ++dim) {
    if (llvm::is_contained(op.getDimensions(), dim)) {
      block.push_back(added);
      continue;
    }
    block.push_back(source.front());
    source = source.drop_front();
  }
  return type.cloneWith(result.getShape(), block);
}

FailureOr<ScaledType> fp8::getSourceType(linalg::BroadcastOp op,
                                         ScaledType type) {
  auto source = cast<RankedTensorType>(op.getInput().getType());
  SmallVector<int64_t> block;
  for (auto [dim, extent] : llvm::enumerate(type.getBlock()))
    if (!llvm::is_contained(op.getDimensions(), dim))
      block.push_back(extent);
  if (block.empty())
    return failure();
  return type.cloneWith(source.getShape(), block);
}

Value fp8::move(PatternRewriter &rewriter, linalg::BroadcastOp op,
                Value scaled) {
  ScaledType type = *getMovedType(op, cast<ScaledType>(scaled.getType()));
  return moveParts(
      rewriter, op.getLoc(), scaled, type,
      [&](Value part, RankedTensorType partType) -> Value {
        Value empty =
            tensor::EmptyOp::create(rewriter, op.getLoc(), partType.getShape(),
                                    partType.getElementType());
        return linalg::BroadcastOp::create(rewriter, op.getLoc(), part, empty,
                                           op.getDimensions())
            ->getResult(0);
      });
}

/// Whether dimension `dim` of `op` ends in the block that its source ends in.
static bool padsWithinBlock(tensor::PadOp op, int64_t dim, int64_t extent) {
  if (extent == ScaledType::kWhole)
    return true;
  int64_t from = op.getSourceType().getDimSize(dim);
  int64_t to = op.getResultType().getDimSize(dim);
  if (op.getStaticHigh()[dim] == 0)
    return true;
  return !ShapedType::isDynamic(from) && !ShapedType::isDynamic(to) &&
         llvm::divideCeil(from, extent) == llvm::divideCeil(to, extent);
}

static FailureOr<ScaledType> getPaddedType(tensor::PadOp op, ScaledType type,
                                           RankedTensorType padded) {
  Value value = op.getConstantPaddingValue();
  bool isAtEnd =
      llvm::all_of(op.getStaticLow(), [](int64_t low) { return low == 0; });
  if (!value || !matchPattern(value, m_PosZeroFloat()) || !isAtEnd ||
      !hasWholeBytes(type))
    return failure();
  for (auto [dim, extent] : llvm::enumerate(type.getBlock()))
    if (!padsWithinBlock(op, dim, extent))
      return failure();
  return type.cloneWith(padded.getShape(), type.getBlock());
}

FailureOr<ScaledType> fp8::getMovedType(tensor::PadOp op, ScaledType type) {
  return getPaddedType(op, type, op.getResultType());
}

FailureOr<ScaledType> fp8::getSourceType(tensor::PadOp op, ScaledType type) {
  return getPaddedType(op, type, op.getSourceType());
}

Value fp8::move(PatternRewriter &rewriter, tensor::PadOp op, Value scaled) {
  Location loc = op.getLoc();
  auto sourceType = cast<ScaledType>(scaled.getType());
  ScaledType type = *getMovedType(op, sourceType);
  auto parts = DisassembleOp::create(rewriter, loc, scaled);
  Value zero = arith::ConstantOp::create(
      rewriter, loc, rewriter.getZeroAttr(type.getElementType()));
  Value payload = tensor::PadOp::create(rewriter, loc, type.getPayloadType(),
                                        parts.getPayload(), op.getMixedLowPad(),
                                        op.getMixedHighPad(), zero);
  // No block is added.
  Value scaleInv = parts.getScaleInv();
  if (scaleInv.getType() != type.getScaleInvType())
    scaleInv =
        tensor::CastOp::create(rewriter, loc, type.getScaleInvType(), scaleInv);
  return AssembleOp::create(rewriter, loc, type, payload, scaleInv,
                            parts.getTensorScaleInv());
}

/// Static slices of unit stride and full rank that cut no block. The last block
/// may be partial only where the source ends.
FailureOr<ScaledType> fp8::getMovedType(tensor::ExtractSliceOp op,
                                        ScaledType type) {
  if (op.getType().getRank() != type.getRank() || !op.hasUnitStride() ||
      !keepsBytes(type.getPayloadType(), op.getType(), type) ||
      ShapedType::isDynamicShape(op.getStaticOffsets()) ||
      ShapedType::isDynamicShape(op.getStaticSizes()))
    return failure();
  for (auto [dim, extent] : llvm::enumerate(type.getBlock())) {
    int64_t offset = op.getStaticOffset(dim), size = op.getStaticSize(dim);
    if (extent != ScaledType::kWhole &&
        (offset % extent != 0 ||
         (size % extent != 0 && offset + size != type.getShape()[dim])))
      return failure();
  }
  return type.cloneWith(op.getType().getShape(), type.getBlock());
}

Value fp8::move(PatternRewriter &rewriter, tensor::ExtractSliceOp op,
                Value scaled) {
  auto sourceType = cast<ScaledType>(scaled.getType());
  ScaledType type = *getMovedType(op, sourceType);
  return moveParts(
      rewriter, op.getLoc(), scaled, type,
      [&](Value part, RankedTensorType partType) -> Value {
        bool isPayload = partType == type.getPayloadType();
        SmallVector<OpFoldResult> offsets, sizes;
        for (auto [dim, extent] : llvm::enumerate(sourceType.getBlock())) {
          int64_t offset = op.getStaticOffset(dim);
          if (!isPayload)
            offset = extent == ScaledType::kWhole ? 0 : offset / extent;
          // The tensor's own factor has one element.
          if (partType.getDimSize(dim) == 1 && part.getType() == partType)
            offset = 0;
          offsets.push_back(rewriter.getIndexAttr(offset));
          sizes.push_back(rewriter.getIndexAttr(partType.getDimSize(dim)));
        }
        return tensor::ExtractSliceOp::create(rewriter, op.getLoc(), partType,
                                              part, offsets, sizes,
                                              op.getMixedStrides());
      });
}

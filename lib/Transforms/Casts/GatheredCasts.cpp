//===- GatheredCasts.cpp - Dequantizes of tables --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CastMovement.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// Elements of a dequantized table, looked up by indices that are computed.
struct Gather {
  tensor::ExtractOp extract;
  DequantizeOp table;
  /// For each dimension of the table the one of the result whose index it is
  /// looked up by, or -1 for an index that is computed.
  SmallVector<int64_t> places;
};
} // namespace

static FailureOr<Gather> getGather(linalg::GenericOp op) {
  if (!op.hasPureTensorSemantics() || op.getNumResults() != 1 ||
      op.getNumLoops() != op.getNumParallelLoops() ||
      !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() ||
      !op.getDpsInitOperand(0)->get().getDefiningOp<tensor::EmptyOp>() ||
      !cast<RankedTensorType>(op.getResult(0).getType()).hasStaticShape())
    return failure();
  Operation *yield = op.getBody()->getTerminator();
  Gather gather;
  gather.extract = yield->getOperand(0).getDefiningOp<tensor::ExtractOp>();
  if (!gather.extract)
    return failure();
  gather.table = gather.extract.getTensor().getDefiningOp<DequantizeOp>();
  // What else the body does must not need more than indices.
  for (Operation &inner : op.getBody()->without_terminator())
    if (&inner != gather.extract &&
        (inner.getNumRegions() != 0 || !isPure(&inner) ||
         isa<tensor::ExtractOp>(inner)))
      return failure();
  if (!gather.table || !op.getBody()->getArguments().back().use_empty())
    return failure();
  for (Value index : gather.extract.getIndices()) {
    auto place = index.getDefiningOp<linalg::IndexOp>();
    gather.places.push_back(place && place->hasOneUse() ? place.getDim() : -1);
  }
  return gather;
}

/// Whether anything in `op` but `index` depends on where along `dim` it is.
static bool dependsOn(linalg::GenericOp op, int64_t dim, Value index) {
  for (auto other : op.getBody()->getOps<linalg::IndexOp>())
    if (other.getResult() != index &&
        other.getDim() == static_cast<uint64_t>(dim))
      return true;
  return llvm::any_of(op.getDpsInputOperands(), [&](OpOperand *input) {
    return op.getMatchingIndexingMap(input).isFunctionOfDim(dim);
  });
}

/// The type of what is looked up of codes of `type`: one block of a table that
/// is one, and else rows whose elements stay together. Blocks of other
/// dimensions are of one element.
static FailureOr<ScaledType>
getGatheredType(linalg::GenericOp op, const Gather &gather, ScaledType type) {
  ArrayRef<int64_t> shape =
      cast<RankedTensorType>(op.getResult(0).getType()).getShape();
  ValueRange indices = tensor::ExtractOp(gather.extract).getIndices();
  SmallVector<int64_t> block(shape.size(), 1);
  if (type.isPerTensor())
    block.assign(shape.size(), ScaledType::kWhole);
  else
    for (auto [dim, extent] : llvm::enumerate(type.getBlock())) {
      int64_t place = gather.places[dim];
      if (extent == 1)
        continue;
      // An index within a block is the same in the result's, and nothing else
      // depends on it: of factors there are fewer.
      if (place < 0 || shape[place] != type.getShape()[dim] ||
          dependsOn(op, place, indices[dim]))
        return failure();
      block[place] = extent;
    }
  return type.cloneWith(shape, block);
}

/// `op` on another table, whose elements it yields, to a result of `type`.
static Value gatherFrom(PatternRewriter &rewriter, linalg::GenericOp op,
                        tensor::ExtractOp extract, Value table,
                        RankedTensorType type) {
  Value empty = tensor::EmptyOp::create(rewriter, op.getLoc(), type.getShape(),
                                        type.getElementType());
  return linalg::GenericOp::create(
             rewriter, op.getLoc(), type, op.getInputs(), empty,
             op.getIndexingMapsArray(), op.getIteratorTypesArray(),
             [&](OpBuilder &b, Location loc, ValueRange arguments) {
               IRMapping mapping;
               mapping.map(op.getBody()->getArguments(), arguments);
               for (Operation &inner : op.getBody()->without_terminator())
                 if (&inner != extract)
                   b.clone(inner, mapping);
               SmallVector<Value> indices;
               for (Value index : extract.getIndices())
                 indices.push_back(mapping.lookupOrDefault(index));
               Value element =
                   tensor::ExtractOp::create(b, loc, table, indices);
               linalg::YieldOp::create(b, loc, element);
             })
      .getResult(0);
}

namespace {
/// gather(dequantize(q)) -> dequantize(gather(q)): of a table only the rows
/// that are looked up are dequantized, as those of an embedding are.
struct SinkDequantizeBelowGather : OpRewritePattern<linalg::GenericOp> {
  SinkDequantizeBelowGather(MLIRContext *context, CastCounts &counts)
      : OpRewritePattern(context), counts(counts) {}

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    FailureOr<Gather> gather = getGather(op);
    if (failed(gather))
      return rewriter.notifyMatchFailure(op,
                                         "no lookup in a dequantized table");
    ScaledType type = gather->table.getSource().getType();
    if (!gather->table->hasOneUse())
      return rewriter.notifyMatchFailure(
          op, "the table is needed in high precision too");
    FailureOr<ScaledType> gathered = getGatheredType(op, *gather, type);
    if (failed(gathered) || !hasWholeBytes(type) || type.getHasTensorScale())
      return rewriter.notifyMatchFailure(op, "a block would be cut");
    // A byte is read and one written of each element that is looked up, beside
    // those of the dequantize, in place of two and two, and of the table one
    // and two.
    RankedTensorType table = type.getPayloadType();
    RankedTensorType result = gathered->getPayloadType();
    if (table.hasStaticShape() &&
        result.getNumElements() > 3 * table.getNumElements())
      return rewriter.notifyMatchFailure(op,
                                         "gather result is over 3x its table");

    Location loc = op.getLoc();
    auto parts =
        DisassembleOp::create(rewriter, loc, gather->table.getSource());
    Value payload =
        gatherFrom(rewriter, op, gather->extract, parts.getPayload(), result);
    Value scaleInv =
        type.isPerTensor()
            ? reshapeSingle(rewriter, loc, parts.getScaleInv(),
                            gathered->getScaleInvType())
            : gatherFrom(rewriter, op, gather->extract, parts.getScaleInv(),
                         gathered->getScaleInvType());
    Value scaled = AssembleOp::create(rewriter, loc, *gathered, payload,
                                      scaleInv, /*tensorScaleInv=*/Value());
    rewriter.replaceOpWithNewOp<DequantizeOp>(op, op.getResult(0).getType(),
                                              scaled);
    ++counts.moved;
    return success();
  }

  /// A tensor of one element as one of another rank.
  static Value reshapeSingle(PatternRewriter &rewriter, Location loc,
                             Value tensor, RankedTensorType type) {
    if (tensor.getType() == type)
      return tensor;
    Value scalar = tensor::CollapseShapeOp::create(
        rewriter, loc, RankedTensorType::get({}, type.getElementType()), tensor,
        ArrayRef<ReassociationIndices>());
    return tensor::ExpandShapeOp::create(rewriter, loc, type, scalar,
                                         ArrayRef<ReassociationIndices>());
  }

  CastCounts &counts;
};
} // namespace

void fp8::populateGatherPatterns(RewritePatternSet &patterns,
                                 CastCounts &counts) {
  patterns.add<SinkDequantizeBelowGather>(patterns.getContext(), counts);
}

//===- Matmul.cpp - matmul ------------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulAccumulation.h"
#include "fp8/IR/FusedProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Where the factors change along K they go into the operands before the sum.
/// With one factor for all of K they multiply the sum: one rounding instead of
/// one for each product, as the hardware does it. A tensor core's sums know
/// factors of blocks as kernels do: they multiply the sum of a block, or the
/// tensor core multiplies them.
struct ConvertMatmul : OpConversionPattern<MatmulOp> {
  ConvertMatmul(const TypeConverter &converter, MLIRContext *context,
                const Payloads &payloads)
      : OpConversionPattern(converter, context), payloads(payloads) {}
  LogicalResult
  matchAndRewrite(MatmulOp op, OneToNOpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    RankedTensorType resultType = op.getResult().getType();
    int64_t rank = resultType.getRank();
    std::optional<TensorCoreAccumulation> sums =
        TensorCoreAccumulation::get(op);
    bool isBlocked = op.isScaled() && op.getScaledA().isBlocked(rank - 1);
    bool withFactors = (!op.isScaled() || isBlocked) && !sums;
    MatmulOperand lhs = getOperand(rewriter, op, adaptor.getA(), withFactors,
                                   /*isB=*/false);
    MatmulOperand rhs = getOperand(rewriter, op, adaptor.getB(), withFactors,
                                   /*isB=*/true);
    bool isScaledSum = sums && isBlocked && sums->multipliesFactors();
    Value acc = isScaledSum
                    ? buildScaledSums(rewriter, loc, lhs, rhs, rank, *sums)
                : sums && isBlocked
                    ? buildBlockedSums(rewriter, loc, lhs, rhs, rank, *sums)
                    : buildContract(rewriter, loc, lhs, rhs, rank, sums);

    // One pass over the accumulator: factors, epilogue, cast.
    SmallVector<Value> inputs{acc};
    SmallVector<AffineMap> maps{rewriter.getMultiDimIdentityMap(rank)};
    for (const MatmulOperand *operand : {&lhs, &rhs}) {
      if (op.isScaled() && !isBlocked) {
        inputs.push_back(operand->factors);
        maps.push_back(operand->getFactorMap(rewriter));
      } else if (isScaledSum && operand->tensorFactor) {
        inputs.push_back(operand->tensorFactor);
        maps.push_back(AffineMap::get(
            rank, 0,
            SmallVector<AffineExpr>(rank, rewriter.getAffineConstantExpr(0)),
            rewriter.getContext()));
      }
    }
    size_t firstOperand = inputs.size();
    for (ValueRange operand : adaptor.getEpilogueOperands()) {
      auto type = cast<RankedTensorType>(operand[0].getType());
      inputs.push_back(operand[0]);
      maps.push_back(getBroadcastMap(rewriter, type, rank));
    }
    Value empty = tensor::EmptyOp::create(
        rewriter, loc, tensor::getMixedSizes(rewriter, loc, acc),
        resultType.getElementType());
    SmallVector<Value> outputs{empty};
    // What amax is of, in high precision.
    if (op.getAmax())
      outputs.push_back(tensor::EmptyOp::create(
          rewriter, loc, tensor::getMixedSizes(rewriter, loc, acc),
          rewriter.getF32Type()));
    maps.append(outputs.size(), rewriter.getMultiDimIdentityMap(rank));
    auto generic = linalg::GenericOp::create(
        rewriter, loc, TypeRange(ValueRange(outputs)), inputs, outputs, maps,
        SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
        [&](OpBuilder &builder, Location loc, ValueRange args) {
          Value value = args[0];
          Value factor;
          for (Value next : args.take_front(firstOperand).drop_front()) {
            next = toF32(builder, loc, next);
            factor = factor ? arith::MulFOp::create(builder, loc, factor, next)
                                  .getResult()
                            : next;
          }
          if (factor)
            value = arith::MulFOp::create(builder, loc, value, factor);
          if (op.hasEpilogue()) {
            SmallVector<Value> yielded;
            Block &body = op.getEpilogue().front();
            IRMapping mapping;
            mapping.map(body.getArgument(0), value);
            mapping.map(
                body.getArguments().drop_front(),
                args.drop_front(firstOperand).drop_back(outputs.size()));
            // As a kernel does it that adds up so.
            bool isFused = sums && fusesProducts(body);
            for (Operation &inner : body.without_terminator()) {
              if (isFused)
                cloneFused(builder, inner, mapping);
              else
                builder.clone(inner, mapping);
            }
            for (Value inner : body.getTerminator()->getOperands())
              yielded.push_back(mapping.lookupOrDefault(inner));
            linalg::YieldOp::create(builder, loc, yielded);
            return;
          }
          if (!resultType.getElementType().isF32()) {
            value = arith::TruncFOp::create(builder, loc,
                                            resultType.getElementType(), value);
          }
          linalg::YieldOp::create(builder, loc, value);
        });
    Value result = generic.getResult(0);
    if (result.getType() != resultType)
      result = tensor::CastOp::create(rewriter, loc, resultType, result);
    SmallVector<Value> results{result};
    if (op.getAmax())
      results.push_back(AmaxOp::create(
          rewriter, loc, op.getAmax().getType(), generic.getResult(1),
          SmallVector<int64_t>(rank, ScaledType::kWhole),
          /*propagate_nan=*/false));
    rewriter.replaceOp(op, results);
    return success();
  }

  /// Looks through fp8.transpose: a contraction reads its operands in any
  /// order, so that the transposed copy need not be made.
  MatmulOperand getOperand(ConversionPatternRewriter &rewriter, MatmulOp op,
                           ValueRange parts, bool withFactors, bool isB) const {
    Location loc = op.getLoc();
    MatmulOperand operand;
    operand.isB = isB;
    operand.isTransposed = isB ? op.getTransposeB() : op.getTransposeA();
    auto type = dyn_cast<ScaledType>((isB ? op.getB() : op.getA()).getType());
    int64_t rank = op.getResult().getType().getRank();
    operand.permutation = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    if (type) {
      operand.type = isB ? op.getScaledB() : op.getScaledA();
      operand.factors = ScaledParts(parts).scaleInv;
      operand.tensorFactor = ScaledParts(parts).tensorScaleInv;
      SmallVector<Value> sourceParts(parts);
      // It has been converted before its user.
      if (auto found = payloads.transposed.find(parts.front());
          found != payloads.transposed.end()) {
        sourceParts = found->second.source;
        operand.permutation = found->second.permutation;
        type = type.permute(invertPermutationVector(operand.permutation));
      }
      operand.values = dequantizeToF32(rewriter, loc, ScaledParts(sourceParts),
                                       type, withFactors, payloads);
    } else {
      operand.values = widenToF32(rewriter, loc, parts.front());
    }
    if (operand.isTransposed)
      std::swap(operand.permutation.back(), operand.permutation[rank - 2]);
    return operand;
  }

  /// NumPy's broadcasting: aligned at the last dimension, unit dimensions
  /// repeat.
  static AffineMap getBroadcastMap(OpBuilder &builder, RankedTensorType type,
                                   int64_t rank) {
    SmallVector<AffineExpr> exprs;
    for (auto [index, size] : llvm::enumerate(type.getShape())) {
      int64_t loop = rank - type.getRank() + index;
      exprs.push_back(size == 1 ? builder.getAffineConstantExpr(0)
                                : builder.getAffineDimExpr(loop));
    }
    return AffineMap::get(rank, 0, exprs, builder.getContext());
  }

  const Payloads &payloads;
};

} // namespace

void fp8::populateMatmulPatterns(const TypeConverter &converter,
                                 const Payloads &payloads,
                                 RewritePatternSet &patterns) {
  patterns.add<ConvertMatmul>(converter, patterns.getContext(), payloads);
}

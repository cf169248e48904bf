//===- Matmul.cpp - matmul ------------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "fp8/IR/TensorCoreSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Where the factors change along K they go into the operands before the sum;
/// with one factor for all of K they multiply the sum: one rounding instead of
/// one for each product, as the hardware does it. A tensor core's sums know
/// factors of blocks as kernels do: they multiply the sum of a block.
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
    std::optional<TensorCoreSums> sums = TensorCoreSums::get(op);
    bool isBlocked = op.isScaled() && op.getScaledA().isBlocked(rank - 1);
    // Where they are not factors of the sum.
    bool inOperands = !op.isScaled() || isBlocked;
    bool withFactors = inOperands && !sums;
    Factor lhs = getFactor(rewriter, loc, op.getA(), adaptor.getA(),
                           op.getTransposeA(), withFactors);
    Factor rhs = getFactor(rewriter, loc, op.getB(), adaptor.getB(),
                           op.getTransposeB(), withFactors);
    Value acc = sums && isBlocked
                    ? buildBlockedSums(rewriter, op, adaptor, lhs, rhs, *sums)
                    : buildContract(rewriter, loc, lhs, rhs, rank, sums);

    // One pass over the accumulator: factors, epilogue, cast.
    SmallVector<Value> inputs{acc};
    SmallVector<AffineMap> maps{rewriter.getMultiDimIdentityMap(rank)};
    if (!inOperands) {
      for (auto [parts, type, column, isTransposed] :
           {std::tuple{adaptor.getA(), op.getScaledA(), false,
                       op.getTransposeA()},
            std::tuple{adaptor.getB(), op.getScaledB(), true,
                       op.getTransposeB()}}) {
        inputs.push_back(ScaledParts(parts).scaleInv);
        maps.push_back(getFactorMap(rewriter, type, column, isTransposed));
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
          if (!inOperands) {
            Value factor = arith::MulFOp::create(builder, loc,
                                                 toF32(builder, loc, args[1]),
                                                 toF32(builder, loc, args[2]));
            value = arith::MulFOp::create(builder, loc, value, factor);
          }
          if (op.hasEpilogue()) {
            SmallVector<Value> yielded;
            Block &body = op.getEpilogue().front();
            IRMapping mapping;
            mapping.map(body.getArgument(0), value);
            mapping.map(
                body.getArguments().drop_front(),
                args.drop_front(firstOperand).drop_back(outputs.size()));
            for (Operation &inner : body.without_terminator())
              builder.clone(inner, mapping);
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

  /// One operand of the product in f32, and where its dimensions stand:
  /// dimension i of the operand as the op sees it is `permutation[i]` of
  /// `values`.
  struct Factor {
    Value values;
    SmallVector<int64_t> permutation;
  };

  /// Looks through fp8.transpose: a contraction reads its operands in any
  /// order, so that the transposed copy need not be made.
  Factor getFactor(ConversionPatternRewriter &rewriter, Location loc,
                   Value operand, ValueRange parts, bool isTransposed,
                   bool withFactors) const {
    auto type = dyn_cast<ScaledType>(operand.getType());
    if (!type)
      return getPlainFactor(rewriter, loc, parts.front(), isTransposed);
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    SmallVector<Value> sourceParts(parts);
    // It has been converted before its user.
    if (auto found = payloads.transposed.find(parts.front());
        found != payloads.transposed.end()) {
      sourceParts = found->second.source;
      permutation = found->second.permutation;
      type = type.permute(invertPermutationVector(permutation));
    }
    Value values = dequantizeToF32(rewriter, loc, ScaledParts(sourceParts),
                                   type, withFactors, payloads);
    if (isTransposed)
      std::swap(permutation.back(), permutation[permutation.size() - 2]);
    return {values, permutation};
  }

  static Factor getPlainFactor(OpBuilder &builder, Location loc, Value operand,
                               bool isTransposed) {
    auto type = cast<RankedTensorType>(operand.getType());
    auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
    if (isTransposed)
      std::swap(permutation.back(), permutation[permutation.size() - 2]);
    if (type.getElementType().isF32())
      return {operand, permutation};
    Value empty = tensor::EmptyOp::create(
        builder, loc, tensor::getMixedSizes(builder, loc, operand),
        builder.getF32Type());
    AffineMap identity = builder.getMultiDimIdentityMap(type.getRank());
    auto wide = linalg::GenericOp::create(
        builder, loc, empty.getType(), operand, empty,
        ArrayRef{identity, identity},
        SmallVector<utils::IteratorType>(type.getRank(),
                                         utils::IteratorType::parallel),
        [](OpBuilder &b, Location loc, ValueRange args) {
          linalg::YieldOp::create(b, loc, toF32(b, loc, args[0]));
        });
    return {wide.getResult(0), permutation};
  }

  /// f32 sum over K of [batch x] M x K times [batch x] N x K.
  static Value buildContract(OpBuilder &rewriter, Location loc,
                             const Factor &lhs, const Factor &rhs, int64_t rank,
                             std::optional<TensorCoreSums> sums) {
    auto sizeOf = [&](const Factor &factor, int64_t dim) {
      return tensor::getMixedSize(rewriter, loc, factor.values,
                                  factor.permutation[dim]);
    };
    SmallVector<OpFoldResult> sizes;
    for (int64_t dim = 0; dim < rank - 1; ++dim)
      sizes.push_back(sizeOf(lhs, dim));
    sizes.push_back(sizeOf(rhs, rank - 2));
    Value empty =
        tensor::EmptyOp::create(rewriter, loc, sizes, rewriter.getF32Type());
    Value zero = constantF32(rewriter, loc, 0.0f);
    Value init =
        linalg::FillOp::create(rewriter, loc, zero, empty).getResult(0);

    int64_t batch = rank - 2;
    auto mapOf = [&](int64_t row, int64_t column,
                     ArrayRef<int64_t> permutation) {
      SmallVector<AffineExpr> exprs;
      if (batch)
        exprs.push_back(rewriter.getAffineDimExpr(0));
      exprs.push_back(rewriter.getAffineDimExpr(batch + row));
      exprs.push_back(rewriter.getAffineDimExpr(batch + column));
      SmallVector<AffineExpr> permuted(exprs);
      for (auto [from, to] : llvm::enumerate(permutation))
        permuted[to] = exprs[from];
      return AffineMap::get(batch + 3, 0, permuted, rewriter.getContext());
    };
    auto contract = linalg::ContractOp::create(
        rewriter, loc, TypeRange{init.getType()},
        ValueRange{lhs.values, rhs.values}, ValueRange{init},
        rewriter.getAffineMapArrayAttr({mapOf(0, 2, lhs.permutation),
                                        mapOf(1, 2, rhs.permutation),
                                        mapOf(0, 1, {})}));
    if (sums)
      sums->set(contract);
    return contract->getResult(0);
  }

  /// The part of an operand or of its factors from `offset` of a dimension on.
  static Value buildSlice(OpBuilder &b, Location loc, Value source, int64_t dim,
                          OpFoldResult offset, OpFoldResult size) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, source);
    SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
    offsets[dim] = offset;
    sizes[dim] = size;
    return tensor::ExtractSliceOp::create(b, loc, source, offsets, sizes,
                                          strides);
  }

  /// A tensor core's sum of each block, times its factors, added up in f32 with
  /// one rounding each; parts of K by themselves, then together.
  static Value buildBlockedSums(ConversionPatternRewriter &b, MatmulOp op,
                                OneToNOpAdaptor adaptor, const Factor &lhs,
                                const Factor &rhs, const TensorCoreSums &sums) {
    Location loc = op.getLoc();
    int64_t rank = op.getResult().getType().getRank();
    TensorCoreSums ofBlock = sums;
    ofBlock.parts = 1;
    ofBlock.isPromoted = false;
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIndexOp::create(b, loc, value);
    };
    Value extentK = getValueOrCreateConstantIndexOp(
        b, loc,
        tensor::getMixedSize(b, loc, lhs.values, lhs.permutation.back()));
    Value blockK = constant(sums.blockK);
    Value blocks = b.createOrFold<arith::CeilDivUIOp>(loc, extentK, blockK);
    auto bound = [&](int64_t part) {
      return b.createOrFold<arith::DivUIOp>(
          loc, b.createOrFold<arith::MulIOp>(loc, blocks, constant(part)),
          constant(sums.parts));
    };

    SmallVector<OpFoldResult> sizes;
    for (int64_t dim = 0; dim < rank - 1; ++dim)
      sizes.push_back(
          tensor::getMixedSize(b, loc, lhs.values, lhs.permutation[dim]));
    sizes.push_back(
        tensor::getMixedSize(b, loc, rhs.values, rhs.permutation[rank - 2]));
    Value empty = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
    Value zeros =
        linalg::FillOp::create(b, loc, constantF32(b, loc, 0.0f), empty)
            .getResult(0);
    auto addPart = [&](int64_t part) {
      auto loop = scf::ForOp::create(b, loc, bound(part), bound(part + 1),
                                     constant(1), ValueRange{zeros});
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Value block = loop.getInductionVar();
      Value first = arith::MulIOp::create(b, loc, block, blockK);
      Value size = arith::MinUIOp::create(
          b, loc, blockK, arith::SubIOp::create(b, loc, extentK, first));
      auto take = [&](const Factor &factor) {
        return Factor{buildSlice(b, loc, factor.values,
                                 factor.permutation.back(), first, size),
                      factor.permutation};
      };
      Value terms = buildContract(b, loc, take(lhs), take(rhs), rank, ofBlock);
      SmallVector<Value> inputs{terms};
      SmallVector<AffineMap> maps{b.getMultiDimIdentityMap(rank)};
      for (auto [parts, type, column, isTransposed] :
           {std::tuple{adaptor.getA(), op.getScaledA(), false,
                       op.getTransposeA()},
            std::tuple{adaptor.getB(), op.getScaledB(), true,
                       op.getTransposeB()}}) {
        inputs.push_back(buildSlice(b, loc, ScaledParts(parts).scaleInv,
                                    isTransposed ? rank - 2 : rank - 1, block,
                                    b.getIndexAttr(1)));
        maps.push_back(getFactorMap(b, type, column, isTransposed));
      }
      maps.push_back(b.getMultiDimIdentityMap(rank));
      Value carried = loop.getRegionIterArg(0);
      auto next = linalg::GenericOp::create(
          b, loc, carried.getType(), inputs, carried, maps,
          SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
          [](OpBuilder &b, Location loc, ValueRange args) {
            Value factor = arith::MulFOp::create(b, loc, args[1], args[2]);
            linalg::YieldOp::create(
                b, loc,
                math::FmaOp::create(b, loc, args[0], factor, args[3])
                    .getResult());
          });
      scf::YieldOp::create(b, loc, next.getResults());
      return loop.getResult(0);
    };
    Value total = addPart(0);
    for (int64_t part = 1; part < sums.parts; ++part)
      total = addElements(b, loc, total, addPart(part));
    return total;
  }

  /// Element by element, in f32.
  static Value addElements(OpBuilder &b, Location loc, Value lhs, Value rhs) {
    auto type = cast<RankedTensorType>(lhs.getType());
    Value empty = tensor::EmptyOp::create(
        b, loc, tensor::getMixedSizes(b, loc, lhs), type.getElementType());
    AffineMap identity = b.getMultiDimIdentityMap(type.getRank());
    auto sum = linalg::GenericOp::create(
        b, loc, empty.getType(), ValueRange{lhs, rhs}, empty,
        ArrayRef{identity, identity, identity},
        SmallVector<utils::IteratorType>(type.getRank(),
                                         utils::IteratorType::parallel),
        [](OpBuilder &b, Location loc, ValueRange args) {
          linalg::YieldOp::create(
              b, loc,
              arith::AddFOp::create(b, loc, args[0], args[1]).getResult());
        });
    return sum.getResult(0);
  }

  /// Index of the factor of A (or of B, `column`) for an element of the
  /// result, where the factors do not change along K, or are those of a block.
  static AffineMap getFactorMap(OpBuilder &builder, ScaledType type,
                                bool column, bool isTransposed) {
    int64_t rank = type.getRank();
    SmallVector<AffineExpr> exprs;
    for (int64_t dim = 0; dim < rank; ++dim) {
      int64_t extent = type.getBlock()[dim];
      // The rows of B are the columns of the result.
      int64_t loop = dim == rank - 2 && column ? rank - 1 : dim;
      if (extent == ScaledType::kWhole || dim == rank - 1)
        exprs.push_back(builder.getAffineConstantExpr(0));
      else
        exprs.push_back(builder.getAffineDimExpr(loop).floorDiv(extent));
    }
    // The type is as the op sees it, the tensor as it is given.
    if (isTransposed)
      std::swap(exprs.back(), exprs[exprs.size() - 2]);
    return AffineMap::get(rank, 0, exprs, builder.getContext());
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

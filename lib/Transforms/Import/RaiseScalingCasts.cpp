//===- RaiseScalingCasts.cpp - Other dialects' scaled values --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// arith.scaling_extf and scaling_truncf enter; scaled values of this dialect
// and plain arithmetic leave.
//
//===----------------------------------------------------------------------===//

#include "ExpandScalingCasts.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/Formats.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_RAISESCALINGCASTSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Raise
//===----------------------------------------------------------------------===//

namespace {
/// An extension in the body of a generic, of an element of one of its inputs.
struct Extension {
  Operation *op;
  unsigned codes;
  /// The input that holds the factors; an extension without is by 1.
  std::optional<unsigned> factors;
  /// Extents, in the dimensions of the codes, of what shares a factor.
  SmallVector<int64_t> block;
  /// For each dimension of the codes that of the factors, if they have it.
  SmallVector<std::optional<unsigned>> dims;
};
} // namespace

static Type getType(const Extension &extension) {
  return extension.op->getResult(0).getType();
}

static std::optional<unsigned> getInput(linalg::GenericOp generic,
                                        Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner() != generic.getBody() ||
      argument.getArgNumber() >= generic.getNumDpsInputs())
    return std::nullopt;
  return argument.getArgNumber();
}

/// A factor of 1 for a tensor of rank `rank`.
static Value buildOne(ImplicitLocOpBuilder &b, int64_t rank) {
  auto type =
      RankedTensorType::get(SmallVector<int64_t>(rank, 1), b.getF32Type());
  return arith::ConstantOp::create(
      b, DenseElementsAttr::get(type, b.getF32FloatAttr(1.0f)));
}

/// Codes of 4 bits, which take bytes in memory: loops over them would have to
/// know, scaled values do.
static std::optional<Extension> matchCodes(linalg::GenericOp generic,
                                           arith::ExtFOp op) {
  std::optional<unsigned> codes = getInput(generic, op.getIn());
  if (!codes || !isa<Float4E2M1FNType>(op.getIn().getType()) ||
      !isa<Float32Type, BFloat16Type, Float16Type>(op.getType()) ||
      !generic.getIndexingMapsArray()[*codes].isProjectedPermutation())
    return std::nullopt;
  auto type = cast<RankedTensorType>(generic.getInputs()[*codes].getType());
  if (type.getRank() == 0)
    return std::nullopt;
  SmallVector<int64_t> block(type.getRank(), ScaledType::kWhole);
  return Extension{op, *codes, std::nullopt, block, {}};
}

/// Nothing if the codes and factors are not those of a scaled value.
static std::optional<Extension> matchExtension(linalg::GenericOp generic,
                                               arith::ScalingExtFOp op) {
  std::optional<unsigned> codes = getInput(generic, op.getIn());
  std::optional<unsigned> factors = getInput(generic, op.getScale());
  // In f16 the smaller factors would be zero.
  if (!codes || !factors || !isa<Float32Type, BFloat16Type>(op.getType()) ||
      !isCodeType(op.getIn().getType()) ||
      !isa<Float8E8M0FNUType>(op.getScale().getType()))
    return std::nullopt;
  Extension extension{op, *codes, *factors, {}, {}};
  SmallVector<AffineMap> maps = generic.getIndexingMapsArray();
  AffineMap codeMap = maps[*codes], factorMap = maps[*factors];
  if (codeMap.getNumResults() == 0 || !codeMap.isProjectedPermutation())
    return std::nullopt;
  // The loops of the factors, in the order of those of the codes.
  auto shape =
      cast<RankedTensorType>(generic.getInputs()[*codes].getType()).getShape();
  unsigned next = 0;
  auto skipUnits = [&] {
    while (next < factorMap.getNumResults() &&
           isa<AffineConstantExpr>(factorMap.getResult(next)))
      ++next;
  };
  for (auto [dim, expr] : llvm::enumerate(codeMap.getResults())) {
    skipUnits();
    if (next < factorMap.getNumResults() && factorMap.getResult(next) == expr) {
      extension.block.push_back(1);
      extension.dims.push_back(next++);
      continue;
    }
    extension.dims.push_back(std::nullopt);
    extension.block.push_back(ShapedType::isDynamic(shape[dim]) ||
                                      shape[dim] == 0
                                  ? ScaledType::kWhole
                                  : shape[dim]);
  }
  skipUnits();
  if (next != factorMap.getNumResults())
    return std::nullopt;
  return extension;
}

/// `factors` with one dimension for each of the codes.
static Value buildGrid(ImplicitLocOpBuilder &b, Value factors,
                       const Extension &extension, ScaledType type) {
  auto from = cast<RankedTensorType>(factors.getType());
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, b.getLoc(), factors);
  SmallVector<int64_t> shape, grid;
  SmallVector<OpFoldResult> gridSizes;
  SmallVector<ReassociationIndices> reassociation;
  ReassociationIndices pending;
  for (auto [index, dim] : llvm::enumerate(extension.dims)) {
    pending.push_back(index);
    grid.push_back(dim ? from.getDimSize(*dim) : 1);
    gridSizes.push_back(dim ? sizes[*dim] : OpFoldResult(b.getIndexAttr(1)));
    if (!dim)
      continue;
    shape.push_back(grid.back());
    reassociation.push_back(pending);
    pending.clear();
  }
  if (!reassociation.empty())
    llvm::append_range(reassociation.back(), pending);
  // Without the dimensions of one element, and then with those in which all
  // codes share a factor.
  if (shape.size() != static_cast<size_t>(from.getRank())) {
    SmallVector<OpFoldResult> offsets(sizes.size(), b.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(sizes.size(), b.getIndexAttr(1));
    factors = tensor::ExtractSliceOp::create(b, from.clone(shape), factors,
                                             offsets, sizes, strides);
  }
  if (shape.size() != grid.size())
    factors = tensor::ExpandShapeOp::create(b, from.clone(grid), factors,
                                            reassociation, gridSizes);
  if (factors.getType() != type.getScaleInvType())
    factors = tensor::CastOp::create(b, type.getScaleInvType(), factors);
  return factors;
}

/// Replaces `generic` by one that reads the extended values.
static void raise(RewriterBase &rewriter, linalg::GenericOp generic,
                  ArrayRef<Extension> extensions) {
  ImplicitLocOpBuilder b(generic.getLoc(), rewriter);
  b.setInsertionPoint(generic);
  SmallVector<Value> inputs, extended;
  SmallVector<AffineMap> maps, extendedMaps;
  for (const Extension &extension : extensions) {
    Value codes = generic.getInputs()[extension.codes];
    auto type = cast<RankedTensorType>(codes.getType());
    Type scaleType = b.getF32Type();
    if (extension.factors)
      scaleType = b.getType<Float8E8M0FNUType>();
    auto scaled =
        ScaledType::get(b.getContext(), type.getShape(), type.getElementType(),
                        extension.block, scaleType, /*hasTensorScale=*/false);
    Value grid = extension.factors
                     ? buildGrid(b, generic.getInputs()[*extension.factors],
                                 extension, scaled)
                     : buildOne(b, type.getRank());
    Value assembled = AssembleOp::create(b, scaled, codes, grid,
                                         /*tensor_scale_inv=*/Value());
    extended.push_back(
        DequantizeOp::create(b, type.clone(getType(extension)), assembled));
    extendedMaps.push_back(generic.getIndexingMapsArray()[extension.codes]);
  }

  // Inputs that nothing else reads go.
  DenseSet<Operation *> raised;
  for (const Extension &extension : extensions)
    raised.insert(extension.op);
  SmallVector<BlockArgument> kept;
  for (auto [number, input] : llvm::enumerate(generic.getInputs())) {
    BlockArgument argument = generic.getBody()->getArgument(number);
    if (!argument.use_empty() &&
        llvm::all_of(argument.getUsers(),
                     [&](Operation *user) { return raised.contains(user); }))
      continue;
    kept.push_back(argument);
    inputs.push_back(input);
    maps.push_back(generic.getIndexingMapsArray()[number]);
  }
  llvm::append_range(inputs, extended);
  llvm::append_range(maps, extendedMaps);
  for (OpOperand &init : generic.getDpsInitsMutable())
    maps.push_back(generic.getMatchingIndexingMap(&init));
  auto other = linalg::GenericOp::create(
      b, generic.getResultTypes(), inputs, generic.getOutputs(), maps,
      generic.getIteratorTypesArray(),
      [&](OpBuilder &builder, Location, ValueRange args) {
        IRMapping mapping;
        for (auto [argument, value] : llvm::zip(kept, args))
          mapping.map(argument, value);
        for (auto [extension, value] :
             llvm::zip(extensions, args.drop_front(kept.size())))
          mapping.map(extension.op->getResult(0), value);
        for (auto [argument, value] :
             llvm::zip(generic.getRegionOutputArgs(),
                       args.take_back(generic.getNumDpsInits())))
          mapping.map(argument, value);
        for (Operation &op : *generic.getBody())
          if (!raised.contains(&op))
            builder.clone(op, mapping);
      });
  other->setDiscardableAttrs(generic->getDiscardableAttrDictionary());
  rewriter.replaceOp(generic, other);
}

/// The same of whole tensors.
static void raise(RewriterBase &rewriter, Operation *op, Value codes,
                  Value factors) {
  ImplicitLocOpBuilder b(op->getLoc(), rewriter);
  b.setInsertionPoint(op);
  auto type = cast<RankedTensorType>(codes.getType());
  SmallVector<int64_t> block(type.getRank(), factors ? 1 : ScaledType::kWhole);
  if (!factors)
    factors = buildOne(b, type.getRank());
  auto scaled = ScaledType::get(
      b.getContext(), type.getShape(), type.getElementType(), block,
      getElementTypeOrSelf(factors), /*hasTensorScale=*/false);
  Value assembled = AssembleOp::create(b, scaled, codes, factors,
                                       /*tensor_scale_inv=*/Value());
  rewriter.replaceOp(
      op, DequantizeOp::create(b, op->getResult(0).getType(), assembled));
}

static bool isCodes(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.getRank() != 0 &&
         isa<Float4E2M1FNType>(type.getElementType());
}

/// Codes of 4 bits of the elements of `values`.
static Value buildCodes(ImplicitLocOpBuilder &b, Value values) {
  auto type = cast<RankedTensorType>(values.getType());
  auto scaled = ScaledType::get(
      b.getContext(), type.getShape(), b.getType<Float4E2M1FNType>(),
      SmallVector<int64_t>(type.getRank(), ScaledType::kWhole), b.getF32Type(),
      /*hasTensorScale=*/false);
  Value one = buildOne(b, type.getRank());
  Value quantized =
      QuantizeOp::create(b, scaled, values, one, one,
                         /*tensor_scale_inv=*/Value(), RecipeAttrInterface());
  return DisassembleOp::create(b, quantized).getPayload();
}

/// The truncation to 4 bits whose result `generic` yields as its `number`th.
static arith::TruncFOp getYieldedCodes(linalg::GenericOp generic,
                                       unsigned number) {
  Value yielded = generic.getBody()->getTerminator()->getOperand(number);
  if (!isCodes(generic->getResult(number)) ||
      !generic.getRegionOutputArgs()[number].use_empty())
    return {};
  auto truncation = yielded.getDefiningOp<arith::TruncFOp>();
  if (!truncation || !isa<Float32Type, BFloat16Type, Float16Type>(
                         truncation.getIn().getType()))
    return {};
  return truncation;
}

/// Makes `generic` yield what it would truncate to 4 bits, and quantizes that.
static void raiseTruncations(RewriterBase &rewriter,
                             linalg::GenericOp generic) {
  ImplicitLocOpBuilder b(generic.getLoc(), rewriter);
  for (unsigned number = 0; number < generic.getNumDpsInits(); ++number) {
    arith::TruncFOp truncation = getYieldedCodes(generic, number);
    if (!truncation)
      continue;
    Value result = generic->getResult(number);
    auto type = cast<RankedTensorType>(result.getType());
    Type element = truncation.getIn().getType();
    b.setInsertionPoint(generic);
    Value empty = tensor::EmptyOp::create(
        b, tensor::getMixedSizes(b, b.getLoc(), generic.getOutputs()[number]),
        element);
    if (empty.getType() != type.clone(element))
      empty = tensor::CastOp::create(b, type.clone(element), empty);
    rewriter.modifyOpInPlace(generic, [&] {
      generic.getOutputsMutable().slice(number, 1).assign(empty);
      generic.getBody()->getTerminator()->setOperand(number,
                                                     truncation.getIn());
      generic.getRegionOutputArgs()[number].setType(element);
      result.setType(type.clone(element));
    });
    b.setInsertionPointAfter(generic);
    Value codes = buildCodes(b, result);
    rewriter.replaceUsesWithIf(result, codes, [&](OpOperand &use) {
      return !isa<QuantizeOp>(use.getOwner());
    });
    if (truncation->use_empty())
      rewriter.eraseOp(truncation);
  }
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

namespace {
struct RaiseScalingCastsPass
    : fp8::impl::RaiseScalingCastsPassBase<RaiseScalingCastsPass> {
  using Base::Base;
  void runOnOperation() override;
  void raiseExtensions(RewriterBase &rewriter);
};
} // namespace

void RaiseScalingCastsPass::raiseExtensions(RewriterBase &rewriter) {
  SmallVector<linalg::GenericOp> generics;
  getOperation()->walk([&](linalg::GenericOp op) {
    if (op.hasPureTensorSemantics())
      generics.push_back(op);
  });
  for (linalg::GenericOp generic : generics) {
    SmallVector<Extension> extensions;
    for (Operation &op : *generic.getBody()) {
      std::optional<Extension> extension;
      if (auto scaling = dyn_cast<arith::ScalingExtFOp>(op))
        extension = matchExtension(generic, scaling);
      else if (auto extf = dyn_cast<arith::ExtFOp>(op))
        extension = matchCodes(generic, extf);
      if (extension)
        extensions.push_back(*extension);
    }
    if (extensions.empty())
      continue;
    numRaised += extensions.size();
    raise(rewriter, generic, extensions);
  }
}

void RaiseScalingCastsPass::runOnOperation() {
  IRRewriter rewriter(&getContext());
  raiseExtensions(rewriter);
  SmallVector<Operation *> casts;
  getOperation()->walk([&](Operation *op) {
    if (isa<arith::ScalingExtFOp, arith::ScalingTruncFOp>(op))
      casts.push_back(op);
  });
  for (Operation *cast : casts) {
    if (auto extension = dyn_cast<arith::ScalingExtFOp>(cast);
        extension && isCodes(extension.getIn()) &&
        isa<Float8E8M0FNUType>(getElementTypeOrSelf(extension.getScale())) &&
        isa<Float32Type, BFloat16Type>(getElementTypeOrSelf(extension))) {
      raise(rewriter, extension, extension.getIn(), extension.getScale());
      ++numRaised;
      continue;
    }
    if (failed(expandScalingCast(rewriter, cast))) {
      cast->emitOpError("expected types of at most 32 bits and rounding to "
                        "nearest even, but got another");
      return signalPassFailure();
    }
    ++numExpanded;
  }

  // What is left of 4 bits, and what was expanded to it.
  raiseExtensions(rewriter);
  SmallVector<Operation *> others;
  getOperation()->walk([&](Operation *op) {
    if (isa<arith::ExtFOp, arith::TruncFOp, linalg::GenericOp>(op))
      others.push_back(op);
  });
  for (Operation *op : others) {
    if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
      if (generic.hasPureTensorSemantics())
        raiseTruncations(rewriter, generic);
    } else if (auto extension = dyn_cast<arith::ExtFOp>(op)) {
      if (isCodes(extension.getIn()))
        raise(rewriter, extension, extension.getIn(), /*factors=*/Value());
    } else if (isCodes(op->getResult(0))) {
      ImplicitLocOpBuilder b(op->getLoc(), rewriter);
      b.setInsertionPoint(op);
      rewriter.replaceOp(op, buildCodes(b, op->getOperand(0)));
    }
  }
}

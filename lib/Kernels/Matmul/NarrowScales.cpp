//===- NarrowScales.cpp - Factors as tensor cores multiply them -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A power of two of f32, from 2^-127 to 2^127, is an E8M0 that has its
// exponent: four for 128 of K are as many for 32 each. Products with it are
// exact either way, so that nothing changes but the order of the sum.
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "fp8/IR/FP8Attrs.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_NARROWSCALESPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct NarrowScalesPass : fp8::impl::NarrowScalesPassBase<NarrowScalesPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;

private:
  /// Fits the operands of a product, a grouped one or not, if there is a kernel
  /// for that. `fitted` are those that are: what several products read is
  /// fitted once.
  template <typename OpTy>
  void fitOperands(OpTy op, const KernelTarget &target,
                   DenseMap<Value, Value> &fitted);
};
} // namespace

/// Whether `value` is 2^-127 to 2^127.
static bool isNarrow(const llvm::APFloat &value) {
  int exponent = value.getExactLog2();
  return exponent != INT_MIN && exponent >= -127;
}

/// Whether the factors, f32, are all such powers of two: constants, or those of
/// scales that are rounded to one. (Transformer Engine's rule has no others, as
/// it takes 1 for an amax that is 0 or not finite; torchao's has NaN and 0.)
static bool areNarrow(Value factors) {
  DenseFPElementsAttr constant;
  if (matchPattern(factors, m_Constant(&constant)))
    return llvm::all_of(constant.getValues<llvm::APFloat>(), isNarrow);
  auto compute = factors.getDefiningOp<ComputeScaleOp>();
  auto rule =
      compute ? dyn_cast<ScaleRuleAttr>(compute.getRule()) : ScaleRuleAttr();
  return rule && factors == compute.getScaleInv() && rule.getPow2() &&
         rule.getStyle() == ScaleStyle::TE;
}

/// The factors of an operand, as they are before it is transposed; null if they
/// are not known.
static Value getFactors(Value operand) {
  while (auto transpose = operand.getDefiningOp<TransposeOp>())
    operand = transpose.getSource();
  if (auto quantize = operand.getDefiningOp<QuantizeOp>())
    return quantize.getScaleInv();
  if (auto assemble = operand.getDefiningOp<AssembleOp>())
    return assemble.getScaleInv();
  return {};
}

/// The type of the same codes with factors that tensor cores multiply: for each
/// row and 32, or 16, of K. `type` where it has these, or others that do not
/// become them.
static ScaledType getFitting(ScaledType type) {
  Type factor = type.getScaleType();
  int64_t rank = type.getRank();
  SmallVector<int64_t> block(type.getBlock());
  int64_t &rows = block[rank - 2], &k = block[rank - 1];
  if (factor.isF32() && (rows == 1 || rows == 128) && k == 128) {
    factor = Float8E8M0FNUType::get(type.getContext());
    k = 32;
  } else if (!(isa<Float8E8M0FNUType>(factor) && rows == 32 && k == 32) &&
             !(isa<Float8E4M3FNType>(factor) && rows == 16 && k == 16)) {
    return type;
  }
  rows = 1;
  return ScaledType::get(type.getContext(), type.getShape(),
                         type.getElementType(), block, factor,
                         type.getHasTensorScale());
}

/// Whether there is a kernel for operands of these types whose tensor cores
/// multiply the factors. If there is one for the op's, too, it multiplies them
/// beside the tensor core.
template <typename OpTy>
static bool wantsFitting(OpTy op, ScaledType a, ScaledType b,
                         const KernelTarget &target) {
  Value ownA = op.getA(), ownB = op.getB();
  OpBuilder builder(op);
  // To ask, with what nobody computes.
  auto cast = [&](Type type, Value value) {
    return UnrealizedConversionCastOp::create(builder, op.getLoc(), type,
                                              value);
  };
  auto castA = cast(a, ownA), castB = cast(b, ownB);
  op.getAMutable().set(castA.getResult(0));
  op.getBMutable().set(castB.getResult(0));
  bool isKnown = multipliesFactors(op, target);
  op.getAMutable().set(ownA);
  op.getBMutable().set(ownB);
  castA.erase();
  castB.erase();
  return isKnown;
}

/// The exponent of a power of two, as E8M0.
static Value buildByte(OpBuilder &b, Location loc, Value factor) {
  Value bits = arith::BitcastOp::create(b, loc, b.getI32Type(), factor);
  Value exponent = arith::ShRUIOp::create(
      b, loc, bits, arith::ConstantIntOp::create(b, loc, 23, 32));
  Value byte = arith::TruncIOp::create(b, loc, b.getI8Type(), exponent);
  return arith::BitcastOp::create(b, loc,
                                  Float8E8M0FNUType::get(b.getContext()), byte);
}

/// The codes of `operand` with the factors of `type`.
static Value fit(OpBuilder &b, Value operand, ScaledType type) {
  Location loc = operand.getLoc();
  auto from = cast<ScaledType>(operand.getType());
  auto parts = DisassembleOp::create(b, loc, operand);
  int64_t rank = type.getRank();
  SmallVector<AffineExpr> source;
  for (int64_t dim = 0; dim < rank; ++dim)
    source.push_back(b.getAffineDimExpr(dim));
  // How many of the new ones each becomes.
  for (int64_t dim : {rank - 2, rank - 1})
    source[dim] =
        source[dim].floorDiv(from.getBlock()[dim] / type.getBlock()[dim]);
  RankedTensorType factorType = type.getScaleInvType();
  // Batches and rows as codes have them; K is known.
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, parts.getPayload());
  sizes.back() = b.getIndexAttr(factorType.getShape().back());
  Value empty =
      tensor::EmptyOp::create(b, loc, sizes, factorType.getElementType());
  bool isNarrowed = from.getScaleType() != type.getScaleType();
  auto factors = linalg::GenericOp::create(
      b, loc, empty.getType(), parts.getScaleInv(), empty,
      ArrayRef{AffineMap::get(rank, 0, source, b.getContext()),
               b.getMultiDimIdentityMap(rank)},
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [&](OpBuilder &b, Location loc, ValueRange args) {
        linalg::YieldOp::create(
            b, loc, isNarrowed ? buildByte(b, loc, args[0]) : args[0]);
      });
  return AssembleOp::create(b, loc, type, parts.getPayload(),
                            factors.getResult(0), parts.getTensorScaleInv());
}

template <typename OpTy>
void NarrowScalesPass::fitOperands(OpTy op, const KernelTarget &target,
                                   DenseMap<Value, Value> &fitted) {
  if (!op.isScaled())
    return;
  ScaledType a = getFitting(op.getScaledA()),
             otherB = getFitting(op.getScaledB());
  if ((a == op.getScaledA() && otherB == op.getScaledB()) ||
      !wantsFitting(op, a, otherB, target))
    return;
  if (!llvm::all_of(ValueRange{op.getA(), op.getB()}, [](Value operand) {
        if (!cast<ScaledType>(operand.getType()).getScaleType().isF32())
          return true;
        Value factors = getFactors(operand);
        return factors && areNarrow(factors);
      }))
    return;
  for (auto [operand, type] :
       {std::pair{&op.getAMutable(), a}, {&op.getBMutable(), otherB}}) {
    if (operand->get().getType() == type)
      continue;
    Value &known = fitted[operand->get()];
    if (!known) {
      OpBuilder b(&getContext());
      b.setInsertionPointAfterValue(operand->get());
      known = fit(b, operand->get(), type);
    }
    operand->set(known);
  }
  ++numFitted;
}

void NarrowScalesPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  DenseMap<Value, Value> fitted;
  module.walk([&](Operation *op) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      fitOperands(matmul, *target, fitted);
    else if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
      fitOperands(grouped, *target, fitted);
  });
}

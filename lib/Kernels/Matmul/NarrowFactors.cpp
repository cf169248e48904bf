//===- NarrowFactors.cpp - Powers of two as tensor cores read them --------===//
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

#include "fp8/IR/FP8Attrs.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_NARROWFACTORSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Of K that share a factor, before and after.
static constexpr int64_t kWideK = 128, kNarrowK = 32;

namespace {
struct NarrowFactorsPass : fp8::impl::NarrowFactorsPassBase<NarrowFactorsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;
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

/// Whether factors along K are all that keeps the target from having a kernel.
static bool wantsNarrow(MatmulOp op, const Architecture &architecture,
                        GPUTargetAttr target) {
  std::string unused;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  if (failed(spec) || op.getTransposeA() || op.getTransposeB())
    return false;
  auto isWide = [](const OperandSpec &operand) {
    return operand.scale == ScaleBlock::Row128 ||
           operand.scale == ScaleBlock::Block128;
  };
  if (!isWide(spec->a) || !isWide(spec->b))
    return false;
  const KernelGenerator *generator = architecture.getGenerator(*spec, unused);
  if (!generator || succeeded(generator->select(*spec, target, unused)))
    return false;
  for (OperandSpec *operand : {&spec->a, &spec->b}) {
    operand->scale = ScaleBlock::Row32;
    operand->factorMajor = Major::K;
  }
  return succeeded(generator->select(*spec, target, unused));
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

/// `operand` with a factor for each row and 32 of K.
static Value narrow(OpBuilder &b, Value operand) {
  Location loc = operand.getLoc();
  auto type = cast<ScaledType>(operand.getType());
  auto parts = DisassembleOp::create(b, loc, operand);
  int64_t rank = type.getRank();
  SmallVector<int64_t> block(type.getBlock());
  SmallVector<AffineExpr> source;
  for (int64_t dim = 0; dim < rank; ++dim)
    source.push_back(b.getAffineDimExpr(dim));
  source[rank - 2] = source[rank - 2].floorDiv(block[rank - 2]);
  source[rank - 1] = source[rank - 1].floorDiv(kWideK / kNarrowK);
  block[rank - 2] = 1;
  block[rank - 1] = kNarrowK;
  auto narrowType = ScaledType::get(
      b.getContext(), type.getShape(), type.getElementType(), block,
      Float8E8M0FNUType::get(b.getContext()), /*hasTensorScale=*/false);
  RankedTensorType factorType = narrowType.getScaleInvType();
  // Batches and rows as codes have them; K is known.
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(b, loc, parts.getPayload());
  sizes.back() = b.getIndexAttr(factorType.getShape().back());
  Value empty =
      tensor::EmptyOp::create(b, loc, sizes, factorType.getElementType());
  auto factors = linalg::GenericOp::create(
      b, loc, empty.getType(), parts.getScaleInv(), empty,
      ArrayRef{AffineMap::get(rank, 0, source, b.getContext()),
               b.getMultiDimIdentityMap(rank)},
      SmallVector<utils::IteratorType>(rank, utils::IteratorType::parallel),
      [](OpBuilder &b, Location loc, ValueRange args) {
        linalg::YieldOp::create(b, loc, buildByte(b, loc, args[0]));
      });
  return AssembleOp::create(b, loc, narrowType, parts.getPayload(),
                            factors.getResult(0), /*tensorScaleInv=*/Value());
}

void NarrowFactorsPass::runOnOperation() {
  ModuleOp module = getOperation();
  const Architecture *architecture = lookupArchitecture(chip);
  if (!architecture) {
    emitError(module.getLoc(), "expected chip to be one of ")
        << llvm::join(getArchitectureChips(), ", ") << ", but got '" << chip
        << "'";
    return signalPassFailure();
  }
  auto target = module->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  if (!target)
    target = architecture->getTarget(&getContext());
  // What several matmuls read is narrowed once.
  DenseMap<Value, Value> narrowed;
  module.walk([&](MatmulOp op) {
    if (!op.isScaled() || !wantsNarrow(op, *architecture, target))
      return;
    if (!llvm::all_of(ValueRange{op.getA(), op.getB()}, [](Value operand) {
          Value factors = getFactors(operand);
          return factors && areNarrow(factors);
        }))
      return;
    for (OpOperand *operand : {&op.getAMutable(), &op.getBMutable()}) {
      Value &known = narrowed[operand->get()];
      if (!known) {
        OpBuilder b(&getContext());
        b.setInsertionPointAfterValue(operand->get());
        known = narrow(b, operand->get());
      }
      operand->set(known);
    }
    ++numNarrowed;
  });
}

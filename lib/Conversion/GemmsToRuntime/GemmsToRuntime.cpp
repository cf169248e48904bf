//===- GemmsToRuntime.cpp - f32 contractions as runtime calls -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Contractions of f32 memrefs go in, calls of the runtime's batched product
// come out. The order of dimensions only shows in the strides handed over, so
// nothing is copied. Dimensions that are one in memory become one, and where a
// contraction still has more of a kind than the product, loops around the call
// do the rest.
//
//===----------------------------------------------------------------------===//

#include "Collectives.h"
#include "ScaledGemms.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/IR/TensorCoreAccumulation.h"
#include "fp8/Runtime/ABI/MLIR.h"
#include "fp8/Support/RewriteLog.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-convert-gemms-to-runtime"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CONVERTGEMMSTORUNTIMEPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

namespace {
/// What a loop of a contraction is to the product, by the operands it indexes.
enum class DimKind { Batch, M, N, K };
constexpr DimKind dimKinds[] = {DimKind::Batch, DimKind::M, DimKind::N,
                                DimKind::K};

/// A dimension of the product: its size and how far apart its elements are in
/// A, B and C; 0 where the operand lacks it.
struct Dim {
  OpFoldResult size;
  std::array<OpFoldResult, 3> strides;
};

struct ConvertGemm : OpInterfaceRewritePattern<linalg::LinalgOp> {
  ConvertGemm(MLIRContext *context, bool inWarps)
      : OpInterfaceRewritePattern(context), inWarps(inWarps) {}

  LogicalResult matchAndRewrite(linalg::LinalgOp op,
                                PatternRewriter &rewriter) const override;

private:
  bool inWarps;
};

struct ConvertGemmsToRuntimePass
    : fp8::impl::ConvertGemmsToRuntimePassBase<ConvertGemmsToRuntimePass> {
  using Base::Base;

  void runOnOperation() override;
};
} // namespace

/// Whether the body is `out + a * b`. linalg's own check looks through unary
/// operations, which the runtime does not compute.
static bool isMultiplyAdd(Block &body) {
  if (body.getOperations().size() != 3)
    return false;
  auto multiply = dyn_cast<arith::MulFOp>(body.front());
  auto add = dyn_cast<arith::AddFOp>(*std::next(body.begin()));
  if (!multiply || !add)
    return false;
  auto isPair = [](ValueRange operands, Value first, Value second) {
    return (operands[0] == first && operands[1] == second) ||
           (operands[0] == second && operands[1] == first);
  };
  return isPair(multiply->getOperands(), body.getArgument(0),
                body.getArgument(1)) &&
         isPair(add->getOperands(), body.getArgument(2), multiply) &&
         body.getTerminator()->getOperand(0) == add.getResult();
}

/// Whether the call can stand for the op; says why not.
static LogicalResult checkGemm(linalg::LinalgOp op, PatternRewriter &rewriter) {
  if (!op.hasPureBufferSemantics())
    return rewriter.notifyMatchFailure(op, "expected memref operands");
  if (!linalg::isaContractionOpInterface(op))
    return rewriter.notifyMatchFailure(op, "expected a contraction");
  if (!isMultiplyAdd(*op.getBlock()))
    return rewriter.notifyMatchFailure(
        op, "expected a body of one multiplication and one addition");
  for (Value operand : op->getOperands()) {
    auto type = cast<MemRefType>(operand.getType());
    if (!type.getElementType().isF32())
      return rewriter.notifyMatchFailure(op, "expected f32 elements");
    if (type.getMemorySpace())
      return rewriter.notifyMatchFailure(op, "expected the default memory");
    SmallVector<int64_t> strides;
    int64_t offset;
    if (failed(type.getStridesAndOffset(strides, offset)))
      return rewriter.notifyMatchFailure(op, "expected strided memrefs");
  }
  Value result = op.getDpsInits()[0];
  if (llvm::is_contained(op.getDpsInputs(), result))
    return rewriter.notifyMatchFailure(
        op, "expected the result to be none of the operands");
  return success();
}

/// The kind of each loop of the op.
static FailureOr<SmallVector<DimKind>>
getKindOfLoops(linalg::LinalgOp op, PatternRewriter &rewriter) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  SmallVector<DimKind> kinds;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop) {
    AffineExpr dim = rewriter.getAffineDimExpr(loop);
    bool inA = maps[0].getResultPosition(dim).has_value();
    bool inB = maps[1].getResultPosition(dim).has_value();
    bool inC = maps[2].getResultPosition(dim).has_value();
    if (inA && inB)
      kinds.push_back(inC ? DimKind::Batch : DimKind::K);
    else if (inC && (inA || inB))
      kinds.push_back(inA ? DimKind::M : DimKind::N);
    else
      return rewriter.notifyMatchFailure(
          op, "expected every loop in two operands or in all three");
  }
  return kinds;
}

/// Whether `outer` and `inner` are one dimension: in no operand is there
/// anything between the end of one row and the start of the next.
static bool areContiguous(const Dim &outer, const Dim &inner) {
  std::optional<int64_t> size = getConstantIntValue(inner.size);
  if (!size)
    return false;
  for (auto [outerStride, innerStride] :
       llvm::zip_equal(outer.strides, inner.strides)) {
    std::optional<int64_t> step = getConstantIntValue(outerStride);
    std::optional<int64_t> unit = getConstantIntValue(innerStride);
    if (!step || !unit || *step != *size * *unit)
      return false;
  }
  return true;
}

/// Takes the innermost dimension of `dims`, together with those outside it that
/// continue it in memory. What is left in `dims` has to be looped over.
static Dim takeInnermost(OpBuilder &builder, Location loc,
                         SmallVectorImpl<Dim> &dims) {
  OpFoldResult zero = builder.getIndexAttr(0);
  if (dims.empty())
    return {builder.getIndexAttr(1), {zero, zero, zero}};
  Dim result = dims.pop_back_val();
  while (!dims.empty() && areContiguous(dims.back(), result)) {
    Value outerSize =
        getValueOrCreateConstantIndexOp(builder, loc, dims.pop_back_val().size);
    Value innerSize =
        getValueOrCreateConstantIndexOp(builder, loc, result.size);
    result.size =
        builder.createOrFold<arith::MulIOp>(loc, outerSize, innerSize);
  }
  return result;
}

/// `offset + index * stride`.
static Value advance(OpBuilder &builder, Location loc, Value offset,
                     Value index, OpFoldResult stride) {
  Value step = arith::MulIOp::create(
      builder, loc, index,
      getValueOrCreateConstantIndexOp(builder, loc, stride));
  return arith::AddIOp::create(builder, loc, offset, step);
}

/// The product in the order that was asked for; of none in any.
static FailureOr<func::FuncOp>
declareCallee(PatternRewriter &rewriter, linalg::LinalgOp op,
              const std::optional<fp8::TensorCoreAccumulation> &sums,
              bool inWarps) {
  if (sums && sums->instruction == fp8::TensorCoreInstruction::TCGen05)
    return fp8::declareRuntimeFunction(
        rewriter, op, fp8::runtime::_mlir_ciface_fp8rt_gemm_tcgen05);
  if (sums && sums->instruction == fp8::TensorCoreInstruction::MMA)
    return fp8::declareRuntimeFunction(
        rewriter, op, fp8::runtime::_mlir_ciface_fp8rt_gemm_mma);
  if (sums)
    return fp8::declareRuntimeFunction(
        rewriter, op, fp8::runtime::_mlir_ciface_fp8rt_gemm_tensor_core);
  if (inWarps)
    return fp8::declareRuntimeFunction(
        rewriter, op, fp8::runtime::_mlir_ciface_fp8rt_gemm_warp);
  return fp8::declareRuntimeFunction(rewriter, op,
                                     fp8::runtime::_mlir_ciface_fp8rt_gemm_f32);
}

namespace {
/// The operands of a contraction, taken apart into base, offset and strides.
struct Operands {
  Operands(PatternRewriter &rewriter, linalg::LinalgOp op);

  /// Builds loops over all but one dimension of each kind, which is the
  /// callee's; moves the rewriter into them.
  std::array<Dim, 4> buildLoops(PatternRewriter &rewriter, Location loc,
                                ArrayRef<DimKind> kindOfLoop);
  /// What the callee gets, as it takes it.
  SmallVector<Value> getArguments(PatternRewriter &rewriter, Location loc,
                                  const std::array<Dim, 4> &dims,
                                  func::FuncOp callee) const;

  SmallVector<Dim> dimOfLoop;
  SmallVector<Value> bases, offsets;
};
} // namespace

Operands::Operands(PatternRewriter &rewriter, linalg::LinalgOp op) {
  Location loc = op.getLoc();
  OpFoldResult zero = rewriter.getIndexAttr(0);
  dimOfLoop.assign(op.getNumLoops(), Dim{{}, {zero, zero, zero}});
  for (auto [index, operand] : llvm::enumerate(op->getOpOperands())) {
    auto metadata =
        memref::ExtractStridedMetadataOp::create(rewriter, loc, operand.get());
    bases.push_back(metadata.getBaseBuffer());
    offsets.push_back(getValueOrCreateConstantIndexOp(
        rewriter, loc, metadata.getConstifiedMixedOffset()));
    AffineMap map = op.getMatchingIndexingMap(&operand);
    for (auto [result, size, stride] :
         llvm::zip_equal(map.getResults(), metadata.getConstifiedMixedSizes(),
                         metadata.getConstifiedMixedStrides())) {
      Dim &dim = dimOfLoop[cast<AffineDimExpr>(result).getPosition()];
      if (!dim.size || !getConstantIntValue(dim.size))
        dim.size = size;
      dim.strides[index] = stride;
    }
  }
}

std::array<Dim, 4> Operands::buildLoops(PatternRewriter &rewriter, Location loc,
                                        ArrayRef<DimKind> kindOfLoop) {
  SmallVector<Dim> outer;
  std::array<Dim, 4> dims;
  for (DimKind kind : dimKinds) {
    SmallVector<Dim> ofKind;
    for (auto [dim, loopKind] : llvm::zip_equal(dimOfLoop, kindOfLoop))
      if (loopKind == kind && !isConstantIntValue(dim.size, 1))
        ofKind.push_back(dim);
    dims[static_cast<unsigned>(kind)] = takeInnermost(rewriter, loc, ofKind);
    outer.append(ofKind);
  }
  for (const Dim &dim : outer) {
    auto asValue = [&](OpFoldResult value) {
      return getValueOrCreateConstantIndexOp(rewriter, loc, value);
    };
    auto loop = scf::ForOp::create(
        rewriter, loc, asValue(rewriter.getIndexAttr(0)), asValue(dim.size),
        asValue(rewriter.getIndexAttr(1)));
    rewriter.setInsertionPoint(loop.getBody()->getTerminator());
    for (auto [offset, stride] : llvm::zip_equal(offsets, dim.strides))
      offset = advance(rewriter, loc, offset, loop.getInductionVar(), stride);
  }
  return dims;
}

SmallVector<Value> Operands::getArguments(PatternRewriter &rewriter,
                                          Location loc,
                                          const std::array<Dim, 4> &dims,
                                          func::FuncOp callee) const {
  // The callee's type is dynamic all over, hence so are sizes and strides.
  const DimKind kindsOfOperand[3][3] = {
      {DimKind::Batch, DimKind::M, DimKind::K},
      {DimKind::Batch, DimKind::N, DimKind::K},
      {DimKind::Batch, DimKind::M, DimKind::N}};
  SmallVector<Value> arguments;
  for (unsigned index = 0; index < 3; ++index) {
    SmallVector<OpFoldResult> sizes, strides;
    for (DimKind kind : kindsOfOperand[index]) {
      const Dim &dim = dims[static_cast<unsigned>(kind)];
      sizes.push_back(getValueOrCreateConstantIndexOp(rewriter, loc, dim.size));
      strides.push_back(
          getValueOrCreateConstantIndexOp(rewriter, loc, dim.strides[index]));
    }
    arguments.push_back(memref::ReinterpretCastOp::create(
        rewriter, loc, cast<MemRefType>(callee.getArgumentTypes()[index]),
        bases[index], OpFoldResult(offsets[index]), sizes, strides));
  }
  return arguments;
}

LogicalResult ConvertGemm::matchAndRewrite(linalg::LinalgOp op,
                                           PatternRewriter &rewriter) const {
  if (failed(checkGemm(op, rewriter)))
    return failure();
  FailureOr<SmallVector<DimKind>> kindOfLoop = getKindOfLoops(op, rewriter);
  if (failed(kindOfLoop))
    return failure();
  std::optional<fp8::TensorCoreAccumulation> sums =
      fp8::TensorCoreAccumulation::get(op);
  FailureOr<func::FuncOp> callee = declareCallee(rewriter, op, sums, inWarps);
  if (failed(callee))
    return rewriter.notifyMatchFailure(
        op, "expected the name of the runtime's function to be free");

  Location loc = op.getLoc();
  Operands operands(rewriter, op);
  std::array<Dim, 4> dims = operands.buildLoops(rewriter, loc, *kindOfLoop);
  SmallVector<Value> arguments =
      operands.getArguments(rewriter, loc, dims, *callee);
  SmallVector<int64_t> numbers;
  if (sums)
    numbers = {sums->typeA, sums->typeB, sums->blockK, sums->parts};
  if (sums && sums->instruction != fp8::TensorCoreInstruction::TCGen05)
    numbers.push_back(sums->isPromoted);
  for (int64_t value : numbers)
    arguments.push_back(arith::ConstantOp::create(
        rewriter, loc, rewriter.getI32IntegerAttr(value)));
  LDBG() << "called for: " << OpWithFlags(op, OpPrintingFlags().skipRegions());
  func::CallOp::create(rewriter, loc, *callee, arguments);
  rewriter.eraseOp(op);
  return success();
}

void fp8::populateGemmsToRuntimePatterns(RewritePatternSet &patterns,
                                         bool inWarps) {
  patterns.add<ConvertGemm>(patterns.getContext(), inWarps);
  populateScaledGemmPatterns(patterns);
}

void ConvertGemmsToRuntimePass::runOnOperation() {
  if (failed(fp8::convertCollectivesToRuntime(getOperation())))
    return signalPassFailure();
  RewritePatternSet patterns(&getContext());
  fp8::populateGemmsToRuntimePatterns(patterns, inWarps);
  fp8::RewriteLog log(DEBUG_TYPE);
  walkAndApplyPatterns(getOperation(), std::move(patterns), &log);
}

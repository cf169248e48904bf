//===- DecodeOperands.cpp - Products of bf16 in place of others -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A code of E4M3, E5M2 or E2M1 times a power of two is a bf16, and so is an
// E2M1 times an E4M3, which takes six bits of the eight. The factor of a whole
// tensor multiplies the sum, as tensor cores that know such factors have it.
//
// Where a kernel multiplies sums of 32 by their factors, as Hopper's do for few
// rows, what takes less time decides.
//
//===----------------------------------------------------------------------===//

#include "MatmulClocks.h"
#include "SkipTranspose.h"
#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "fp8/IR/FoldedReads.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/FormatVariadic.h"

#include <limits>

namespace mlir::fp8 {
#define GEN_PASS_DEF_DECODEOPERANDSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct DecodeOperandsPass
    : fp8::impl::DecodeOperandsPassBase<DecodeOperandsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;

private:
  /// Decodes the operands of a product, grouped or not, of which there is a
  /// kernel in bf16 alone, or a faster one. `decoded` are those that are: what
  /// several products read is decoded once.
  template <typename OpTy>
  void decodeOperands(OpTy op, const KernelTarget &target,
                      DenseMap<Value, Value> &decoded);
};

/// An operand as it will be read: scaled, in its own order or the other one.
struct Source {
  Value value;
  bool isTransposed;
};
} // namespace

/// Whether each value of such a type, without the factor of the tensor, is a
/// bf16; but for those so small that a bf16 has fewer bits of them.
static bool isExact(ScaledType type) {
  if (isa<Float8E8M0FNUType>(type.getScaleType()))
    return true;
  return isa<Float8E4M3FNType>(type.getScaleType()) &&
         isa<Float4E2M1FNType>(type.getElementType());
}

static RankedTensorType getDecodedType(Value value) {
  auto type = cast<ScaledType>(value.getType());
  return RankedTensorType::get(type.getShape(),
                               BFloat16Type::get(type.getContext()));
}

/// Before it was transposed, as often as it was.
static Source skipTransposes(Source source) {
  while (Value before = getTransposed(source.value))
    source = {before, !source.isTransposed};
  return source;
}

template <typename OpTy>
static void setOperands(OpTy op, Value a, bool transposeA, Value b,
                        bool transposeB, Accumulate accumulate) {
  op.getAMutable().set(a);
  op.getBMutable().set(b);
  op.setTransposeA(transposeA);
  op.setTransposeB(transposeB);
  op.setAccumulate(accumulate);
}

/// What `ask` says of the op with these operands in bf16, which nobody
/// computes; it is given what would make B.
template <typename OpTy, typename Ask>
static auto askInBF16(OpTy op, const Source &a, const Source &b, Ask ask) {
  Value ownA = op.getA(), ownB = op.getB();
  bool transposeA = op.getTransposeA(), transposeB = op.getTransposeB();
  Accumulate accumulate = op.getAccumulate();
  OpBuilder builder(op);
  auto decode = [&](Value value) {
    return DequantizeOp::create(builder, op.getLoc(), getDecodedType(value),
                                value);
  };
  DequantizeOp wideA = decode(a.value), wideB = decode(b.value);
  setOperands(op, wideA, a.isTransposed, wideB, b.isTransposed,
              Accumulate::Fast);
  auto answer = ask(wideB);
  setOperands(op, ownA, transposeA, ownB, transposeB, accumulate);
  wideA.erase();
  wideB.erase();
  return answer;
}

/// Whether there is a kernel for the op with these operands in bf16.
template <typename OpTy>
static bool hasKernelOf(OpTy op, const Source &a, const Source &b,
                        const KernelTarget &target) {
  return askInBF16(op, a, b,
                   [&](DequantizeOp) { return hasKernel(op, target); });
}

/// Whether the op has a config, which a kernel of it as it is can have.
static bool hasFittingConfig(Operation *op, const KernelTarget &target) {
  std::string unused;
  auto given = op->getAttrOfType<KernelConfigAttrInterface>(kConfigAttrName);
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, unused);
  const KernelGenerator *generator =
      given && succeeded(spec)
          ? target.architecture->getGenerator(*spec, unused)
          : nullptr;
  return generator &&
         succeeded(generator->checkFit(*spec, given, target.attribute, unused));
}

/// What the op takes with its operands in bf16 over what it takes as it is,
/// with the passes that make them: of many rows, if it does not show how many
/// there are. Nothing where there is no such kernel, where it may not decide on
/// the bits of a row, or where the config or the order of codes is another
/// kernel's.
template <typename OpTy>
static std::optional<double> compareWithBF16(OpTy op, const Source &a,
                                             const Source &b,
                                             const KernelTarget &target) {
  std::optional<double> own = getExpectedClocks(op, target);
  // Who lifts codes is alone in knowing how arranged ones lie.
  auto assemble = b.value.template getDefiningOp<AssembleOp>();
  if (assemble && areArranged(assemble.getPayload()))
    return std::nullopt;
  // Tensor cores read bf16 as it was before it is transposed.
  if (!own || isInvariant(op) || op->hasAttr(kConfigAttrName) ||
      a.value != op.getA() || b.value != op.getB())
    return std::nullopt;
  // What is quantized here is in bf16 for nothing.
  auto getPass = [&](const Source &source) {
    return source.value.getDefiningOp<QuantizeOp>()
               ? 0.0
               : getDecodeClocks(cast<ScaledType>(source.value.getType()),
                                 target);
  };
  double passOfB = getPass(b);
  double wide = askInBF16(op, a, b, [&](DequantizeOp wideB) {
    constexpr double kNone = std::numeric_limits<double>::infinity();
    double made = getExpectedClocks(op, target).value_or(kNone) + passOfB;
    auto type = cast<ScaledType>(b.value.getType());
    if (passOfB == 0 || getLifting(type) == Lifting::None)
      return made;
    // For the sake of memory, kernels for any number of rows read codes always.
    if (!knowsRows(op))
      made = kNone;
    wideB->setAttr(kFoldedAttrName, UnitAttr::get(op.getContext()));
    return std::min(made, getExpectedClocks(op, target).value_or(kNone));
  });
  return (wide + getPass(a)) / *own;
}

/// The values of `source` without the factor of the tensor.
static Value decode(OpBuilder &b, Value source) {
  Location loc = source.getLoc();
  if (cast<ScaledType>(source.getType()).getHasTensorScale()) {
    RankedTensorType type =
        cast<ScaledType>(source.getType()).getTensorScaleInvType();
    Value one =
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(type, 1.0f));
    if (auto quantize = source.getDefiningOp<QuantizeOp>();
        quantize && !quantize.isUnresolved()) {
      // The same codes: one pass makes them, and numbers of them.
      auto own = cast<QuantizeOp>(b.clone(*quantize));
      own.getTensorScaleInvMutable().assign(one);
      source = own;
    } else {
      auto parts = DisassembleOp::create(b, loc, source);
      source = AssembleOp::create(b, loc, source.getType(), parts.getPayload(),
                                  parts.getScaleInv(), one);
    }
  }
  return DequantizeOp::create(b, loc, getDecodedType(source), source);
}

/// The factor of the tensor, with two dimensions; null if there is none.
static Value getTensorFactor(OpBuilder &b, Value source) {
  if (!cast<ScaledType>(source.getType()).getHasTensorScale())
    return {};
  Location loc = source.getLoc();
  Value factor = DisassembleOp::create(b, loc, source).getTensorScaleInv();
  if (cast<RankedTensorType>(factor.getType()).getRank() == 2)
    return factor;
  return tensor::CollapseShapeOp::create(
      b, loc, factor, SmallVector<ReassociationIndices>{{0, 1}, {2}});
}

/// Multiplies the sum by the product of `factors` before all that the epilogue
/// does.
template <typename OpTy>
static void scaleSum(OpTy op, ArrayRef<Value> factors) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Type f32 = b.getF32Type();
  if (!op.hasEpilogue()) {
    Block &block = op.getEpilogue().emplaceBlock();
    Value sum = block.addArgument(f32, loc);
    b.setInsertionPointToStart(&block);
    Type type = op.getResult().getType().getElementType();
    if (!type.isF32())
      sum = arith::TruncFOp::create(b, loc, type, sum);
    YieldOp::create(b, loc, sum);
  }
  Block &block = op.getEpilogue().front();
  Value sum = block.getArgument(0);
  SmallVector<Value> ofElement;
  for (Value factor : factors) {
    op.getEpilogueOperandsMutable().append(factor);
    ofElement.push_back(block.addArgument(f32, loc));
  }
  b.setInsertionPointToStart(&block);
  Value factor = ofElement.front();
  for (Value next : ArrayRef(ofElement).drop_front())
    factor = arith::MulFOp::create(b, loc, factor, next);
  auto scaled = arith::MulFOp::create(b, loc, sum, factor);
  sum.replaceAllUsesExcept(scaled, scaled);
}

template <typename OpTy>
void DecodeOperandsPass::decodeOperands(OpTy op, const KernelTarget &target,
                                        DenseMap<Value, Value> &decoded) {
  if (!op.isScaled() || !isExact(op.getScaledA()) || !isExact(op.getScaledB()))
    return;
  if (multipliesFactors(op, target) || hasFittingConfig(op, target))
    return;
  Source a{op.getA(), op.getTransposeA()}, other{op.getB(), op.getTransposeB()};
  Source sourceA = skipTransposes(a), sourceB = skipTransposes(other);
  if (!hasKernelOf(op, sourceA, sourceB, target)) {
    // Groups of rows want K innermost.
    sourceA = a;
    if (!hasKernelOf(op, sourceA, sourceB, target))
      return;
  }
  std::optional<double> ratio = compareWithBF16(op, sourceA, sourceB, target);
  if (ratio && *ratio > 1) {
    op.emitRemark() << "multiplied as " << op.getScaledA() << " and "
                    << op.getScaledB()
                    << ", each sum of 32 by its factors: in bf16 it is "
                       "expected to take "
                    << llvm::formatv("{0:F2}", *ratio).str()
                    << " times as long";
    return;
  }
  op.emitRemark() << "multiplied in bf16, which the tensor core multiplies, "
                     "and not as "
                  << op.getScaledA() << " and " << op.getScaledB();
  SmallVector<Value> values, factors;
  for (const Source &source : {sourceA, sourceB}) {
    OpBuilder b(&getContext());
    b.setInsertionPointAfterValue(source.value);
    Value &known = decoded[source.value];
    if (!known)
      known = decode(b, source.value);
    values.push_back(known);
    if (Value factor = getTensorFactor(b, source.value))
      factors.push_back(factor);
  }
  setOperands(op, values[0], sourceA.isTransposed, values[1],
              sourceB.isTransposed, Accumulate::Fast);
  if (!factors.empty())
    scaleSum(op, factors);
  ++numDecoded;
}

/// Takes groups apart whose products have no operand in common any more: what
/// is multiplied in bf16 has another one than what stays as it is.
static void dissolveGroups(ModuleOp module) {
  SmallVector<SiblingMatmulsOp> apart;
  module.walk([&](SiblingMatmulsOp op) {
    SmallVector<MatmulOp, 4> matmuls = op.getMatmuls();
    Value b = matmuls.front().getB();
    if (!op.sharesA() && !llvm::all_of(matmuls, [&](MatmulOp matmul) {
          return matmul.getB() == b;
        }))
      apart.push_back(op);
  });
  IRRewriter rewriter(module.getContext());
  for (SiblingMatmulsOp op : apart) {
    Block &body = op.getBody().front();
    auto yield = cast<YieldOp>(body.getTerminator());
    SmallVector<Value> results(yield.getValues());
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(&body, op);
    rewriter.replaceOp(op, results);
  }
}

void DecodeOperandsPass::runOnOperation() {
  ModuleOp module = getOperation();
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  DenseMap<Value, Value> decoded;
  module.walk([&](Operation *op) {
    if (auto matmul = dyn_cast<MatmulOp>(op))
      decodeOperands(matmul, *target, decoded);
    else if (auto grouped = dyn_cast<GroupedMatmulOp>(op))
      decodeOperands(grouped, *target, decoded);
  });
  dissolveGroups(module);
}

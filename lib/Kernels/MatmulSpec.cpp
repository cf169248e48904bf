//===- MatmulSpec.cpp - What a matmul kernel computes ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/MatmulSpec.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

/// The granularity that kernels know for a factor block, if any.
static std::optional<ScaleBlock> getScaleBlock(ScaledType type) {
  if (!type.getScaleType().isF32())
    return std::nullopt;
  int64_t rank = type.getRank();
  int64_t rows = type.getBlock()[rank - 2], k = type.getBlock()[rank - 1];
  constexpr int64_t whole = ScaledType::kWhole;
  if (rows == whole && k == whole)
    return ScaleBlock::Tensor;
  if (rows == 1 && k == whole)
    return ScaleBlock::Row;
  if (rows == 1 && k == 128)
    return ScaleBlock::Row128;
  if (rows == 128 && k == 128)
    return ScaleBlock::Block128;
  return std::nullopt;
}

/// What the op's epilogue reads beside the accumulator.
static void getEpilogue(MatmulOp op, MatmulSpec &spec) {
  if (!op.hasEpilogue())
    return;
  spec.epilogue = &op.getEpilogue().front();
  int64_t rank = op.getResult().getType().getRank();
  for (Value operand : op.getEpilogueOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    auto has = [&](int64_t dim) {
      int64_t own = dim - (rank - type.getRank());
      return own >= 0 && type.getDimSize(own) != 1;
    };
    spec.operands.push_back({type.getElementType(), rank == 3 && has(0),
                             has(rank - 2), has(rank - 1)});
  }
  llvm::SetVector<Value> captures;
  getUsedValuesDefinedAbove(op.getEpilogue(), captures);
  for (Value value : captures)
    if (!matchPattern(value, m_Constant()))
      spec.captures.push_back(value);
}

FailureOr<MatmulSpec> MatmulSpec::get(MatmulOp op, std::string &reason) {
  MatmulSpec spec;
  for (auto [name, type, operand] :
       {std::tuple{"A", op.getA().getType(), &spec.a},
        {"B", op.getB().getType(), &spec.b}}) {
    operand->elementType = type.getElementType();
    std::optional<ScaleBlock> block = getScaleBlock(type);
    if (!block) {
      reason = llvm::formatv("expected {0} to have f32 factors per tensor, per "
                             "row, per 1x128 or per 128x128",
                             name);
      return failure();
    }
    operand->scale = *block;
  }
  ScaledType a = op.getA().getType(), b = op.getB().getType();
  int64_t rank = a.getRank();
  spec.accumulate = op.getAccumulate();
  spec.resultType = op.getResult().getType().getElementType();
  spec.amax = op.getAmax() != nullptr;
  spec.batched = rank == 3;
  spec.m = a.getShape()[rank - 2];
  spec.n = b.getShape()[rank - 2];
  spec.k = ShapedType::isDynamic(a.getShape()[rank - 1])
               ? b.getShape()[rank - 1]
               : a.getShape()[rank - 1];
  spec.batch = spec.batched ? a.getShape()[0] : 1;
  if (!ShapedType::isDynamic(spec.k) && spec.k % 16 != 0) {
    reason = llvm::formatv("expected K to be a multiple of 16, which bulk "
                           "tensor copies need, but got {0}",
                           spec.k);
    return failure();
  }
  getEpilogue(op, spec);
  for (Value capture : spec.captures)
    if (!capture.getType().isIntOrFloat()) {
      reason = llvm::formatv(
          "expected the epilogue to use scalars from around it, but got {0}",
          capture.getType());
      return failure();
    }
  return spec;
}

int64_t MatmulSpec::getEpilogueInstructions() const {
  int64_t count = 0;
  if (!epilogue)
    return count;
  // What functions take in the kernel (fp8-lower-kernel-math), and one for
  // everything else.
  for (Operation &op : epilogue->without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    auto math = dyn_cast<arith::ArithFastMathInterface>(op);
    arith::FastMathFlagsAttr flags =
        math ? math.getFastMathFlagsAttr() : arith::FastMathFlagsAttr();
    bool isRough = flags && arith::bitEnumContainsAll(
                                flags.getValue(), arith::FastMathFlags::afn);
    count += isRough                                              ? 2
             : isa<math::ErfOp>(op)                               ? 16
             : isa<math::TanhOp, math::LogOp, math::PowFOp>(op)   ? 6
             : isa<math::ExpOp, arith::DivFOp, math::RsqrtOp>(op) ? 3
                                                                  : 1;
  }
  return count;
}

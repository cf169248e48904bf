//===- FP8Verifiers.cpp - Verifiers, one label for each constraint --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulVerifiers.h"
#include "fp8/IR/Formats.h"

using namespace mlir;
using namespace mlir::fp8;

bool fp8::areCompatible(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  return succeeded(verifyCompatibleShape(a, b));
}

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

LogicalResult AmaxOp::verify() {
  // amax_c1
  return verifyBlock(getBlock(), getSource().getType().getRank(),
                     [&] { return emitOpError(); });
}

LogicalResult ComputeScaleOp::verify() {
  // compute_scale_c1
  if (!isCodeType(getFormat()))
    return emitOpError("expected format ")
           << listCodeTypes() << ", but got " << getFormat();
  // compute_scale_c2
  if (!isFactorType(getScaleType()))
    return emitOpError("expected scale_type ")
           << listFactorTypes() << ", but got " << getScaleType();
  // compute_scale_c3
  bool needsTensorAmax = isa<Float8E4M3FNType>(getScaleType());
  if (needsTensorAmax != static_cast<bool>(getTensorAmax()))
    return emitOpError("expected tensor_amax exactly with scale_type = "
                       "f8E4M3FN, but got scale_type = ")
           << getScaleType() << (getTensorAmax() ? " with" : " without")
           << " tensor_amax";
  if (getTensorAmax()) {
    RankedTensorType type = getTensorAmax().getType();
    if (type.getRank() != getAmax().getType().getRank() ||
        llvm::any_of(type.getShape(), [](int64_t dim) { return dim != 1; }))
      return emitOpError("expected tensor_amax to have one element and the "
                         "rank of amax, but got ")
             << type;
  }
  // compute_scale_c4
  if (!needsTensorAmax && !getRule().hasScaleType(getScaleType()))
    return emitOpError("expected a rule that has scales of ")
           << getScaleType() << ", but got " << getRule();
  return success();
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

static bool isSeed(RankedTensorType type) {
  return type.getShape() == ArrayRef<int64_t>{ReadSeedOp::kNumWords};
}

LogicalResult HadamardOp::verify() {
  // hadamard_c1
  RankedTensorType type = getSource().getType();
  if (type.getRank() == 0 || (!type.isDynamicDim(type.getRank() - 1) &&
                              type.getShape().back() % kSize != 0))
    return emitOpError("expected a last dimension that is a multiple of ")
           << kSize << ", but got " << type;
  // hadamard_c2
  if (getSigns() > 0xffff)
    return emitOpError("expected signs to be 0 to 65535, but got ")
           << static_cast<int64_t>(getSigns());
  return success();
}

LogicalResult QuantizeOp::verify() {
  ScaledType result = getResult().getType();
  // quantize_c1
  if (!areCompatible(getSource().getType().getShape(), result.getShape()))
    return emitOpError("expected source and result to have the same shape, but "
                       "got ")
           << getSource().getType() << " and " << result;
  // quantize_c2
  if (static_cast<bool>(getRecipeAttr()) == static_cast<bool>(getScale()))
    return emitOpError("expected exactly one of recipe and scale");
  // quantize_c6
  if (getRecipeAttr() && getRecipeAttr().isHighPrecision())
    return emitOpError("expected a recipe that quantizes, but got ")
           << getRecipeAttr();
  // quantize_c7
  if (getSeed() && !isSeed(getSeed().getType()))
    return emitOpError("expected seed to be tensor<4xi32>, but got ")
           << getSeed().getType();
  if (getSeed() && !isa<Float4E2M1FNType>(result.getElementType()))
    return emitOpError("expected codes of f4E2M1FN with a seed, but got ")
           << result.getElementType();
  if (!getScale()) {
    if (getTensorScaleInv())
      return emitOpError("expected no tensor_scale_inv with a recipe");
    return success();
  }
  // quantize_c3
  if (!areCompatible(getScale().getType().getShape(), result.getGridShape()))
    return emitOpError("expected scale to have one element for each block (")
           << result.getScaleInvType() << "), but got " << getScale().getType();
  // quantize_c4
  RankedTensorType scaleInv = getScaleInv().getType();
  if (scaleInv.getElementType() != result.getScaleType() ||
      !areCompatible(scaleInv.getShape(), result.getGridShape()))
    return emitOpError("expected scale_inv to be ")
           << result.getScaleInvType() << ", but got " << scaleInv;
  // quantize_c5
  if (static_cast<bool>(getTensorScaleInv()) != result.getHasTensorScale())
    return emitOpError("expected tensor_scale_inv exactly when the result has "
                       "a tensor_scale, but got ")
           << (getTensorScaleInv() ? "one" : "none") << " for " << result;
  if (getTensorScaleInv() &&
      getTensorScaleInv().getType() != result.getTensorScaleInvType())
    return emitOpError("expected tensor_scale_inv to be ")
           << result.getTensorScaleInvType() << ", but got "
           << getTensorScaleInv().getType();
  return success();
}

LogicalResult DequantizeOp::verify() {
  // dequantize_c1
  if (!areCompatible(getSource().getType().getShape(),
                     getResult().getType().getShape()))
    return emitOpError("expected source and result to have the same shape, but "
                       "got ")
           << getSource().getType() << " and " << getResult().getType();
  return success();
}

LogicalResult MeasureOp::verify() {
  // measure_c1
  if (!areCompatible(getSource().getType().getShape(),
                     getQuantized().getType().getShape()))
    return emitOpError("expected source and quantized to have the same shape, "
                       "but got ")
           << getSource().getType() << " and " << getQuantized().getType();
  return success();
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

LogicalResult TransposeOp::verify() {
  // transpose_c1: checked by inferReturnTypes, which runs before.
  return success();
}

LogicalResult LiftOp::verify() {
  // lift_c1
  ArrayRef<int64_t> codes = getCodes().getType().getShape();
  if (codes.size() != 2 && codes.size() != 3)
    return emitOpError("expected codes of 2 or 3 dimensions, but got ")
           << getCodes().getType();
  SmallVector<int64_t> exponents(codes);
  std::swap(exponents.back(), exponents[codes.size() - 2]);
  int64_t &words = exponents[codes.size() - 2];
  if (!ShapedType::isDynamic(words))
    words = llvm::divideCeil(words, kWordK);
  if (!areCompatible(getExponents().getType().getShape(), exponents))
    return emitOpError("expected exponents of ")
           << RankedTensorType::get(exponents,
                                    getExponents().getType().getElementType())
           << ", but got " << getExponents().getType();
  if (!areCompatible(getResult().getType().getShape(), codes))
    return emitOpError("expected a result of the shape of ")
           << getCodes().getType() << ", but got " << getResult().getType();
  return success();
}

LogicalResult AssembleOp::verify() {
  // assemble_c1
  ScaledType result = getResult().getType();
  auto check = [&](StringRef name, Type actual,
                   RankedTensorType expected) -> LogicalResult {
    if (actual != expected)
      return emitOpError("expected ")
             << name << " to be " << expected << ", but got " << actual;
    return success();
  };
  if (failed(
          check("payload", getPayload().getType(), result.getPayloadType())) ||
      failed(check("scale_inv", getScaleInv().getType(),
                   result.getScaleInvType())))
    return failure();
  if (static_cast<bool>(getTensorScaleInv()) != result.getHasTensorScale())
    return emitOpError("expected tensor_scale_inv exactly when the result has "
                       "a tensor_scale, but got ")
           << (getTensorScaleInv() ? "one" : "none") << " for " << result;
  if (getTensorScaleInv())
    return check("tensor_scale_inv", getTensorScaleInv().getType(),
                 result.getTensorScaleInvType());
  return success();
}

//===----------------------------------------------------------------------===//
// Matmul
//===----------------------------------------------------------------------===//

/// (C5) to (C7): which blocks a tensor core, and our kernels, can multiply.
static void describeBlockMismatch(llvm::raw_ostream &os, ScaledType a,
                                  ScaledType b, Accumulate accumulate) {
  int64_t rank = a.getRank();
  // matmul_c5
  if (a.getBlock()[rank - 1] != b.getBlock()[rank - 1]) {
    os << "expected a and b to have the same block extent in K, but got '" << a
       << "' and '" << b << "'";
    return;
  }
  for (ScaledType type : {a, b})
    if (rank == 3 && !type.isPerTensor() &&
        type.getBlock()[0] == ScaledType::kWhole && type.getShape()[0] != 1) {
      os << "expected one scale for the tensor or a block of 1 in the batch "
            "dimension, but got '"
         << type << "'";
      return;
    }
  // matmul_c6
  auto is2D = [&](ScaledType type) {
    return type.isBlocked(rank - 1) && type.getBlock()[rank - 2] != 1;
  };
  if (is2D(a) && is2D(b))
    os << "expected at most one operand with 2-D blocks, but got '" << a
       << "' and '" << b << "'";
  // matmul_c7
  else if (a.isBlocked(rank - 1) && accumulate == Accumulate::Fast)
    os << "expected accumulate = promote with block scaling: the scale changes "
          "within K";
}

/// Whether [batch x] M x K goes with [batch x] N x K; says why not, in terms of
/// the types `a` and `b`.
static bool areMultipliable(raw_ostream &os, ArrayRef<int64_t> aShape,
                            ArrayRef<int64_t> bShape, Type a, Type b) {
  size_t rank = aShape.size();
  // matmul_c1
  if (rank != bShape.size() || (rank != 2 && rank != 3))
    os << "expected a and b to have rank 2 or 3, both the same, but got '" << a
       << "' and '" << b << "'";
  // matmul_c2
  else if (!areCompatible(aShape.take_back(), bShape.take_back()))
    os << "expected a and b to agree in K, but got '" << a << "' and '" << b
       << "'";
  else if (!areCompatible(aShape.drop_back(2), bShape.drop_back(2)))
    os << "expected a and b to agree in the batch dimension, but got '" << a
       << "' and '" << b << "'";
  else
    return true;
  return false;
}

std::string MatmulOp::describeMismatch(ScaledType a, ScaledType b,
                                       Accumulate accumulate) {
  std::string text;
  llvm::raw_string_ostream os(text);
  if (!areMultipliable(os, a.getShape(), b.getShape(), a, b))
    return text;
  // matmul_c4
  if (isa<Float4E2M1FNType>(a.getElementType()) !=
      isa<Float4E2M1FNType>(b.getElementType()))
    os << "expected E2M1 to go with E2M1, but got '" << a << "' and '" << b
       << "'";
  else
    describeBlockMismatch(os, a, b, accumulate);
  return text;
}

SmallVector<int64_t> fp8::getShapeWithKLast(Type type, bool isTransposed) {
  ArrayRef<int64_t> given;
  if (auto scaled = dyn_cast<ScaledType>(type))
    given = scaled.getShape();
  else
    given = cast<RankedTensorType>(type).getShape();
  SmallVector<int64_t> shape(given);
  if (isTransposed && shape.size() >= 2)
    std::swap(shape.back(), shape[shape.size() - 2]);
  return shape;
}

SmallVector<int64_t> MatmulOp::getShapeOfA() {
  return getShapeWithKLast(getA().getType(), getTransposeA());
}
SmallVector<int64_t> MatmulOp::getShapeOfB() {
  return getShapeWithKLast(getB().getType(), getTransposeB());
}

ScaledType fp8::getScaledWithKLast(Value operand, bool isTransposed) {
  auto type = cast<ScaledType>(operand.getType());
  if (!isTransposed || type.getRank() < 2)
    return type;
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  return type.permute(permutation);
}

ScaledType MatmulOp::getScaledA() {
  return getScaledWithKLast(getA(), getTransposeA());
}
ScaledType MatmulOp::getScaledB() {
  return getScaledWithKLast(getB(), getTransposeB());
}

Type fp8::getElementTypeOfOperand(Type type) {
  if (auto scaled = dyn_cast<ScaledType>(type))
    return scaled.getElementType();
  return cast<RankedTensorType>(type).getElementType();
}

Type MatmulOp::getElementTypeOfA() {
  return getElementTypeOfOperand(getA().getType());
}
Type MatmulOp::getElementTypeOfB() {
  return getElementTypeOfOperand(getB().getType());
}

LogicalResult MatmulOp::verify() {
  RankedTensorType result = getResult().getType();
  std::string mismatch = describeOperandMismatch(*this, areMultipliable);
  if (!mismatch.empty())
    return emitOpError(mismatch);
  // matmul_c3
  SmallVector<int64_t> expected = getShapeOfA();
  SmallVector<int64_t> shapeOfB = getShapeOfB();
  expected.back() = shapeOfB[shapeOfB.size() - 2];
  if (!areCompatible(expected, result.getShape()))
    return emitOpError("expected result to have shape ")
           << RankedTensorType::get(expected, result.getElementType())
           << ", but got " << result;
  // matmul_c10
  if (!hasEpilogue() && result.getElementType().getIntOrFloatBitWidth() == 8)
    return emitOpError("expected an epilogue that quantizes to ") << result;
  if (!getAmax())
    return success();
  if (!hasEpilogue())
    return emitOpError("expected an epilogue that yields what amax is of");
  RankedTensorType amax = getAmax().getType();
  if (amax.getRank() != result.getRank() || amax.getNumElements() != 1)
    return emitOpError("expected amax to be ")
           << RankedTensorType::get(SmallVector<int64_t>(result.getRank(), 1),
                                    amax.getElementType())
           << ", but got " << amax;
  return success();
}

LogicalResult MatmulOp::verifyRegions() {
  return verifyEpilogue(*this, getEpilogue(), getEpilogueOperands(),
                        getResult().getType(), getAmax() != nullptr);
}

LogicalResult fp8::verifyEpilogue(Operation *op, Region &epilogue,
                                  ValueRange operands, RankedTensorType result,
                                  bool hasAmax) {
  if (epilogue.empty()) {
    if (!operands.empty())
      return op->emitOpError("expected an epilogue region for the ")
             << operands.size() << " epilogue operands";
    return success();
  }
  // matmul_c8, grouped_matmul_c6
  Block &body = epilogue.front();
  Type f32 = Float32Type::get(op->getContext());
  SmallVector<Type> expected{f32};
  for (Value operand : operands)
    expected.push_back(getElementTypeOrSelf(operand));
  if (body.getArgumentTypes() != TypeRange(expected))
    return op->emitOpError("expected the epilogue to take (")
           << TypeRange(expected) << "), but got (" << body.getArgumentTypes()
           << ")";
  auto yield = dyn_cast<YieldOp>(body.getTerminator());
  SmallVector<Type> yielded{result.getElementType()};
  if (hasAmax)
    yielded.push_back(f32);
  if (!yield || yield.getValues().getTypes() != TypeRange(yielded))
    return op->emitOpError("expected the epilogue to yield (")
           << TypeRange(yielded) << ")";
  // matmul_c9, grouped_matmul_c7
  for (Value operand : operands) {
    auto type = cast<RankedTensorType>(operand.getType());
    ArrayRef<int64_t> tail = result.getShape();
    bool fits = type.getRank() <= result.getRank();
    if (fits) {
      tail = tail.take_back(type.getRank());
      for (auto [dim, resultDim] : llvm::zip_equal(type.getShape(), tail))
        fits &= dim == 1 || dim == resultDim || ShapedType::isDynamic(dim) ||
                ShapedType::isDynamic(resultDim);
    }
    if (!fits)
      return op->emitOpError("expected epilogue operand ")
             << type << " to broadcast to " << result;
  }
  return success();
}

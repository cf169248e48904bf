//===- FP8Types.cpp - Types of the fp8 dialect ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Types.h"
#include "fp8/IR/Formats.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

#define GET_TYPEDEF_CLASSES
#include "fp8/IR/FP8Types.cpp.inc"

void FP8Dialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "fp8/IR/FP8Types.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

ParseResult fp8::parseBlock(AsmParser &parser,
                            SmallVectorImpl<int64_t> &block) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&]() -> ParseResult {
        if (succeeded(parser.parseOptionalStar())) {
          block.push_back(ScaledType::kWhole);
          return success();
        }
        SMLoc loc = parser.getCurrentLocation();
        int64_t extent;
        if (parser.parseInteger(extent))
          return failure();
        if (extent < 1)
          return parser.emitError(loc)
                 << "expected a block extent of at least 1 or '*', but got "
                 << extent;
        block.push_back(extent);
        return success();
      });
}

void fp8::printBlock(AsmPrinter &printer, ArrayRef<int64_t> block) {
  printer << '[';
  llvm::interleaveComma(block, printer, [&](int64_t extent) {
    if (extent == ScaledType::kWhole)
      printer << '*';
    else
      printer << extent;
  });
  printer << ']';
}

LogicalResult
fp8::verifyBlock(ArrayRef<int64_t> block, int64_t rank,
                 llvm::function_ref<InFlightDiagnostic()> emitError) {
  if (static_cast<int64_t>(block.size()) != rank)
    return emitError() << "expected block to have one entry for each of the "
                       << rank << " dimensions, but got " << block.size();
  for (int64_t extent : block)
    if (extent < 0)
      return emitError()
             << "expected block extents of at least 1 or '*', but got "
             << extent;
  return success();
}

SmallVector<int64_t> fp8::getGridShape(ArrayRef<int64_t> shape,
                                       ArrayRef<int64_t> block) {
  SmallVector<int64_t> grid;
  for (auto [dim, extent] : llvm::zip_equal(shape, block)) {
    if (extent == ScaledType::kWhole)
      grid.push_back(1);
    else if (ShapedType::isDynamic(dim))
      grid.push_back(ShapedType::kDynamic);
    else
      grid.push_back(llvm::divideCeil(dim, extent));
  }
  return grid;
}

//===----------------------------------------------------------------------===//
// ScaledType
//===----------------------------------------------------------------------===//

Type ScaledType::parse(AsmParser &parser) {
  SmallVector<int64_t> shape, block;
  Type elementType, scaleType;
  if (parser.parseLess() || parser.parseDimensionList(shape) ||
      parser.parseType(elementType) || parser.parseComma() ||
      parser.parseKeyword("block") || parser.parseEqual() ||
      parseBlock(parser, block) || parser.parseComma() ||
      parser.parseKeyword("scale") || parser.parseEqual() ||
      parser.parseType(scaleType))
    return {};
  bool hasTensorScale = succeeded(parser.parseOptionalComma());
  if (hasTensorScale) {
    SMLoc loc = parser.getCurrentLocation();
    Type tensorScaleType;
    if (parser.parseKeyword("tensor_scale") || parser.parseEqual() ||
        parser.parseType(tensorScaleType))
      return {};
    if (!tensorScaleType.isF32()) {
      parser.emitError(loc)
          << "expected tensor_scale to be f32, but got " << tensorScaleType;
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<ScaledType>(parser.getContext(), shape, elementType,
                                       block, scaleType, hasTensorScale);
}

void ScaledType::print(AsmPrinter &printer) const {
  printer << '<';
  printer.printDimensionList(getShape());
  printer << (getShape().empty() ? "" : "x") << getElementType()
          << ", block = ";
  printBlock(printer, getBlock());
  printer << ", scale = " << getScaleType();
  if (getHasTensorScale())
    printer << ", tensor_scale = f32";
  printer << '>';
}

LogicalResult
ScaledType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   ArrayRef<int64_t> shape, Type elementType,
                   ArrayRef<int64_t> block, Type scaleType,
                   bool hasTensorScale) {
  // scaled_c1
  if (!isCodeType(elementType))
    return emitError() << "expected element type " << listCodeTypes()
                       << ", but got " << elementType;
  // scaled_c2
  if (failed(verifyBlock(block, shape.size(), emitError)))
    return failure();
  // scaled_c3
  if (!isFactorType(scaleType))
    return emitError() << "expected scale to be " << listFactorTypes()
                       << ", but got " << scaleType;
  // scaled_c4
  bool isE4M3Scale = isa<Float8E4M3FNType>(scaleType);
  if (isE4M3Scale != hasTensorScale)
    return emitError() << "expected tensor_scale = f32 exactly with scale = "
                          "f8E4M3FN, but got scale = "
                       << scaleType << (hasTensorScale ? " with" : " without")
                       << " a tensor_scale";
  if (isE4M3Scale && !isa<Float4E2M1FNType>(elementType))
    return emitError() << "expected element type f4E2M1FN with scale = "
                          "f8E4M3FN, but got "
                       << elementType;
  return success();
}

RankedTensorType ScaledType::getPayloadType() const {
  return RankedTensorType::get(getShape(), getElementType());
}

RankedTensorType ScaledType::getScaleInvType() const {
  return RankedTensorType::get(getGridShape(), getScaleType());
}

RankedTensorType ScaledType::getTensorScaleInvType() const {
  return RankedTensorType::get(SmallVector<int64_t>(getRank(), 1),
                               Float32Type::get(getContext()));
}

SmallVector<int64_t> ScaledType::getGridShape() const {
  return fp8::getGridShape(getShape(), getBlock());
}

std::optional<int64_t> ScaledType::getCacheSize() const {
  if (ShapedType::isDynamicShape(getShape()) || !isPerTensor() ||
      !getScaleType().isF32() || getElementType().getIntOrFloatBitWidth() != 8)
    return std::nullopt;
  return llvm::alignTo(ShapedType::getNumElements(getShape()), 4) + 4;
}

bool ScaledType::isPerTensor() const {
  return llvm::all_of(getBlock(),
                      [](int64_t extent) { return extent == kWhole; });
}

ScaledType ScaledType::cloneWith(ArrayRef<int64_t> shape,
                                 ArrayRef<int64_t> block) const {
  return ScaledType::get(getContext(), shape, getElementType(), block,
                         getScaleType(), getHasTensorScale());
}

ScaledType ScaledType::permute(ArrayRef<int64_t> permutation) const {
  SmallVector<int64_t> shape, block;
  for (int64_t dim : permutation) {
    shape.push_back(getShape()[dim]);
    block.push_back(getBlock()[dim]);
  }
  return cloneWith(shape, block);
}

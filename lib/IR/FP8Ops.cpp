//===- FP8Ops.cpp - Operations: parsing, printing, inference --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "FormerNames.h"
#include "WindowSyntax.h"
#include "fp8/IR/Formats.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Custom directives
//===----------------------------------------------------------------------===//

namespace mlir::fp8 {

static ParseResult parseBlock(OpAsmParser &parser, DenseI64ArrayAttr &block) {
  SmallVector<int64_t> extents;
  if (fp8::parseBlock(parser, extents))
    return failure();
  block = parser.getBuilder().getDenseI64ArrayAttr(extents);
  return success();
}

static void printBlock(OpAsmPrinter &printer, Operation *,
                       DenseI64ArrayAttr block) {
  fp8::printBlock(printer, block);
}

/// `epilogue(%bias, %c : tensor<64xbf16>, tensor<32x64xf32>) { ... }`, with the
/// parentheses only around operands, or nothing.
static ParseResult
parseEpilogue(OpAsmParser &parser,
              SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands,
              SmallVectorImpl<Type> &types, Region &region) {
  if (failed(parser.parseOptionalKeyword("epilogue")))
    return success();
  if (succeeded(parser.parseOptionalLParen()))
    if (parser.parseOperandList(operands) || parser.parseColonTypeList(types) ||
        parser.parseRParen())
      return failure();
  return parser.parseRegion(region);
}

static void printEpilogue(OpAsmPrinter &printer, Operation *,
                          OperandRange operands, TypeRange types,
                          Region &region) {
  if (region.empty())
    return;
  printer << " epilogue";
  if (!operands.empty())
    printer << '(' << operands << " : " << types << ')';
  printer << ' ';
  printer.printRegion(region);
}

} // namespace mlir::fp8

#define GET_OP_CLASSES
#include "fp8/IR/FP8Ops.cpp.inc"

//===----------------------------------------------------------------------===//
// Result types
//===----------------------------------------------------------------------===//

LogicalResult AmaxOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> location,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &results) {
  auto source = dyn_cast<RankedTensorType>(adaptor.getSource().getType());
  // amax_c1 comes first: the grid is computed from a legal block only.
  if (!source || failed(verifyBlock(adaptor.getBlock(), source.getRank(), [&] {
        return mlir::emitError(location.value_or(UnknownLoc::get(context)))
               << "'fp8.amax' op ";
      })))
    return failure();
  results.push_back(
      RankedTensorType::get(getGridShape(source.getShape(), adaptor.getBlock()),
                            Float32Type::get(context)));
  return success();
}

LogicalResult ComputeScaleOp::inferReturnTypes(MLIRContext *context,
                                               std::optional<Location>,
                                               Adaptor adaptor,
                                               SmallVectorImpl<Type> &results) {
  auto amax = dyn_cast<RankedTensorType>(adaptor.getAmax().getType());
  if (!amax)
    return failure();
  results.push_back(amax);
  results.push_back(amax.clone(adaptor.getScaleType()));
  if (adaptor.getTensorAmax())
    results.push_back(adaptor.getTensorAmax().getType());
  return success();
}

LogicalResult TransposeOp::inferReturnTypes(MLIRContext *context,
                                            std::optional<Location> location,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &results) {
  auto source = dyn_cast<ScaledType>(adaptor.getSource().getType());
  if (!source)
    return failure();
  // transpose_c1 comes first, as above.
  ArrayRef<int64_t> permutation = adaptor.getPermutation();
  if (static_cast<int64_t>(permutation.size()) != source.getRank() ||
      !isPermutationVector(permutation))
    return mlir::emitError(location.value_or(UnknownLoc::get(context)))
           << "'fp8.transpose' op expected permutation to be a permutation of "
              "the "
           << source.getRank() << " dimensions";
  results.push_back(source.permute(permutation));
  return success();
}

LiftOp LiftOp::getFolded(Value operand) {
  auto assemble = operand.getDefiningOp<AssembleOp>();
  auto lift =
      assemble ? assemble.getPayload().getDefiningOp<LiftOp>() : LiftOp();
  return lift && lift.getFolded() ? lift : LiftOp();
}

LogicalResult DisassembleOp::inferReturnTypes(MLIRContext *context,
                                              std::optional<Location>,
                                              Adaptor adaptor,
                                              SmallVectorImpl<Type> &results) {
  auto source = dyn_cast<ScaledType>(adaptor.getSource().getType());
  if (!source)
    return failure();
  results.push_back(source.getPayloadType());
  results.push_back(source.getScaleInvType());
  if (source.getHasTensorScale())
    results.push_back(source.getTensorScaleInvType());
  return success();
}

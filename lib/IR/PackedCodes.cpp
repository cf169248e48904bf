//===- PackedCodes.cpp - Codes that share bytes ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/PackedCodes.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::fp8;
using fp8rt::CodePacking;

CodePacking fp8::getPacking(Type type) {
  const fp8rt::NumberFormat *format =
      getNumberFormat(getElementTypeOrSelf(type));
  return format && format->isCode ? format->getPacking() : CodePacking();
}

std::string fp8::describeGroups(Type type) {
  CodePacking packing = getPacking(type);
  std::string name = getNumberFormat(getElementTypeOrSelf(type))->mlirName;
  if (packing.getCodes() == 2)
    return "an even size, of which two codes of " + name + " share a byte";
  return "a size that is a multiple of " + std::to_string(packing.getCodes()) +
         ", of which so many codes of " + name + " share " +
         std::to_string(packing.getBytes()) + " bytes";
}

AffineExpr fp8::getBytesOf(CodePacking packing, AffineExpr codes) {
  return codes.ceilDiv(packing.getCodes()) * packing.getBytes();
}

AffineExpr fp8::getCodesOf(CodePacking packing, AffineExpr bytes) {
  return bytes.floorDiv(packing.getBytes()) * packing.getCodes();
}

RankedTensorType fp8::getStoredType(RankedTensorType type) {
  if (!isPacked(type))
    return type;
  SmallVector<int64_t> shape(type.getShape());
  if (!shape.empty() && !ShapedType::isDynamic(shape.back()))
    shape.back() = getPacking(type).getBytesOf(shape.back());
  return RankedTensorType::get(shape, IntegerType::get(type.getContext(), 8),
                               type.getEncoding());
}

Value fp8::castCodes(OpBuilder &b, Type type, Value value) {
  if (!isPacked(value.getType()) && !isPacked(type))
    return value;
  return UnrealizedConversionCastOp::create(b, value.getLoc(), type, value)
      .getResult(0);
}

SmallVector<char> fp8::packCodes(CodePacking packing, ArrayRef<char> codes,
                                 int64_t columns) {
  SmallVector<char> bytes;
  for (; !codes.empty(); codes = codes.drop_front(columns))
    for (int64_t first = 0; first < columns; first += packing.getCodes()) {
      uint64_t group = 0;
      int64_t end = std::min(first + packing.getCodes(), columns);
      for (int64_t column = first; column < end; ++column)
        group |= (codes[column] & packing.getMask())
                 << (column - first) * packing.bits;
      for (int64_t i = 0; i < packing.getBytes(); ++i)
        bytes.push_back(static_cast<char>(group >> 8 * i));
    }
  return bytes;
}

SmallVector<char> fp8::unpackCodes(CodePacking packing, ArrayRef<char> bytes,
                                   int64_t columns) {
  SmallVector<char> codes;
  int64_t first = 0;
  for (; !bytes.empty(); bytes = bytes.drop_front(packing.getBytes())) {
    uint64_t group = 0;
    for (int64_t i = 0; i < packing.getBytes(); ++i)
      group |= uint64_t(static_cast<unsigned char>(bytes[i])) << 8 * i;
    int64_t end = std::min(first + packing.getCodes(), columns);
    for (int64_t column = first; column < end; ++column)
      codes.push_back(static_cast<char>(
          group >> (column - first) * packing.bits & packing.getMask()));
    first = end < columns ? end : 0;
  }
  return codes;
}

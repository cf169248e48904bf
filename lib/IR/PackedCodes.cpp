//===- PackedCodes.cpp - Codes of four bits in memory ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/PackedCodes.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

RankedTensorType fp8::getStoredType(RankedTensorType type) {
  if (!isPacked(type))
    return type;
  SmallVector<int64_t> shape(type.getShape());
  if (!shape.empty() && !ShapedType::isDynamic(shape.back()))
    shape.back() = llvm::divideCeil(shape.back(), kCodesOfByte);
  return RankedTensorType::get(shape, IntegerType::get(type.getContext(), 8),
                               type.getEncoding());
}

Value fp8::castCodes(OpBuilder &b, Type type, Value value) {
  if (!isPacked(value.getType()) && !isPacked(type))
    return value;
  return UnrealizedConversionCastOp::create(b, value.getLoc(), type, value)
      .getResult(0);
}

SmallVector<char> fp8::packCodes(ArrayRef<char> codes, int64_t columns) {
  SmallVector<char> bytes;
  for (; !codes.empty(); codes = codes.drop_front(columns))
    for (int64_t column = 0; column < columns; column += kCodesOfByte) {
      int high = column + 1 < columns ? codes[column + 1] : 0;
      bytes.push_back(static_cast<char>(codes[column] | high << 4));
    }
  return bytes;
}

SmallVector<char> fp8::unpackCodes(ArrayRef<char> bytes, int64_t columns) {
  SmallVector<char> codes;
  for (int64_t column = 0; !bytes.empty(); bytes = bytes.drop_front()) {
    auto both = static_cast<unsigned char>(bytes.front());
    codes.push_back(static_cast<char>(both & 15));
    if (column + 1 < columns)
      codes.push_back(static_cast<char>(both >> 4));
    column = column + kCodesOfByte < columns ? column + kCodesOfByte : 0;
  }
  return codes;
}

//===- PackedCodes.h - Codes of four bits in memory -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Two codes of f4E2M1FN are a byte, on every target and in files: of a row, the
// last dimension, element 2i is the lower half of byte i and element 2i + 1 the
// upper one. Where a row has an odd number, the last upper half is zero.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_PACKEDCODES_H
#define FP8_IR_PACKEDCODES_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::fp8 {

/// Codes in a byte.
inline constexpr int64_t kCodesOfByte = 2;

/// Whether elements of this type, or of this tensor, share bytes.
inline bool isPacked(Type type) {
  return isa<Float4E2M1FNType>(getElementTypeOrSelf(type));
}

/// What a tensor is in memory: itself, or i8 for codes that share bytes. A
/// tensor of no dimensions has its one code in the lower half.
RankedTensorType getStoredType(RankedTensorType type);

/// Codes of f4E2M1FN as they are stored, or the other way round: what
/// convert-fp8-to-linalg makes of the former. Other values as they are.
Value castCodes(OpBuilder &b, Type type, Value value);

/// The bytes of rows of `columns` codes, of which `codes` has one a byte.
SmallVector<char> packCodes(ArrayRef<char> codes, int64_t columns);
/// The converse.
SmallVector<char> unpackCodes(ArrayRef<char> bytes, int64_t columns);

} // namespace mlir::fp8

#endif // FP8_IR_PACKEDCODES_H

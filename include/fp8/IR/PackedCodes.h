//===- PackedCodes.h - Codes that share bytes -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Codes of less than 8 bits share bytes, on every target and in files, in
// groups (fp8rt::CodePacking) along a row, the last dimension. Of f4E2M1FN
// element 2i is the lower half of byte i and element 2i + 1 the upper one. What
// a row's last group has no codes for is zero.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_PACKEDCODES_H
#define FP8_IR_PACKEDCODES_H

#include "fp8/IR/Formats.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::fp8 {

/// How elements of this type, or of this tensor, lie in memory: those that are
/// no codes of a scaled tensor as if they had 8 bits.
fp8rt::CodePacking getPacking(Type type);

/// Whether elements of this type, or of this tensor, share bytes.
inline bool isPacked(Type type) { return getPacking(type).isPacked(); }

/// Whether so many elements of a row are whole groups, or may be.
inline bool isWhole(fp8rt::CodePacking packing, int64_t size) {
  return ShapedType::isDynamic(size) || packing.isWhole(size);
}

/// What rows of whole groups have, for messages: "an even size, of which two
/// codes of f4E2M1FN share a byte".
std::string describeGroups(Type type);

/// The bytes of so many codes of a row; and the codes of so many bytes.
AffineExpr getBytesOf(fp8rt::CodePacking packing, AffineExpr codes);
AffineExpr getCodesOf(fp8rt::CodePacking packing, AffineExpr bytes);

/// What a tensor is in memory: itself, or i8 for codes that share bytes. A
/// tensor of no dimensions has its one code in the lowest bits of a byte.
RankedTensorType getStoredType(RankedTensorType type);

/// Codes that share bytes as they are stored, or the other way round: what
/// convert-fp8-to-linalg makes of the former. Other values as they are.
Value castCodes(OpBuilder &b, Type type, Value value);

/// The bytes of rows of `columns` codes, of which `codes` has one a byte.
SmallVector<char> packCodes(fp8rt::CodePacking packing, ArrayRef<char> codes,
                            int64_t columns);
/// The converse.
SmallVector<char> unpackCodes(fp8rt::CodePacking packing, ArrayRef<char> bytes,
                              int64_t columns);

} // namespace mlir::fp8

#endif // FP8_IR_PACKEDCODES_H

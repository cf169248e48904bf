//===- FP8ToLinalg.h - Patterns of the executable meaning -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_CONVERSION_FP8TOLINALG_FP8TOLINALG_H
#define FP8_CONVERSION_FP8TOLINALG_FP8TOLINALG_H

#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/PackedCodes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Transforms/DialectConversion.h"

namespace mlir::fp8 {

/// Parts of a converted scaled value, in the order of the 1:N conversion.
struct ScaledParts {
  Value payload, scaleInv, tensorScaleInv;

  explicit ScaledParts(ValueRange parts)
      : payload(parts[0]), scaleInv(parts[1]),
        tensorScaleInv(parts.size() > 2 ? parts[2] : Value()) {}
};

/// f32 `value`, already within range, to the code of `elementType`, an i8 where
/// codes share bytes; and a code to f32.
Value encode(OpBuilder &builder, Location loc, Value value, Type elementType);
Value decode(OpBuilder &builder, Location loc, Value code, Type elementType);

/// f32 `value` clamped to +-`limit`; NaN passes.
Value clamp(OpBuilder &builder, Location loc, Value value, float limit);

/// f32 `value`, within the range of f4E2M1FN, to one of its two neighbours
/// there, by the random number that a seed of four words has for the element in
/// `row` and `column` (index): the arithmetic of `fp8.quantize` with a seed.
Value roundStochastically(OpBuilder &builder, Location loc, Value value,
                          ValueRange seed, Value row, Value column);

/// A scalar float of any width up to 32 bits as f32.
Value toF32(OpBuilder &builder, Location loc, Value value);

Value constantF32(OpBuilder &builder, Location loc, float value);

//===--- Codes that share bytes -------------------------------------------===//

/// Codes, an i8 each, as the number of their group, of its bytes' width; and
/// the code at `place` (index) of a group, as an i8.
Value joinCodes(OpBuilder &builder, Location loc, fp8rt::CodePacking packing,
                ValueRange codes);
Value selectCode(OpBuilder &builder, Location loc, fp8rt::CodePacking packing,
                 Value group, Value place);
/// The number of a group from its bytes.
Value joinBytes(OpBuilder &builder, Location loc, ValueRange bytes);

/// What is known of payloads that were converted, beyond their types.
struct Payloads {
  /// What a transposed one, and its factors, are the transposes of: a matmul
  /// reads its operands in any order.
  struct Transposed {
    SmallVector<Value> source;
    SmallVector<int64_t> permutation;
  };
  llvm::DenseMap<Value, Transposed> transposed;
  /// Codes in a row of bytes, where that only shows at run time and may leave
  /// a group incomplete.
  llvm::DenseMap<Value, OpFoldResult> rowSizes;
};

/// Whether the last dimension, whose codes share bytes, is that of the source.
bool keepsRows(TransposeOp op);

/// Whether nothing takes codes away from the operations that know `Payloads`:
/// matmuls and the like, and transposes for these.
bool staysInPlace(Value codes);

/// Sizes of a tensor of `type` that is stored in `stored`. A number of codes in
/// a row that only shows at run time, and is not known, is whole groups.
SmallVector<OpFoldResult> getSizes(OpBuilder &builder, Location loc,
                                   Value stored, RankedTensorType type,
                                   const Payloads *payloads = nullptr);

/// A code in each i8, of what `type` is stored in.
Value unpackCodes(OpBuilder &builder, Location loc, Value stored,
                  RankedTensorType type, const Payloads *payloads = nullptr);
/// The converse, for elements of `type`. Checks that a number of codes that
/// only shows at run time is whole groups, or remembers it.
Value packCodes(OpBuilder &builder, Location loc, Type type, Value codes,
                Payloads *payloads = nullptr);

/// Every element of a scaled value in f32, as the dialect defines it: codes
/// times factors, or the codes alone. `type` is the type before conversion.
Value dequantizeToF32(OpBuilder &builder, Location loc, ScaledParts parts,
                      ScaledType type, bool withFactors,
                      const Payloads &payloads);

/// Grouped matmuls become loops over their groups, an `fp8.matmul` each.
void expandGroupedMatmuls(Operation *root);

//===--- Patterns ---------------------------------------------------------===//

void populateStatePatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns);
void populateStateUpdatePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns);
void populateScalePatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns);
void populateCastPatterns(const TypeConverter &converter, Payloads &payloads,
                          RewritePatternSet &patterns);
void populateLiftPatterns(const TypeConverter &converter,
                          const Payloads &payloads,
                          RewritePatternSet &patterns);
void populateHadamardPatterns(const TypeConverter &converter,
                              RewritePatternSet &patterns);
void populateMatmulPatterns(const TypeConverter &converter,
                            const Payloads &payloads,
                            RewritePatternSet &patterns);
/// Movement of codes that share bytes by operations of other dialects, and
/// constants.
void populatePackedPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns);

} // namespace mlir::fp8

#endif // FP8_CONVERSION_FP8TOLINALG_FP8TOLINALG_H

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

/// Element type that stores a code: i8 for f4E2M1FN, else the type itself.
Type getStorageType(Type elementType);

/// f32 `value`, already within range, to the stored code of `elementType`; and
/// a stored code to f32.
Value encode(OpBuilder &builder, Location loc, Value value, Type elementType);
Value decode(OpBuilder &builder, Location loc, Value code, Type elementType);

/// f32 `value` clamped to +-`limit`; NaN passes.
Value clamp(OpBuilder &builder, Location loc, Value value, float limit);

/// A scalar float of any width up to 32 bits as f32.
Value toF32(OpBuilder &builder, Location loc, Value value);

Value constantF32(OpBuilder &builder, Location loc, float value);

/// Every element of a scaled value in f32, as the dialect defines it: codes
/// times factors, or the codes alone. `type` is the type before conversion.
Value dequantizeToF32(OpBuilder &builder, Location loc, ScaledParts parts,
                      ScaledType type, bool withFactors);

void populateStatePatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns);
void populateStateUpdatePatterns(const TypeConverter &converter,
                                 RewritePatternSet &patterns);
void populateScalePatterns(const TypeConverter &converter,
                           RewritePatternSet &patterns);
void populateCastPatterns(const TypeConverter &converter,
                          RewritePatternSet &patterns);
void populateMatmulPatterns(const TypeConverter &converter,
                            RewritePatternSet &patterns);

} // namespace mlir::fp8

#endif // FP8_CONVERSION_FP8TOLINALG_FP8TOLINALG_H

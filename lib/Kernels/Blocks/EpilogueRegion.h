//===- EpilogueRegion.h - Elementwise regions in kernels --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_EPILOGUEREGION_H
#define FP8_LIB_KERNELS_BLOCKS_EPILOGUEREGION_H

#include "Fragment.h"

namespace mlir::fp8 {

/// A region of elementwise arithmetic on an f32 value and what goes with it,
/// inlined wherever a kernel has such values in registers; and the rounding of
/// what it yields to the result's type.
class EpilogueRegion {
public:
  struct Shape {
    /// Null for a plain rounding.
    Block *body;
    Type resultType;
    /// Whether the region yields a second value, to be measured.
    bool isMeasured;
    /// Values from around the region, constants excepted.
    ArrayRef<Value> captures;
  };

  EpilogueRegion(KernelBuilder &b, Shape shape) : b(b), shape(shape) {}

  /// What the captures are in the kernel, in order.
  void setCaptures(ValueRange values) { captures = llvm::to_vector(values); }
  /// Says that `value`, to be widened to f32, is `wide` without a conversion.
  void setWidened(Value value, Value wide) { widened[value] = wide; }
  void clearWidened() { widened.clear(); }

  /// The f32 result before rounding, and what is measured (may be null).
  std::pair<Value, Value> inlineOn(Value accumulator, ValueRange values);
  /// Rounds one to 16 bits, or leaves it in f32; and what it is then in f32,
  /// null where that takes a conversion.
  std::pair<Value, Value> round(Value value);
  /// Rounds two neighbours: an i32 of two 16-bit floats, an i16 of two 8-bit
  /// ones, or a vector<2xf32>.
  Value pack(Pair values);

  /// Says why the region cannot be inlined, if it cannot.
  static LogicalResult check(const Shape &shape, std::string &reason);

private:
  KernelBuilder &b;
  Shape shape;
  SmallVector<Value> captures;
  llvm::DenseMap<Value, Value> widened;
};

/// A product and a sum may be one instruction, with one rounding less.
void allowContraction(Operation *op);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_EPILOGUEREGION_H

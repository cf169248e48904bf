//===- Softmax.h - The softmax of attention, tile by tile -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_SOFTMAX_H
#define FP8_LIB_KERNELS_SM90_SOFTMAX_H

#include "../Blocks/KernelBuilder.h"
#include "mlir/Support/LLVM.h"

namespace mlir::fp8::sm90 {

/// The softmax of rows whose scores come in tiles of keys, as wgmma's
/// accumulators: a thread has two rows, 8 apart, which it shares with the three
/// other lanes of its quad. Scores are as the tensor core sums them; a factor
/// that is not negative makes them exponents of 2.
class Softmax {
public:
  /// What is known of the keys so far: the largest score, which all lanes of
  /// the quad know, and the sum of this lane's powers.
  struct Rows {
    Value max[2], sum[2];
  };
  /// A window of keys (i32, signed): key `first + column` is visible to row r
  /// from `from[r]` to `to[r]`; null where nothing limits it.
  struct Window {
    Value from[2], to[2];
  };

  /// `factors` are of scores of both rows, `logOfP` the base-2 logarithm of
  /// what the powers are multiplied by. `polynomials` of each 16 powers are
  /// computed by multiplications and additions.
  Softmax(KernelBuilder &b, const Value (&factors)[2], float logOfP,
          int64_t polynomials)
      : b(b), factors{factors[0], factors[1]}, logOfP(logOfP),
        polynomials(polynomials) {}

  Rows getInitial();
  /// Hides scores of keys that are not visible.
  SmallVector<Value> mask(ArrayRef<Value> scores, const Window &window);
  /// The powers of a tile's scores. `rows` become those with it, `corrections`
  /// what sums of earlier powers are multiplied by.
  SmallVector<Value> exponentiate(ArrayRef<Value> scores, Rows &rows,
                                  Value (&corrections)[2]);
  /// The sum of all lanes of the quad.
  Value addLanes(Value sum);
  /// The largest score of a row as an exponent of 2.
  Value getExponent(const Rows &rows, int64_t row) {
    return b.mulF(rows.max[row], factors[row]);
  }
  /// The natural logarithm of the sum of exponentials of a row, from its
  /// largest exponent of 2 and the sum of all its powers.
  static Value getLogSum(KernelBuilder &b, Value exponent, Value sum,
                         float logOfP);
  float getLogOfP() const { return logOfP; }
  /// Adds the power of one more score, the natural `score`, to all of a row's:
  /// changes its largest exponent of 2 and the sum of its powers, and returns
  /// what sums of products are multiplied by.
  static Value addScore(KernelBuilder &b, Value score, Value &exponent,
                        Value &sum, float logOfP);

  /// 2 to the power of `x`, one instruction; the result of a subnormal is 0, or
  /// 1.
  static Value exp2(KernelBuilder &b, Value x);
  /// 0 in place of -inf, from which no finite distance can be told.
  static Value makeFinite(KernelBuilder &b, Value max);

  /// Number of the row, 0 or 1, of accumulator `i`, and its column less that of
  /// the thread's first (PTX ISA, "Register Fragments for m64nNk*").
  static int64_t getRow(int64_t i) { return i / 2 % 2; }
  static int64_t getColumn(int64_t i) { return i / 4 * 8 + i % 2; }

  /// Accumulators, each times its row's factor.
  static SmallVector<Value> scaleRows(KernelBuilder &b, ArrayRef<Value> sums,
                                      const Value (&factors)[2]);

private:
  KernelBuilder &b;
  Value factors[2];
  float logOfP;
  int64_t polynomials;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_SOFTMAX_H

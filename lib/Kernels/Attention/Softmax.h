//===- Softmax.h - The softmax of attention, tile by tile -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_SOFTMAX_H
#define FP8_LIB_KERNELS_ATTENTION_SOFTMAX_H

#include "ScoreLayout.h"
#include "mlir/Support/LLVM.h"

namespace mlir::fp8 {

/// The softmax of rows whose scores come in tiles of keys. Scores are as the
/// tensor core sums them; a factor that is not negative makes them exponents of
/// 2.
class Softmax {
public:
  /// What is known of the keys so far: the largest score, which all lanes that
  /// share the row know, and the sum of this lane's powers.
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
  Softmax(KernelBuilder &b, ScoreLayout layout, const Value (&factors)[2],
          float logOfP, int64_t polynomials)
      : b(b), layout(layout), factors{factors[0], factors[1]}, logOfP(logOfP),
        polynomials(polynomials) {}

  Rows getInitial();
  /// From now on scores have these factors. Largest scores are kept as
  /// exponents of 2 then, which those of tiles with other factors can be
  /// compared with: before the first tile, and each that has its own.
  void setFactors(const Value (&ofTile)[2]) {
    factors[0] = ofTile[0];
    factors[1] = ofTile[1];
    keepsExponents = true;
  }
  /// Hides scores of keys that are not visible.
  SmallVector<Value> mask(ArrayRef<Value> scores, const Window &window);
  /// What a tile's scores make of its rows: what sums of earlier powers are
  /// multiplied by, and what is added to its exponents.
  struct Step {
    Value corrections[2], offsets[2];
    /// Adds a zero (i32) to the bits of offsets, so that powers come after it.
    void addBits(KernelBuilder &b, Value zero);
  };
  /// `rows` have the largest scores with a tile's.
  Step raise(ArrayRef<Value> scores, Rows &rows);
  /// The powers of its scores, which `rows` have in their sums, then. Where
  /// scores may exceed the maxima, `mayBeLarge`, a power of what is too large
  /// or NaN is large or NaN, too, but by no means exact.
  SmallVector<Value> exponentiate(ArrayRef<Value> scores, Rows &rows,
                                  const Step &step, bool mayBeLarge = false);
  /// The sum of all lanes that share the row.
  Value addLanes(Value sum);
  /// The largest score of a row as an exponent of 2.
  Value getExponent(const Rows &rows, int64_t row) {
    return keepsExponents ? rows.max[row] : b.mulF(rows.max[row], factors[row]);
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

  /// What is known of a row once all lanes' powers are added: the largest
  /// exponent of 2, and the sum.
  struct Total {
    Value exponent, sum;
  };
  Total getTotal(const Rows &rows, int64_t row) {
    return {getExponent(rows, row), addLanes(rows.sum[row])};
  }
  static Total getNone(KernelBuilder &b);
  /// What sums of products are multiplied by when two parts of a row's keys are
  /// put together: those before, and those of `added`. `total` becomes that of
  /// both.
  static std::pair<Value, Value> merge(KernelBuilder &b, Total &total,
                                       const Total &added);

  /// 2 to the power of `x`, one instruction; the result of a subnormal is 0, or
  /// 1.
  static Value exp2(KernelBuilder &b, Value x);
  /// 0 in place of -inf, from which no finite distance can be told.
  static Value makeFinite(KernelBuilder &b, Value max);

  /// Accumulators, each times its row's factor.
  static SmallVector<Value> scaleRows(KernelBuilder &b, ScoreLayout layout,
                                      ArrayRef<Value> sums,
                                      const Value (&factors)[2]);

private:
  /// `combine` of the lanes that share a row.
  Value reduceLanes(Value value,
                    llvm::function_ref<Value(Value, Value)> combine);

  KernelBuilder &b;
  ScoreLayout layout;
  Value factors[2];
  float logOfP;
  int64_t polynomials;
  /// Whether the largest scores of rows are exponents of 2.
  bool keepsExponents = false;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_SOFTMAX_H

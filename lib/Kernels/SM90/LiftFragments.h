//===- LiftFragments.h - Codes to what wgmma takes as A ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_LIFTFRAGMENTS_H
#define FP8_LIB_KERNELS_SM90_LIFTFRAGMENTS_H

#include "LiftBytes.h"

namespace mlir::fp8::sm90 {

/// Makes bf16, f16 or E4M3 of codes in the registers of those who multiply
/// them: a thread has rows 16 w + l / 4 and + 8 of each 64, and of each 32
/// bytes of K what an instruction wants of it.
class FragmentLifter {
public:
  /// `slice` is the warpgroup's number among those that share a tile.
  FragmentLifter(const MatmulContext &kernel, Value slice);

  /// Words of a subtile of a stage: four for each instruction.
  static constexpr int64_t kWords = 16;
  /// Instructions of a K block.
  static constexpr int64_t kSteps = kWords / 4;
  /// Those of subtile `subtile`, of block `block` of those of a stage, which is
  /// number `k` of the program's K.
  SmallVector<Value> lift(Value stage, Value k, int64_t block, int64_t subtile);
  /// What sums have to be multiplied with, a power of two.
  float getScale() const;

private:
  /// A value for each of the two rows.
  using Rows = std::array<Value, 2>;
  /// Their words of factors, of K block `k`.
  Rows loadFactors(Value place, Value k);
  /// The bf16, twice, of factor `index` of the words.
  Rows getFactors(const Rows &words, int64_t index);
  /// The same as f32, of codes that are multiplied in f32.
  Rows getWideFactors(const Rows &words, int64_t index);
  /// Whether codes are: products by factors are rounded, or are no bf16.
  bool multipliesWide() const;
  /// Words as what wgmma takes, of pairs of bf16 that are exact.
  void narrow(SmallVectorImpl<Value> &words);
  /// Two f32 times a factor, rounded.
  Value roundProducts(ArrayRef<Value> pair, Value factor);
  SmallVector<Value> liftE4M3(Value place, const Rows &words);
  SmallVector<Value> liftE2M1(Value place, const Rows &words);
  /// To E4M3, by exponents.
  SmallVector<Value> liftToE4M3(Value place, const Rows &exponents);
  /// The same of codes that lie as a thread reads them (LiftArranged.cpp).
  SmallVector<Value> liftArranged(Value place, const Rows &words);
  SmallVector<Value> liftArrangedE4M3(Value place, const Rows &words);
  SmallVector<Value> liftArrangedToE4M3(Value place, const Rows &exponents);
  /// The E4M3 of eight magnitudes, by exponent `step` of a word.
  std::pair<Value, Value> loadEntry(Value exponents, int64_t step);

  const MatmulContext &kernel;
  KernelBuilder &b;
  const LiftLayout &layout;
  ByteLifter bytes;
  /// Where in the first stage the first codes and factors of the thread are.
  Value codes, factors;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_LIFTFRAGMENTS_H

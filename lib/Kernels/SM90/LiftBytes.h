//===- LiftBytes.h - Codes with factors of a byte to bf16 -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_LIFTBYTES_H
#define FP8_LIB_KERNELS_SM90_LIFTBYTES_H

#include "../Blocks/Ring.h"
#include "../Blocks/TileScheduler.h"
#include "MatmulContext.h"

namespace mlir::fp8::sm90 {

/// Writes the bf16, twice, of each factor, before all threads meet.
void buildFactorTable(const MatmulContext &kernel);

/// Copies the factors of packed weights, a word for each row, to the stages of
/// `packed`, which are those of `ring`: all lanes of a warp. Where warps take
/// turns, the blocks of one of them.
void buildLiftFactorProducer(const MatmulContext &kernel,
                             const TileScheduler &scheduler, Ring ring,
                             Ring packed, int64_t turn);

/// Which half of a lane's words has the E8M0 of K block `k`, 0 or 1: two K
/// blocks share a word. Of a row whose factors begin within a word, as every
/// other does where K is an odd multiple of 64, it is the other one. Rows begin
/// at even ones, and a lane has row `lane` / 4 of each 8.
Value getFactorHalf(const MatmulContext &kernel, Value k);

/// What a lane makes of 16 codes that share a factor: two chunks of 8 bf16.
/// Four lanes have a row's.
class ByteLifter {
public:
  explicit ByteLifter(const MatmulContext &kernel);

  /// Where in the words of a unit's rows the lane's factor of K block `k` is.
  Value getPlace(Value k);
  /// Lifts `codes`, words, by `factor`, to `places` behind `place` in shared
  /// memory.
  void lift(Value codes, Value factor, Value place, ArrayRef<Value> places);

  /// The bf16 of a factor, twice.
  Value loadFactor(Value byte);
  /// The words of bf16 that a word of E2M1 becomes, of which either half has a
  /// factor.
  SmallVector<Value> liftE2M1(Value codes, std::array<Value, 2> factors);
  /// Two bf16 times two others, each rounded.
  static Value multiply(KernelBuilder &b, Value lhs, Value rhs);

private:
  /// The words of bf16 that a word of codes becomes.
  SmallVector<Value> liftE4M3(Value codes, Value factor, bool withNaN);
  Value permute(Value low, Value high, int64_t selector);

  const MatmulContext &kernel;
  KernelBuilder &b;
  const LiftLayout &layout;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_LIFTBYTES_H

//===- AttentionStore.h - Results of attention ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONSTORE_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONSTORE_H

#include "../Attention/AttentionRows.h"
#include "AttentionContext.h"

namespace mlir::fp8::sm90 {

/// Stores what a consumer warpgroup has summed of its 64 queries: through
/// shared memory, from where bulk copies clip what is out of bounds.
class AttentionStore {
public:
  /// `group` is the number of the warpgroup.
  AttentionStore(const AttentionContext &kernel, Value group)
      : kernel(kernel), b(kernel.b), spec(kernel.spec), memory(kernel.memory),
        group(group) {}

  /// Divides `sums` by those of the powers, which `rows` has of each lane, or
  /// `totals`, if there are two, of all.
  void store(const AttentionTile &tile, Softmax &softmax, ArrayRef<Value> sums,
             const Softmax::Rows &rows, ArrayRef<Softmax::Total> totals = {});

private:
  /// To shared memory, in the order in which a thread has 8-bit values' sums,
  /// or others'.
  void writeQuads(ArrayRef<Value> numbers);
  void writePairs(ArrayRef<Value> numbers);
  /// The same as codes.
  void writeCodesOfQuads(ArrayRef<Value> numbers);
  void writeCodesOfPairs(ArrayRef<Value> numbers);
  /// Numbers rounded, measured if that is asked for, and times the scale of the
  /// codes that they become.
  SmallVector<Value> scaleForCodes(const AttentionTile &tile,
                                   ArrayRef<Value> numbers);
  void storeLse(const AttentionTile &tile, Softmax &softmax,
                const Softmax::Rows &rows, const Value (&sums)[2],
                const Value (&exponents)[2]);
  /// The first row of this warp in the tile.
  Value getWarpRow() { return b.mul(b.shiftRight(thread, 5), 16); }

  const AttentionContext &kernel;
  KernelBuilder &b;
  const AttentionSpec &spec;
  const AttentionMemory &memory;
  Value group;
  /// Set for the tile that is stored. LLVM does not know their origin: it would
  /// have addresses in registers all through the loop over keys.
  Value thread, lane;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONSTORE_H

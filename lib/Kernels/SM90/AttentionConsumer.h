//===- AttentionConsumer.h - What multiplies in attention -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONCONSUMER_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONCONSUMER_H

#include "../Attention/AttentionParts.h"
#include "../Attention/AttentionPowers.h"
#include "../Attention/AttentionScores.h"
#include "AttentionStore.h"
#include "Wgmma.h"

namespace mlir::fp8::sm90 {

/// Registers that a tile hands on to the next.
struct AttentionState {
  /// Sums of P V, and P of the tile that V is yet to be multiplied with.
  SmallVector<Value> sums, p;
  Softmax::Rows rows;
  /// With promotion, what `sums` are multiplied by before that product is
  /// added.
  Value corrections[2];
  RingPosition k, v;

  SmallVector<Value> pack() const;
  static AttentionState unpack(ValueRange values, size_t sums, size_t p);
};

/// A warpgroup that multiplies: AttentionStep.cpp has what it does with a tile
/// of keys, AttentionConsumer.cpp how it walks them.
class AttentionConsumer {
public:
  explicit AttentionConsumer(const AttentionContext &kernel);
  void build();

private:
  /// Named barriers: 1.. are the warpgroups' own, these their turns, and that
  /// of all of them.
  static constexpr int64_t kFirstTurn = 4, kAllConsumers = 7;

  /// Scores of the tile in stage `stage` of K, not waited for.
  Value multiplyQK(Value stage);
  /// `accumulator` and the product of `p` and stage `stage` of V.
  Value multiplyPV(ArrayRef<Value> p, Value stage, Value accumulator,
                   bool overwrite);
  SmallVector<Value> getRegisters(Value accumulator, int64_t count);
  Value getAccumulator(ArrayRef<Value> registers);
  /// Powers as far as they are rounded before the product that is under way
  /// ends, and then as operands of the next. ptxas does not let operands of a
  /// wgmma be written while others are in flight (C7513).
  SmallVector<Value> round(ArrayRef<Value> powers);
  SmallVector<Value> pack(ArrayRef<Value> rounded);
  /// Powers of tile `number` of keys, with 0 for those that are left out.
  SmallVector<Value> drop(const AttentionTile &tile, Value number,
                          ArrayRef<Value> powers);
  /// With the factors of a tile's scores.
  void setSoftmax(const AttentionTile &tile);
  /// The factor of the block of `name`, "k" or "v", that tile `number` of keys
  /// is of; null where there is none.
  Value loadFactor(const AttentionTile &tile, StringRef name, Value number);
  /// Has the softmax multiply scores by a tile's factor, unless it is given
  /// exponents: then `scores` times it.
  SmallVector<Value> takeFactor(ArrayRef<Value> scores, Value factor);
  /// The rows that are this thread's, or the last ones, if there is a mask.
  SmallVector<AttentionRow> getMaskedRows(const AttentionTile &tile);
  /// Writes zeros over the last tile's values that a batch's own keys end
  /// before, and over the first tile's before these begin: they may be
  /// anything, and a power of 0 times NaN is NaN.
  void hideLastValues(const AttentionTile &tile, RingPosition at);
  void hideFirstValues(const AttentionTile &tile, RingPosition at);
  /// Over those of which `isHidden` says so, if `hides` (i1).
  void hideValues(RingPosition at, Value hides,
                  llvm::function_ref<Value(Value row)> isHidden);

  AttentionState begin(const AttentionTile &tile, RingPosition k,
                       RingPosition v);
  AttentionState step(const AttentionTile &tile, Value number,
                      AttentionState state, bool masked);
  /// Tiles from the last but one down to the first.
  AttentionState walk(const AttentionTile &tile, AttentionState state);
  /// All keys; in an invariant operation of many queries chunk by chunk, of
  /// which `totals` has what is known of both rows.
  AttentionState walkAll(const AttentionTile &tile, RingPosition at,
                         SmallVector<Softmax::Total> &totals);
  /// What a step makes of its scores, of the product under way, and of `state`:
  /// by the maxima of the tile, or by those before unless a power is too large.
  void exponentiate(const AttentionTile &tile, Value number,
                    AttentionState &state, ArrayRef<Value> scores,
                    Value ofValues);
  void exponentiateUnlessLarge(AttentionState &state, ArrayRef<Value> scores,
                               Value ofValues);
  /// Adds the last product.
  void finish(const AttentionTile &tile, AttentionState &state);
  /// The product of P and V, for now added to the sums unless these are
  /// promoted; and the sums with it, times `factor` if blocks of values have
  /// some, once it is there. `others` (i32) are what only that orders after it.
  Value multiplyValues(AttentionState &state);
  void add(AttentionState &state, Value product, Value factor,
           SmallVectorImpl<Value> &others);
  /// Gives a stage of K back once the softmax is computed: it depends on its
  /// sums, which have no sign. ptxas would otherwise have the wait for the
  /// product of P and V before the exponentials that run beside it. Returns
  /// that sign, 0 (i32).
  Value releaseAfter(Value stage, const Softmax::Rows &rows);

  /// Warpgroups issue the products of a tile of keys in turn; each waits at a
  /// barrier of its own for the one before.
  bool takesTurns() const {
    return config.getTurn() != AttentionTurn::None && config.getConsumers() > 1;
  }
  void waitForTurn();
  void giveTurn(AttentionTurn when);
  /// A zero (i32) that ptxas neither knows nor loads before the turn is given:
  /// it would give that later than the program does.
  Value loadZeroBehindTurn();
  /// Gives the turn with the maxima, all powers behind it: ptxas would mix
  /// powers of a thread's first row with maxima of its second.
  void giveTurnBeforePowers(Softmax::Step &step);

  bool keepsMaxima() const {
    return config.getMaxima() == AttentionMaxima::Overflow;
  }
  bool promotes() const { return spec.accumulate == Accumulate::Promote; }

  const AttentionContext &kernel;
  KernelBuilder &b;
  const AttentionSpec &spec;
  AttentionConfigAttr config;
  const AttentionMemory &memory;
  Ring ringOfQ, ringOfK, ringOfV;
  WgmmaInstruction qk, pv;
  /// Number of the warpgroup.
  Value group;
  /// Descriptors (i64) of Q, and of stage 0 of K and of V.
  Value descriptorQ, descriptorK, descriptorV;
  /// The matrix that V is read from.
  const SharedMatrix &values;
  int64_t offsetOfValues;
  std::optional<Softmax> softmax;
  /// What the softmax multiplies scores of both rows by.
  Value factors[2];
  /// Factors of scores but for those of keys, if blocks of these have some.
  Value factorsOfRows[2];
  std::optional<AttentionScores> capAndMask;
  std::optional<AttentionDropout> dropout;
  AttentionStore store;
  /// In place of it for few queries.
  AttentionParts parts;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONCONSUMER_H

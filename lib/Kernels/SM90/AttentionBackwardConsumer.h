//===- AttentionBackwardConsumer.h - Who multiplies -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDCONSUMER_H
#define FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDCONSUMER_H

#include "../Attention/SoftmaxGradient.h"
#include "../Blocks/Hazards.h"
#include "AttentionBackwardContext.h"
#include "Wgmma.h"

namespace mlir::fp8::sm90 {

/// What a step hands on to the next.
struct BackwardState {
  /// Sums for dK and dV.
  SmallVector<Value> dk, dv;
  /// P and G of the step, as first operands.
  SmallVector<Value> p, g;
  /// Where it was, in the rings of queries and of G.
  RingPosition at, scores;
  BackwardStep step;
  /// With ranges, whether its queries see some of the keys (i32).
  Value isSeen;
  /// Where the sums for dQ go next.
  RingPosition added;

  SmallVector<Value> pack() const;
  BackwardState unpack(ValueRange values) const;
};

/// A warpgroup that multiplies: AttentionBackwardScores.cpp has its products
/// and scores, AttentionBackwardConsumer.cpp its steps and results.
class BackwardConsumer : SoftmaxGradient {
public:
  explicit BackwardConsumer(const AttentionBackwardContext &kernel);
  void build();

private:
  //===--- Products, none of which is waited for --------------------------===//

  /// Descriptors, made anew in each step: those of all instructions would be in
  /// registers, or in memory for want of these, all through the loop.
  void setDescriptors();
  /// The same value, but nothing that is computed of it is kept in registers
  /// through the loop where accumulators leave few.
  Value renewInLoop(Value value) {
    return tileQ == 128 ? launder(b, value) : value;
  }

  Value multiplyScores(Value stage);
  Value multiplyGrads(Value stage);
  /// `sums` and the product of `words` and a stage of `matrix`.
  Value addProduct(const WgmmaInstruction &instruction, ArrayRef<Value> words,
                   const SharedMatrix &matrix, Value descriptor, Value stage,
                   ArrayRef<Value> sums);
  Value multiplyQueries(Value stage);

  //===--- Scores ---------------------------------------------------------===//

  /// Number `which` of the row of each accumulator's query.
  SmallVector<Value> loadRows(Value stage, int64_t which);
  /// P, with a sign where it is left out; `slopes` become those of a cap,
  /// rounded as P is.
  SmallVector<Value> exponentiate(ArrayRef<Value> scores, BackwardStep step,
                                  Value stage, ArrayRef<Value> dropped,
                                  SmallVector<Value> &slopes);
  SmallVector<Value> exponentiateBent(ArrayRef<Value> scores,
                                      ArrayRef<Value> offsets,
                                      ArrayRef<Value> dropped,
                                      SmallVector<Value> &slopes);
  /// Which shares of a step are left out, a bit for each: made where there are
  /// registers for it.
  SmallVector<Value> drawDropped(BackwardStep step);
  /// Gives powers of a step, from number `first` on, the sign of those.
  void drop(MutableArrayRef<Value> powers, size_t first,
            ArrayRef<Value> dropped);
  SmallVector<Value> exponentiateSome(ArrayRef<Value> scores,
                                      ArrayRef<Value> offsets,
                                      ArrayRef<Value> dropped);
  SmallVector<Value> mask(ArrayRef<Value> scores, BackwardStep step);
  SmallVector<Value> maskByRanges(ArrayRef<Value> scores, Value stage);
  /// `isSeen` of a step.
  Value findSeen(Value stage);
  /// G, from P and slopes as they were rounded: two copies would not fit.
  SmallVector<Value> differentiate(ArrayRef<Value> p, ArrayRef<Value> slopes,
                                   ArrayRef<Value> products, Value stage);
  /// First operands of the next step's products. ptxas does not let these be
  /// written while others are in flight (C7513): words that were made then are
  /// copied by an operation that it does not see through.
  SmallVector<Value> renew(ArrayRef<Value> words);
  /// The same of P, with zeros for those that are left out.
  SmallVector<Value> renewKept(ArrayRef<Value> words);
  /// Writes G to a stage of the scores, a row for each key.
  void leave(ArrayRef<Value> words, Value stage);
  void announce(Value stage);

  //===--- Results --------------------------------------------------------===//

  /// Adds a step's part of dQ in global memory, `isSeen` as the state's.
  void add(ArrayRef<Value> sums, BackwardStep step, Value isSeen,
           RingPosition at);
  void store(ArrayRef<Value> sums, Value factor, const SharedMatrix &matrix,
             int64_t offset, StringRef map);

  BackwardState begin();
  BackwardState next(BackwardState state);
  void finish(BackwardState &state);
  void release(const BackwardState &state);

  const AttentionBackwardContext &kernel;
  const AttentionBackwardMemory &memory;
  const AttentionBackwardTiles &tiles;
  int64_t tileQ;
  WgmmaInstruction scoresOf, gradsOf, toV, toK, toQ;
  /// Number of the warpgroup.
  Value group;
  /// Descriptors (i64): K and V, K with rows as K, first stages of Q and of the
  /// gradient in either order, and of the scores for dQ.
  Value ofK, ofV, ofWholeK, ofQ, ofQRows, ofGrad, ofGradRows, ofScores;
  /// A zero that ptxas does not know.
  Value zero;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_ATTENTIONBACKWARDCONSUMER_H

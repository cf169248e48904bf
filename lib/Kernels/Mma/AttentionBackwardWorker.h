//===- AttentionBackwardWorker.h - A block of its gradients -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MMA_ATTENTIONBACKWARDWORKER_H
#define FP8_LIB_KERNELS_MMA_ATTENTIONBACKWARDWORKER_H

#include "../Attention/AttentionBackwardTiles.h"
#include "../Attention/SoftmaxGradient.h"
#include "AttentionBackwardMemory.h"
#include "MatrixLoader.h"
#include "RowCopies.h"

namespace mlir::fp8::mma {

/// What is computed and how, where it lies, and which thread this is.
struct AttentionBackwardContext {
  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  AttentionConfigAttr config;
  const AttentionBackwardMemory &memory;
  const llvm::StringMap<Value> &params;
  /// Dynamic shared memory.
  Value shared;
  Value thread, warp, lane;

  Value getParam(StringRef name) const { return params.lookup(name); }
  /// Number `stage` of tiles of `matrix` that begin at `offset`.
  Value getPlace(const SwizzledMatrix &matrix, int64_t offset,
                 Value stage) const {
    return b.add(b.mul(stage, llvm::alignTo(matrix.getBytes(), 1024)), offset);
  }
  /// The factor of Q, K or V, null if it has none.
  Value getFactor(StringRef name) const {
    Value pointer = getParam((name + "_scale.ptr").str());
    return pointer ? b.loadConstant(pointer, b.getF32Type()) : Value();
  }
};

/// A block of one part, whose warps have 16 rows each.
class BackwardWorker : SoftmaxGradient {
public:
  BackwardWorker(const AttentionBackwardContext &kernel, BackwardPart part);
  /// `block` is its number among those of the part (i32).
  void build(Value block);

private:
  /// Registers that a step hands on to the next: sums of scores' gradients, and
  /// of powers, of which a part may have none, and the stage.
  struct State {
    SmallVector<Value> ofScores, ofPowers;
    Value stage;

    SmallVector<Value> pack() const;
    State unpack(ValueRange values) const;
  };
  /// A tile of columns, and the head of Q.
  struct Step {
    Value head, tile;
  };

  //===--- Which rows, and which columns ----------------------------------===//

  void beginKeys(Value block);
  void beginQueries(Value block);
  Step getStep(Value number) const;
  /// The first column of a step.
  Value getColumn(Step step) const {
    return b.mul(step.tile, kernel.config.getTileK());
  }
  Value getHeadOfK(Value head) const {
    return b.div(head, spec.heads / spec.headsOfK);
  }

  //===--- Copies ---------------------------------------------------------===//

  /// Copies rows of tensor `name` from `first` on to byte `place`.
  void copy(StringRef name, Type type, Value head, Value first, Value extent,
            const SwizzledMatrix &matrix, Value place) const;
  void copyRows() const;
  /// Copies columns of step `number`, if there is one, and ends a group.
  void copyColumns(Value number, Value stage) const;
  void copyNumbers(Step step, Value stage) const;
  /// Byte `place` of the numbers of a stage.
  Value getNumbers(Value stage, int64_t which) const;

  //===--- Products -------------------------------------------------------===//

  /// The product of rows and a stage of columns: of Q and K, or of the gradient
  /// and V.
  SmallVector<Value> multiply(int64_t which, Value stage);
  /// Adds that of words of an operand and columns, whose lines are K.
  void add(int64_t which, ArrayRef<Value> words, Value stage,
           MutableArrayRef<Value> sums);
  State step(Value number, State state);
  State walk();

  //===--- Scores ---------------------------------------------------------===//

  /// Numbers of queries for each score of a thread: those of its rows, or of a
  /// stage of columns.
  SmallVector<Value> getExponents(Value stage);
  SmallVector<Value> getDeltas(Value stage);
  SmallVector<Value> loadNumbers(Value stage, int64_t which,
                                 llvm::function_ref<Value(Value)> change);
  /// Loads those of the thread's rows.
  void loadRows();
  Value makeExponent(Value lse) const;
  /// Hides scores of keys that queries do not see.
  SmallVector<Value> mask(ArrayRef<Value> scores, Step step, Value stage);
  SmallVector<Value> maskByWindow(ArrayRef<Value> scores, Step step);
  SmallVector<Value> maskByRanges(ArrayRef<Value> scores, Value stage);
  /// Whether some keys are hidden from some of the warp's rows.
  Value hides(Step step) const;
  /// Powers as words of an operand, negative where they are left out, and what
  /// gradients of scores are multiplied by with a cap.
  SmallVector<Value> exponentiate(ArrayRef<Value> scores, Step step,
                                  Value stage, SmallVector<Value> &slopes);
  void drop(MutableArrayRef<Value> powers, Step step) const;
  /// The words of powers without those that are left out.
  SmallVector<Value> getKept(ArrayRef<Value> words) const;
  /// Gradients of scores as words.
  SmallVector<Value> differentiate(ArrayRef<Value> p, ArrayRef<Value> slopes,
                                   ArrayRef<Value> products, Value stage);

  void store(StringRef name, ArrayRef<Value> sums, Value factor) const;

  const AttentionBackwardContext &kernel;
  const AttentionBackwardMemory &memory;
  BackwardPart part;
  AttentionBackwardTiles tiles;
  Mma mma;
  SmallVector<MatrixLoader> rows, columns, lines;
  /// The first row and how many rows and columns there are; the head of Q or K
  /// that rows are of, the first head of Q, and tiles of columns of each.
  Value firstRow, rowsThere, columnsThere;
  Value headOfRows, firstHead, firstTile, tilesOfHead, steps;
  /// Exponents and deltas of both rows of a thread that are queries.
  Value exponents[2], deltas[2];
  BackwardKeys ranges[2];
};

} // namespace mlir::fp8::mma

#endif // FP8_LIB_KERNELS_MMA_ATTENTIONBACKWARDWORKER_H

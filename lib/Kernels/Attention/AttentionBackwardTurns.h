//===- AttentionBackwardTurns.h - Who adds to dQ, and when ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDTURNS_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDTURNS_H

#include "AttentionBackwardBlock.h"

#include <optional>

namespace mlir::fp8 {

/// A warp that gives turns to those of its block that add to dQ: in the order
/// of the blocks' keys.
class AttentionBackwardTurns {
public:
  /// `added` has a stage for each step whose sums are on their way: empty when
  /// it is the block's turn, and full when all is added. This is warp `part`
  /// of `enders`, which take turns as well.
  AttentionBackwardTurns(const AttentionBackwardBlock &block, Ring added,
                         int64_t part, int64_t enders)
      : block(block), b(block.b), spec(block.spec), tiles(block.tiles),
        added(added), part(part), enders(enders) {}
  virtual ~AttentionBackwardTurns() = default;

  /// Gives turns, and ends tiles that this block adds to last.
  void endInOrder();
  /// Clears tiles whose queries see no key: blocks of a head share these out.
  void clearUnseen();

protected:
  /// Makes a tile of the result once all have added to it.
  virtual void storeTile(BackwardStep step, Value number) = 0;
  virtual void clearTile(BackwardStep step, Value number) = 0;

  /// Where queries see some of the keys: without ranges those of all steps do.
  void ifSeen(BackwardKeys keys, llvm::function_ref<void()> body) {
    if (spec.hasKeyRanges)
      b.ifThen(tiles.sees(keys), body);
    else
      body();
  }
  /// Lets those that multiply add, once all blocks before this one have; the
  /// keys of the step's queries may be known.
  void waitForTurn(BackwardStep step, RingPosition at,
                   std::optional<BackwardKeys> known = std::nullopt);
  /// Counts this block, too, at a tile that those `before` it have added to.
  void count(Value number, Value before, Value isLast);
  /// For all blocks.
  void fence() {
    LLVM::FenceOp::create(b, LLVM::AtomicOrdering::acq_rel, "device");
  }
  Value getCounter(Value number) {
    return b.element(block.getParam("counters.ptr"), b.widen(number),
                     b.getI32Type());
  }
  /// Where the result has column `column` (i32) of query `query` (i32).
  Value getResult(BackwardStep step, Value query, Value column) {
    return getResultOf(block, step, query, column);
  }

  const AttentionBackwardBlock &block;
  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  const AttentionBackwardTiles &tiles;
  Ring added;
  int64_t part, enders;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONBACKWARDTURNS_H

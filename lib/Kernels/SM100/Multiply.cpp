//===- Multiply.cpp - The thread that issues products ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Blocks/BulkCopy.h"
#include "Roles.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

namespace {
/// Factors of a stage: from the ring in shared memory to tensor memory, behind
/// the sums.
struct ScaleFactorCopies {
  ScaleFactorCopies(const MatmulContext &kernel, const Tcgen05 &tensorCore,
                    Value base)
      : b(kernel.b), layout(kernel.layout), tensorCore(tensorCore) {
    rows =
        Tcgen05::getFactorDescriptor(b, b.add(base, layout.offsetRowFactors));
    cols =
        Tcgen05::getFactorDescriptor(b, b.add(base, layout.offsetColFactors));
    places.a = b.add(kernel.memory, layout.getFirstFactorColumn());
    places.b = b.add(places.a,
                     layout.rowFactors * layout.factorSteps * kFactorColumns);
    places.stepA = layout.rowFactors * kFactorColumns;
    places.stepB = layout.colFactors * kFactorColumns;
  }

  void copy(Value stage) {
    // Other threads have written them: not by bulk copies.
    fenceForBulkCopies(b);
    int64_t steps = layout.factorSteps, stride = layout.getFactorStride();
    // In tensor memory those of an instruction are side by side.
    auto copyAtoms = [&](Value descriptor, Value place, int64_t atoms) {
      Value first =
          Tcgen05::advance(b, descriptor, b.mul(stage, atoms * steps * stride));
      for (int64_t i = 0; i < atoms; ++i)
        for (int64_t step = 0; step < steps; ++step)
          tensorCore.copyFactors(
              b, b.add(place, (step * atoms + i) * kFactorColumns),
              Tcgen05::advance(b, first, b.i32((i * steps + step) * stride)));
    };
    copyAtoms(rows, places.a, layout.rowFactors);
    copyAtoms(cols, places.b, layout.colFactors);
  }

  KernelBuilder &b;
  const MatmulLayout &layout;
  const Tcgen05 &tensorCore;
  Value rows, cols;
  Tcgen05::Factors places;
};

/// Products of one stage of the ring after the other.
class Multiplier {
public:
  Multiplier(const MatmulContext &kernel, Ring ring, Ring accumulators);

  /// Either moves both positions, {stage, phase, set of sums, phase}, past the
  /// tile's.
  SmallVector<Value> sumTile(const Tile &tile, ValueRange carried);
  SmallVector<Value> sumBlocks(const Tile &tile, ValueRange carried);

private:
  /// Where the sums of a set that has been taken go.
  Value beginSums(RingPosition sums);
  /// Waits for a stage, multiplies it, and gives it back when it has been read.
  RingPosition multiply(RingPosition at, Value address, Value accumulates);

  const MatmulContext &kernel;
  KernelBuilder &b;
  const MatmulLayout &layout;
  Ring ring, accumulators;
  Tcgen05 tensorCore;
  Value rows, cols;
  std::optional<ScaleFactorCopies> factors;
};
} // namespace

Multiplier::Multiplier(const MatmulContext &kernel, Ring ring,
                       Ring accumulators)
    : kernel(kernel), b(kernel.b), layout(kernel.layout), ring(ring),
      accumulators(accumulators),
      tensorCore(layout.rows, layout.cols, kernel.config.getCols(),
                 kernel.spec.isMicroscaled() ? kernel.spec.a.getFactorK() : 0,
                 kernel.config.getCtaGroup()) {
  Value base = LLVM::PtrToIntOp::create(b, b.getI32Type(), kernel.shared);
  rows = Tcgen05::getDescriptor(b, layout.rows, b.add(base, layout.offsetRows));
  cols = Tcgen05::getDescriptor(b, layout.cols, b.add(base, layout.offsetCols));
  if (kernel.spec.isMicroscaled())
    factors.emplace(kernel, tensorCore, base);
}

Value Multiplier::beginSums(RingPosition sums) {
  accumulators.waitEmpty(sums);
  fenceAfterSync(b);
  // Who takes them waits for the other phase.
  return kernel.getSums({sums.stage, b.bitXor(sums.phase, b.i32(1))});
}

RingPosition Multiplier::multiply(RingPosition at, Value address,
                                  Value accumulates) {
  ring.waitFull(at);
  if (factors)
    factors->copy(at.stage);
  tensorCore.multiply(
      b, address,
      Tcgen05::advance(b, rows, b.mul(at.stage, layout.rows.getBytes())),
      Tcgen05::advance(b, cols, b.mul(at.stage, layout.cols.getBytes())),
      accumulates, factors ? factors->places : Tcgen05::Factors());
  tensorCore.commit(b, ring.getEmptyBarrier(at.stage));
  return ring.advance(at);
}

SmallVector<Value> Multiplier::sumTile(const Tile &tile, ValueRange carried) {
  RingPosition sums{carried[2], carried[3]};
  Value address = beginSums(sums);
  SmallVector<Value> after =
      b.loop(tile.kBegin, tile.kEnd, b.i32(1), carried.take_front(2),
             [&](Value k, ValueRange carried) -> SmallVector<Value> {
               Value accumulates =
                   b.bitXor(b.equal(k, tile.kBegin), b.i1(true));
               RingPosition next =
                   multiply({carried[0], carried[1]}, address, accumulates);
               return {next.stage, next.phase};
             });
  tensorCore.commit(b, accumulators.getFullBarrier(sums.stage));
  RingPosition next = accumulators.advance(sums);
  return {after[0], after[1], next.stage, next.phase};
}

SmallVector<Value> Multiplier::sumBlocks(const Tile &tile, ValueRange carried) {
  return b.loop(tile.kBegin, tile.kEnd, b.i32(1), carried,
                [&](Value, ValueRange carried) -> SmallVector<Value> {
                  RingPosition sums{carried[2], carried[3]};
                  Value address = beginSums(sums);
                  RingPosition after =
                      multiply({carried[0], carried[1]}, address, b.i1(false));
                  tensorCore.commit(b, accumulators.getFullBarrier(sums.stage));
                  RingPosition next = accumulators.advance(sums);
                  return {after.stage, after.phase, next.stage, next.phase};
                });
}

void sm100::buildMultiplier(const MatmulContext &kernel,
                            const TileScheduler &scheduler, Ring ring,
                            Ring accumulators) {
  KernelBuilder &b = kernel.b;
  Multiplier multiplier(kernel, ring, accumulators);
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(0), b.i32(0), b.i32(1)},
         [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           return kernel.layout.isPromoted()
                      ? multiplier.sumBlocks(tile, carried)
                      : multiplier.sumTile(tile, carried);
         });
}

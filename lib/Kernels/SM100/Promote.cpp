//===- Promote.cpp - Sums of K blocks, added up in registers --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The tensor core multiplies factors of a byte alone. Where others change along
// K, each K block has a set of sums to itself, and while the next ones are
// computed, warpgroups take it, multiply it by the block's factors, and add it
// to sums in registers. A thread has a row, and some of its columns.
//
//===----------------------------------------------------------------------===//

#include "../Blocks/Fragment.h"
#include "../Blocks/Hazards.h"
#include "Tcgen05.h"
#include "TileAccumulators.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

/// Columns that are taken at a time: their registers are beside all sums.
static constexpr int64_t kTakenCols = 16;

/// Up to so many instructions of the epilogue for an element, each part of a
/// tile has code of its own: its sums need not move.
static constexpr int64_t kMaxUnrolled = 4;

/// Blackwell multiplies and adds two numbers with an instruction, rounding
/// each.
static VectorType getPairType(KernelBuilder &b) {
  return VectorType::get({2}, b.getF32Type());
}

static Value packPair(KernelBuilder &b, Pair pair) {
  Value packed = LLVM::UndefOp::create(b, getPairType(b));
  for (int64_t i = 0; i < 2; ++i)
    packed = LLVM::InsertElementOp::create(b, packed, pair[i], b.i32(i));
  return packed;
}

/// sums + terms * factor, which is a pair, too.
static Pair addPair(KernelBuilder &b, Pair terms, Value factor, Pair sums) {
  Value added = LLVM::FMAOp::create(b, getPairType(b), packPair(b, terms),
                                    factor, packPair(b, sums));
  return {LLVM::ExtractElementOp::create(b, added, b.i32(0)),
          LLVM::ExtractElementOp::create(b, added, b.i32(1))};
}

namespace {
class PromotedAccumulators : public TileAccumulators {
public:
  PromotedAccumulators(const MatmulContext &kernel, Ring accumulators,
                       Ring scales, Value group)
      : TileAccumulators(kernel, accumulators, group), scales(scales),
        cols(config.getCols() / config.getEpilogueWarpgroups()),
        firstCol(b.mul(group, cols)),
        rowSpec(config.getSwapAb() ? kernel.spec.b : kernel.spec.a),
        colSpec(config.getSwapAb() ? kernel.spec.a : kernel.spec.b) {}

  SmallVector<Value> begin() const override {
    return SmallVector<Value>(4, b.i32(0));
  }
  SmallVector<Value> take(const Tile &tile, ValueRange state,
                          Finish finish) override;

private:
  /// What becomes of the sums of all K blocks.
  void finishChunks(ValueRange sums, Finish finish);
  /// A K block's, added to `sums`.
  SmallVector<Value> add(ValueRange sums, RingPosition at, Value scaleStage);
  /// The thread's row's, twice.
  Value loadRowFactor(Value scaleStage);
  /// That of all of the warpgroup's columns, twice.
  Value loadBlockFactor(Value scaleStage);
  /// Those of some columns, from one of the warpgroup's on, in pairs.
  SmallVector<Value> loadColFactors(Value scaleStage, int64_t first,
                                    int64_t count);
  /// `offset` is in bytes, i32.
  Value getScales(int64_t begin, int64_t stride, Value stage, Value offset);

  Ring scales;
  /// The warpgroup's columns.
  int64_t cols;
  Value firstCol;
  const OperandSpec &rowSpec, &colSpec;
};
} // namespace

Value PromotedAccumulators::getScales(int64_t begin, int64_t stride,
                                      Value stage, Value offset) {
  return b.offset(kernel.shared,
                  b.add(b.add(b.mul(stage, stride), begin), offset));
}

Value PromotedAccumulators::loadRowFactor(Value scaleStage) {
  // A tile's rows are within one block.
  Value row = rowSpec.scale == ScaleBlock::Block128
                  ? b.i32(0)
                  : b.bitAnd(kernel.thread, 127);
  Value factor = b.load(getScales(layout.offsetRowScales, layout.rowScaleStride,
                                  scaleStage, b.mul(row, 4)),
                        b.getF32Type());
  return packPair(b, {factor, factor});
}

Value PromotedAccumulators::loadBlockFactor(Value scaleStage) {
  Value factor = b.load(getScales(layout.offsetColScales, layout.colScaleStride,
                                  scaleStage, b.mul(b.div(firstCol, 128), 4)),
                        b.getF32Type());
  return packPair(b, {factor, factor});
}

SmallVector<Value> PromotedAccumulators::loadColFactors(Value scaleStage,
                                                        int64_t first,
                                                        int64_t count) {
  SmallVector<Value> factors;
  Value begin = getScales(layout.offsetColScales, layout.colScaleStride,
                          scaleStage, b.mul(firstCol, 4));
  Type four = VectorType::get({4}, b.getF32Type());
  for (int64_t i = 0; i < count; i += 4) {
    Value loaded = b.load(b.offset(begin, b.i32((first + i) * 4)), four);
    auto get = [&](int64_t element) -> Value {
      return LLVM::ExtractElementOp::create(b, loaded, b.i32(element));
    };
    factors.push_back(packPair(b, {get(0), get(1)}));
    factors.push_back(packPair(b, {get(2), get(3)}));
  }
  return factors;
}

SmallVector<Value> PromotedAccumulators::add(ValueRange sums, RingPosition at,
                                             Value scaleStage) {
  bool isPerBlock = colSpec.scale == ScaleBlock::Block128;
  Value rowFactor = loadRowFactor(scaleStage);
  Value ofBlock;
  if (isPerBlock)
    ofBlock = b.mulF(rowFactor, loadBlockFactor(scaleStage));
  Value address = b.add(getAddress(at), firstCol);
  int64_t taken = std::min(cols, kTakenCols);
  while (cols % taken != 0)
    taken /= 2;
  SmallVector<Value> results;
  for (int64_t first = 0; first < cols; first += taken) {
    SmallVector<Value> terms =
        loadColumns(b, MemoryColumns{b.add(address, first), taken});
    // The next products begin while the last ones are added.
    if (first + taken == cols)
      release(at.stage);
    SmallVector<Value> ofCols;
    if (!isPerBlock)
      ofCols = loadColFactors(scaleStage, first, taken);
    SmallVector<Value> added;
    for (int64_t i = 0; i < taken; i += 2) {
      Value factor = isPerBlock ? ofBlock : b.mulF(rowFactor, ofCols[i / 2]);
      llvm::append_range(added,
                         addPair(b, Pair{terms[i], terms[i + 1]}, factor,
                                 Pair{sums[first + i], sums[first + i + 1]}));
    }
    llvm::append_range(results, pinHere(b, added));
  }
  return results;
}

void PromotedAccumulators::finishChunks(ValueRange sums, Finish finish) {
  int64_t chunkCols = layout.chunkCols;
  if (kernel.spec.getEpilogueInstructions() <= kMaxUnrolled) {
    for (int64_t chunk = 0; chunk < cols / chunkCols; ++chunk)
      finish(b.add(firstCol, chunk * chunkCols), b.i32(chunk),
             sums.slice(chunk * chunkCols, chunkCols));
    return;
  }
  // One copy of the code for all chunks: sums move to where it expects them.
  b.loopRolled(b.i32(0), b.i32(cols / chunkCols), b.i32(1), sums,
               [&](Value chunk, ValueRange carried) -> SmallVector<Value> {
                 finish(b.add(firstCol, b.mul(chunk, chunkCols)), chunk,
                        carried.take_front(chunkCols));
                 SmallVector<Value> next(carried.drop_front(chunkCols));
                 // After the last chunk, it does not matter.
                 llvm::append_range(next, carried.take_front(chunkCols));
                 return next;
               });
}

SmallVector<Value> PromotedAccumulators::take(const Tile &tile,
                                              ValueRange state, Finish finish) {
  SmallVector<Value> carried(cols, b.f32(0.0f));
  llvm::append_range(carried, state);
  carried = b.loop(tile.kBegin, tile.kEnd, b.i32(1), carried,
                   [&](Value, ValueRange carried) -> SmallVector<Value> {
                     RingPosition at{carried[cols], carried[cols + 1]},
                         scalesAt{carried[cols + 2], carried[cols + 3]};
                     scales.waitFull(scalesAt);
                     accumulators.waitFull(at);
                     fenceAfterSync(b);
                     SmallVector<Value> next =
                         add(carried.take_front(cols), at, scalesAt.stage);
                     // All lanes have read their factors.
                     NVVM::SyncWarpOp::create(b, b.i32(-1));
                     scales.release(scalesAt.stage, kernel.lane);
                     RingPosition after = accumulators.advance(at),
                                  scalesAfter = scales.advance(scalesAt);
                     next.append({after.stage, after.phase, scalesAfter.stage,
                                  scalesAfter.phase});
                     return next;
                   });
  finishChunks(ArrayRef(carried).take_front(cols), finish);
  return SmallVector<Value>(ArrayRef(carried).drop_front(cols));
}

std::unique_ptr<TileAccumulators>
sm100::createPromotedAccumulators(const MatmulContext &kernel,
                                  Ring accumulators, Ring scales, Value group) {
  return std::make_unique<PromotedAccumulators>(kernel, accumulators, scales,
                                                group);
}

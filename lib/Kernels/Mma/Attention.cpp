//===- Attention.cpp - The attention kernel by mma.sync -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// All warps of a block do the same, each for 16 queries: they copy tiles of
// keys and values to a ring in shared memory, from the last to the first, and
//
//   S = Q K;  P = softmax(S);  O is scaled;  O += P V
//
//===----------------------------------------------------------------------===//

#include "../Attention/AttentionPowers.h"
#include "../Attention/AttentionScores.h"
#include "../Blocks/ExpandCodes.h"
#include "../Blocks/Hazards.h"
#include "AttentionGenerator.h"
#include "AttentionProducts.h"
#include "AttentionTileLoads.h"
#include "RowCopies.h"

#include <cmath>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

namespace {
class AttentionWorker {
public:
  explicit AttentionWorker(const AttentionContext &kernel)
      : kernel(kernel), b(kernel.b), spec(kernel.spec),
        stages(kernel.config.getStages()), products(kernel) {
    if (spec.dropThreshold)
      dropout.emplace(b, kernel.getParam("dropout.ptr"), spec.dropThreshold);
  }
  void build();

private:
  /// Registers that a tile of keys hands on to the next.
  struct State {
    SmallVector<Value> sums;
    Softmax::Rows rows;
    Value stage;

    SmallVector<Value> pack() const;
    static State unpack(ValueRange values);
  };

  void setSoftmax(const AttentionTile &tile);
  /// Copies tile `number` (i32, signed) of keys to a stage, if `tile` has it,
  /// and ends a group of copies.
  void copyKeys(const AttentionTile &tile, Value number, Value stage) const;
  /// Tile `number` of keys; `isLast` is the one behind which none may be.
  State step(const AttentionTile &tile, Value number, State state, bool masked,
             bool isLast);
  State walk(const AttentionTile &tile);
  void store(const AttentionTile &tile, const State &state);
  /// Rounds and stores a row's sums, each times `factor`.
  void storeRow(const AttentionTile &tile, ArrayRef<Value> sums, int64_t half,
                Value query, Value factor) const;
  bool promotes() const { return spec.accumulate == Accumulate::Promote; }

  const AttentionContext &kernel;
  KernelBuilder &b;
  const AttentionSpec &spec;
  int64_t stages;
  AttentionProducts products;
  std::optional<Softmax> softmax;
  std::optional<AttentionScores> capAndMask;
  std::optional<AttentionDropout> dropout;
};
} // namespace

SmallVector<Value> AttentionWorker::State::pack() const {
  SmallVector<Value> values(sums);
  for (int64_t row : {0, 1})
    llvm::append_range(values, ArrayRef{rows.max[row], rows.sum[row]});
  values.push_back(stage);
  return values;
}

AttentionWorker::State AttentionWorker::State::unpack(ValueRange values) {
  State state;
  state.stage = values.back();
  ValueRange ofRows = values.drop_back().take_back(4);
  for (int64_t row : {0, 1}) {
    state.rows.max[row] = ofRows[2 * row];
    state.rows.sum[row] = ofRows[2 * row + 1];
  }
  state.sums = llvm::to_vector(values.drop_back(5));
  return state;
}

void AttentionWorker::setSoftmax(const AttentionTile &tile) {
  Value factor = getFactorOfScores(kernel, tile, tile.head);
  Value factors[2] = {factor, factor};
  capAndMask.emplace(kernel, kFragmentScores, tile, factors,
                     getMaskedRows(kernel, kFragmentScores, tile));
  if (AttentionScores::makesExponents(spec))
    factors[0] = factors[1] = b.f32(1.0f);
  softmax.emplace(b, kFragmentScores, factors, std::log2(spec.factorOfP),
                  /*polynomials=*/0);
}

void AttentionWorker::copyKeys(const AttentionTile &tile, Value number,
                               Value stage) const {
  Value isThere = b.bitXor(isBefore(b, number, tile.begin), b.i1(true));
  b.ifThen(isThere, [&] { copyKeysAndValues(kernel, tile, number, stage); });
  // Groups are counted, those without copies too.
  NVVM::CpAsyncCommitGroupOp::create(b);
}

AttentionWorker::State AttentionWorker::step(const AttentionTile &tile,
                                             Value number, State state,
                                             bool masked, bool isLast) {
  NVVM::CpAsyncWaitGroupOp::create(b, stages - 2);
  // Now all have their parts of this tile, and are through with the one before,
  // whose stage the next copies go to.
  NVVM::BarrierOp::create(b);
  Value stage = state.stage;
  Value free =
      b.select(b.equal(stage, 0), b.i32(stages - 1), b.sub(stage, b.i32(1)));
  copyKeys(tile, b.sub(number, b.i32(stages - 1)), free);
  SmallVector<Value> scores = products.multiplyQK(stage);
  scores = capAndMask->apply(scores, number, isLast);
  if (masked)
    scores =
        softmax->mask(scores, getWindow(kernel, kFragmentScores, tile, number));
  Softmax::Step made = softmax->raise(scores, state.rows);
  SmallVector<Value> powers = softmax->exponentiate(scores, state.rows, made);
  SmallVector<Value> p = packPowers(
      b, spec.v,
      roundPowers(b, spec.v,
                  dropPowers(kernel, dropout, tile, number, powers)));
  Value corrections[2] = {};
  if (promotes())
    llvm::copy(made.corrections, corrections);
  else
    state.sums =
        Softmax::scaleRows(b, kFragmentScores, state.sums, made.corrections);
  products.addPV(p, stage, corrections, state.sums);
  Value next = b.add(stage, 1);
  state.stage = b.select(b.equal(next, stages), b.i32(0), next);
  return state;
}

AttentionWorker::State AttentionWorker::walk(const AttentionTile &tile) {
  // Others may still read what the tile before had.
  NVVM::BarrierOp::create(b);
  copyQueries(kernel, tile);
  Value last = b.sub(tile.end, b.i32(1));
  for (int64_t stage = 0; stage < stages - 1; ++stage)
    copyKeys(tile, b.sub(last, b.i32(stage)), b.i32(stage));
  State state;
  state.sums.assign(spec.headDimOfV / 2, b.f32(0.0f));
  state.rows = softmax->getInitial();
  state.stage = b.i32(0);
  state = step(tile, last, state, /*masked=*/true, /*isLast=*/true);
  // Down to `to`; `from` is one beyond them.
  forEachRunOfKeys(kernel, tile, [&](Value from, Value to, bool masked) {
    SmallVector<Value> final =
        b.loop(b.i32(0), b.sub(from, to), b.i32(1), state.pack(),
               [&](Value i, ValueRange carried) {
                 Value number = b.sub(b.sub(from, i), b.i32(1));
                 return step(tile, number, State::unpack(carried), masked,
                             /*isLast=*/false)
                     .pack();
               });
    state = State::unpack(final);
  });
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  return state;
}

void AttentionWorker::storeRow(const AttentionTile &tile, ArrayRef<Value> sums,
                               int64_t half, Value query, Value factor) const {
  int64_t sequence = spec.getSequenceDim();
  auto getStride = [&](int64_t dim) {
    return kernel.getParam("output.stride" + std::to_string(dim));
  };
  Value index = b.add(b.mul(b.widen(tile.batch), getStride(0)),
                      b.mul(b.widen(tile.head), getStride(3 - sequence)));
  index = b.add(index, b.mul(b.widen(query), getStride(sequence)));
  mma::storeRow(b, spec.output, sums, half,
                b.element(kernel.getParam("output.ptr"), index, spec.output),
                kernel.lane,
                /*areOddLast=*/spec.getElementBytes() == 1, factor);
}

void AttentionWorker::store(const AttentionTile &tile, const State &state) {
  // Kept in registers all through the loop over keys, it would be for this.
  Value row = kFragmentScores.getFirstRow(b, launder(b, kernel.thread));
  for (int64_t half : {0, 1}) {
    Value query = b.add(b.add(tile.query, row), 8 * half);
    Value sum = softmax->addLanes(state.rows.sum[half]);
    Value exponent = softmax->getExponent(state.rows, half);
    Value factor = getFactorOfSums(kernel, tile, tile.head, exponent, sum,
                                   softmax->getLogOfP());
    b.ifThen(b.less(query, kernel.tiles.getQueries()), [&] {
      storeRow(tile, state.sums, half, query, factor);
      if (!spec.hasLse)
        return;
      Value lse = Softmax::getLogSum(b, exponent, sum, softmax->getLogOfP());
      b.ifThen(b.equal(b.bitAnd(kernel.lane, 3), 0),
               [&] { storeLse(kernel, tile, tile.head, query, lse); });
    });
  }
}

void AttentionWorker::build() {
  const AttentionTiles &tiles = kernel.tiles;
  b.loop(tiles.getFirst(), tiles.getCount(), tiles.getStride(), {},
         [&](Value item, ValueRange) -> SmallVector<Value> {
           AttentionTile tile = tiles.getTile(item);
           setSoftmax(tile);
           store(tile, walk(tile));
           return {};
         });
}

void mma::describeAttention(AttentionSignature &made, const AttentionSpec &spec,
                            AttentionConfigAttr config,
                            const AttentionMemory &memory,
                            KernelSignature::Launch &launch) {
  for (StringRef name : {"q", "k", "v", "output"}) {
    made.signature.addPointer(name + ".ptr", name);
    for (int64_t dim : {0, 1, 2})
      made.signature.addStride(name + ".stride" + Twine(dim), name, dim);
  }
  made.addParams();
  launch.grid = {made.batch * spec.heads *
                 made.queries.ceilDiv(config.getTileQ())};
  launch.block = config.getThreads();
  launch.sharedBytes = memory.sharedBytes;
  launch.resident = 1;
  launch.flops = made.getFlops();
}

void mma::buildAttention(AttentionKernel<AttentionMemory> &made,
                         const AttentionSpec &spec, AttentionConfigAttr config,
                         GPUTargetAttr target) {
  KernelBuilder &b = made.b;
  // Half of what an RTX 4090 has, and all of a smaller GPU's.
  constexpr int64_t bytesInL2 = int64_t(32) << 20;
  AttentionTiles tiles(
      b, spec, {config.getTileQ(), config.getTileK(), bytesInL2}, made.params);
  AttentionContext kernel{
      getBlock(b, spec, made.params, tiles, config.getTileK()), config,
      made.memory, !hasCodes(target.getComputeCapability())};
  AttentionWorker(kernel).build();
  LLVM::ReturnOp::create(b, ValueRange());
}

//===- AttentionBackwardConsumer.cpp - The warpgroups that multiply -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warpgroup has 64 keys. What a step gives to sums is multiplied in the next
// one, so that the tensor core has work while it is exponentiated, and so that
// the warpgroups need not go in step: each has one whole step's time to leave
// its scores' gradients, G, to the other one's part of dQ.
//
//   S = K Q^T | D = V dO^T;  P = exp2(S - lse);  G = P (D - delta)
//   for steps from the second:
//     dV += P dO | dK += G Q | S = K Q^T;  D = V dO^T
//     P = exp2(S - lse) | dQ = G^T K;  G = P (D - delta);  dQ is added
//   dV += P dO | dK += G Q | dQ = G^T K;  dQ is added;  dK, dV are stored
//
//===----------------------------------------------------------------------===//

#include "../Blocks/BulkCopy.h"
#include "../Blocks/Hazards.h"
#include "AttentionBackwardContext.h"
#include "AttentionProducts.h"
#include "Softmax.h"
#include "Wgmma.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

namespace {
/// What a step hands on to the next.
struct State {
  /// Sums for dK and dV.
  SmallVector<Value> dk, dv;
  /// P and G of the step, as first operands.
  SmallVector<Value> p, g;
  /// Where it was, in the rings of queries and of G.
  RingPosition at, scores;
  BackwardStep step;
  /// Where the sums for dQ go next.
  RingPosition added;

  SmallVector<Value> pack() const;
  State unpack(ValueRange values) const;
};

class BackwardConsumer {
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
  /// P.
  SmallVector<Value> exponentiate(ArrayRef<Value> scores, BackwardStep step,
                                  Value stage);
  SmallVector<Value> mask(ArrayRef<Value> scores, BackwardStep step);
  /// G, from P as it was rounded: two copies of it would not fit.
  SmallVector<Value> differentiate(ArrayRef<Value> p, ArrayRef<Value> products,
                                   Value stage);
  /// First operands of the next step's products. ptxas does not let these be
  /// written while others are in flight (C7513): words that were made then are
  /// copied by an operation that it does not see through.
  SmallVector<Value> renew(ArrayRef<Value> words);
  /// Writes G to a stage of the scores, a row for each key.
  void leave(ArrayRef<Value> words, Value stage);
  void announce(Value stage);

  //===--- Results --------------------------------------------------------===//

  /// Adds a step's part of dQ in global memory.
  void add(ArrayRef<Value> sums, BackwardStep step, RingPosition at);
  void store(ArrayRef<Value> sums, Value factor, const SharedMatrix &matrix,
             int64_t offset, StringRef map);

  State begin();
  State next(State state);
  void finish(State &state);
  void release(const State &state);

  const AttentionBackwardContext &kernel;
  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  const AttentionBackwardMemory &memory;
  const AttentionBackwardTiles &tiles;
  int64_t tileQ;
  WgmmaInstruction scoresOf, gradsOf, toV, toK, toQ;
  /// Number of the warpgroup.
  Value group;
  /// Descriptors (i64): K and V, K with rows as K, first stages of Q and of the
  /// gradient in either order, and of the scores for dQ.
  Value ofK, ofV, ofWholeK, ofQ, ofQRows, ofGrad, ofGradRows, ofScores;
  /// What S is multiplied by to be an exponent of 2, and D by, null for 1.
  Value exponentFactor, factorOfV;
  /// A zero that ptxas does not know.
  Value zero;
};
} // namespace

SmallVector<Value> State::pack() const {
  SmallVector<Value> values(dk);
  for (const SmallVector<Value> &more : {dv, p, g})
    llvm::append_range(values, more);
  for (RingPosition position : {at, scores, added})
    llvm::append_range(values, ArrayRef{position.stage, position.phase});
  llvm::append_range(values, ArrayRef{step.head, step.tile});
  return values;
}

State State::unpack(ValueRange values) const {
  State state;
  auto take = [&](size_t count) {
    SmallVector<Value> taken = llvm::to_vector(values.take_front(count));
    values = values.drop_front(count);
    return taken;
  };
  state.dk = take(dk.size());
  state.dv = take(dv.size());
  state.p = take(p.size());
  state.g = take(g.size());
  for (RingPosition *position : {&state.at, &state.scores, &state.added}) {
    SmallVector<Value> pair = take(2);
    *position = {pair[0], pair[1]};
  }
  SmallVector<Value> pair = take(2);
  state.step = {pair[0], pair[1]};
  return state;
}

BackwardConsumer::BackwardConsumer(const AttentionBackwardContext &kernel)
    : kernel(kernel), b(kernel.b), spec(kernel.spec), memory(kernel.memory),
      tiles(kernel.tiles), tileQ(kernel.config.getTileQ()),
      scoresOf{tileQ, spec.k, spec.q}, gradsOf{tileQ, spec.grad, spec.grad},
      toV{spec.headDimOfV, spec.grad, spec.grad, /*transposedA=*/false,
          /*transposedB=*/true},
      toK{spec.headDim, spec.grad, spec.grad, /*transposedA=*/false,
          /*transposedB=*/true},
      toQ{tileQ == 64 ? spec.headDim / 2 : spec.headDim, spec.grad, spec.grad,
          /*transposedA=*/true, /*transposedB=*/true},
      group(b.shiftRight(kernel.warp, 2)) {
  constexpr float kLog2E = 0x1.715476p0f;
  exponentFactor = b.f32(spec.scale * kLog2E);
  if (memory.hasCodes()) {
    factorOfV = kernel.getFactor("v");
    exponentFactor = b.mulF(
        exponentFactor, b.mulF(kernel.getFactor("q"), kernel.getFactor("k")));
    // An infinite distance stays infinite.
    exponentFactor =
        arith::MaxNumFOp::create(b, exponentFactor, b.f32(0x1p-126f));
  }
  // Numbers of batches are less than 2^31.
  zero = b.shiftRight(kernel.getParam("batch"), 31);
}

void BackwardConsumer::setDescriptors() {
  Value base = launder(b, kernel.base), part = launder(b, group);
  auto at = [&](int64_t offset) { return b.add(base, offset); };
  auto rows = [&](const SharedMatrix &matrix) {
    return b.mul(part, 64 * matrix.width);
  };
  bool hasCodes = memory.hasCodes();
  const SharedMatrix &k = hasCodes ? memory.codesOfK : memory.k;
  const SharedMatrix &q = hasCodes ? memory.codesOfQ : memory.q;
  ofK = k.getDescriptor(
      b, b.add(at(hasCodes ? memory.offsetCodesOfK : memory.offsetK), rows(k)));
  ofQ =
      q.getDescriptor(b, at(hasCodes ? memory.offsetCodesOfQ : memory.offsetQ));
  ofV = memory.v.getDescriptor(b, b.add(at(memory.offsetV), rows(memory.v)));
  ofGrad = memory.grad.getDescriptor(b, at(memory.offsetGrad));
  ofGradRows = memory.grad.getTransposedDescriptor(b, at(memory.offsetGrad));
  ofQRows = memory.q.getTransposedDescriptor(b, at(memory.offsetQ));
  // A warpgroup's part of dQ: half of the columns, or of the queries.
  int64_t columnBoxes = memory.k.getBoxes() / 2;
  ofWholeK = memory.k.getTransposedDescriptor(
      b, tileQ == 64 ? b.add(at(memory.offsetK),
                             b.mul(part, columnBoxes * memory.k.getBoxBytes()))
                     : at(memory.offsetK));
  ofScores = memory.scores.getTransposedDescriptor(
      b, tileQ == 64 ? at(memory.offsetScores)
                     : b.add(at(memory.offsetScores),
                             b.mul(part, memory.scores.getBoxBytes())));
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The product of rows of `a` and of a stage of `matrix`.
static Value multiplyRows(KernelBuilder &b, const WgmmaInstruction &instruction,
                          const SharedMatrix &a, Value ofA,
                          const SharedMatrix &matrix, Value ofB, Value stage) {
  Value product = LLVM::UndefOp::create(b, instruction.getAccumulatorType());
  for (int64_t i = 0, e = a.rowBytes / 32; i < e; ++i)
    product = instruction.multiply(
        b, moveDescriptor(b, ofA, Value(), a, a.getStepBytes(i)),
        moveDescriptor(b, ofB, stage, matrix, matrix.getStepBytes(i)), product,
        /*overwrite=*/i == 0);
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return product;
}

Value BackwardConsumer::multiplyScores(Value stage) {
  bool hasCodes = memory.hasCodes();
  return multiplyRows(b, scoresOf, hasCodes ? memory.codesOfK : memory.k, ofK,
                      hasCodes ? memory.codesOfQ : memory.q, ofQ, stage);
}

Value BackwardConsumer::multiplyGrads(Value stage) {
  return multiplyRows(b, gradsOf, memory.v, ofV, memory.grad, ofGrad, stage);
}

Value BackwardConsumer::addProduct(const WgmmaInstruction &instruction,
                                   ArrayRef<Value> words,
                                   const SharedMatrix &matrix, Value descriptor,
                                   Value stage, ArrayRef<Value> sums) {
  Value accumulator = makeAccumulator(b, sums);
  for (int64_t i = 0; i < tileQ / 16; ++i)
    accumulator = instruction.multiply(
        b, words.slice(4 * i, 4),
        moveDescriptor(b, descriptor, stage, matrix, i * 16 * matrix.width),
        accumulator, /*overwrite=*/false);
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return accumulator;
}

Value BackwardConsumer::multiplyQueries(Value stage) {
  const SharedMatrix &scores = memory.scores, &k = memory.k;
  Value product = LLVM::UndefOp::create(b, toQ.getAccumulatorType());
  for (int64_t i = 0; i < kernel.config.getTileK() / 16; ++i)
    product = toQ.multiply(
        b, moveDescriptor(b, ofScores, stage, scores, i * 16 * scores.width),
        moveDescriptor(b, ofWholeK, Value(), k, i * 16 * k.width), product,
        /*overwrite=*/i == 0);
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return product;
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

SmallVector<Value> BackwardConsumer::loadRows(Value stage, int64_t which) {
  auto two = VectorType::get({2}, b.getF32Type());
  Value column = b.mul(b.bitAnd(renewInLoop(kernel.lane), 3), 8);
  Value first = b.offset(kernel.getRows(stage, which), column);
  SmallVector<Value> numbers;
  for (int64_t column = 0; column < tileQ; column += 8) {
    Value pair =
        LLVM::LoadOp::create(b, two, b.offset(first, b.i32(column * 4)),
                             /*alignment=*/8);
    SmallVector<Value> both;
    for (int64_t i : {0, 1})
      both.push_back(LLVM::ExtractElementOp::create(b, pair, b.i32(i)));
    // Both rows of the thread.
    for (int64_t row = 0; row < 2; ++row)
      llvm::append_range(numbers, both);
  }
  return numbers;
}

SmallVector<Value> BackwardConsumer::mask(ArrayRef<Value> scores,
                                          BackwardStep step) {
  Value thread = launder(b, kernel.thread);
  Value row = b.add(b.mul(b.shiftRight(thread, 5), 16),
                    b.shiftRight(b.bitAnd(thread, 31), 2));
  // The thread's first query; all relative to it.
  Value query = b.add(b.mul(step.tile, tileQ), b.mul(b.bitAnd(thread, 3), 2));
  Softmax::Window window;
  for (int64_t half : {0, 1}) {
    Value key = b.add(b.add(tiles.key, row), 8 * half);
    Value own = b.sub(b.sub(key, tiles.diagonal), query);
    Value from = spec.right ? b.sub(own, b.i32(*spec.right)) : b.i32(0);
    // No query sees keys that are not there.
    window.from[half] = b.select(b.less(key, tiles.keys), from, b.i32(1 << 30));
    if (spec.left)
      window.to[half] = b.add(own, *spec.left);
  }
  Value one = b.f32(1.0f);
  return Softmax(b, {one, one}, /*logOfP=*/0.0f, /*polynomials=*/0)
      .mask(scores, window);
}

SmallVector<Value> BackwardConsumer::exponentiate(ArrayRef<Value> scores,
                                                  BackwardStep step,
                                                  Value stage) {
  SmallVector<Value> visible = b.choose(
      tiles.hides(step), [&] { return mask(scores, step); },
      [&] { return SmallVector<Value>(scores); });
  SmallVector<Value> powers;
  for (auto [score, offset] : llvm::zip_equal(visible, loadRows(stage, 0)))
    powers.push_back(
        Softmax::exp2(b, LLVM::FMAOp::create(b, b.getF32Type(), score,
                                             exponentFactor, offset)));
  return packFragment(b, spec.grad, powers);
}

SmallVector<Value> BackwardConsumer::differentiate(ArrayRef<Value> p,
                                                   ArrayRef<Value> products,
                                                   Value stage) {
  SmallVector<Value> grads;
  for (auto [power, product, delta] : llvm::zip_equal(
           unpackFragment(b, spec.grad, p), products, loadRows(stage, 1))) {
    Value difference =
        factorOfV
            ? LLVM::FMAOp::create(b, b.getF32Type(), product, factorOfV, delta)
                  .getResult()
            : arith::AddFOp::create(b, product, delta).getResult();
    grads.push_back(b.mulF(power, difference));
  }
  return packFragment(b, spec.grad, grads);
}

SmallVector<Value> BackwardConsumer::renew(ArrayRef<Value> words) {
  SmallVector<Value> renewed;
  for (Value word : words)
    renewed.push_back(b.bitXor(word, zero));
  return renewed;
}

void BackwardConsumer::leave(ArrayRef<Value> words, Value stage) {
  const SharedMatrix &scores = memory.scores;
  Value thread = renewInLoop(kernel.thread);
  storeFragment(b, words, scores, kernel.shared,
                kernel.getPlace(scores, memory.offsetScores, stage),
                b.mul(b.shiftRight(thread, 5), 16), b.bitAnd(thread, 31));
  fenceForBulkCopies(b);
}

void BackwardConsumer::announce(Value stage) {
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  Ring ring = kernel.scores;
  ring.release(stage, kernel.lane);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void BackwardConsumer::add(ArrayRef<Value> sums, BackwardStep step,
                           RingPosition at) {
  Ring ring = kernel.added;
  ring.waitEmpty({at.stage, b.bitXor(at.phase, b.i32(1))});
  Value thread = renewInLoop(kernel.thread);
  Value place = kernel.getSums(tiles.getNumber(step), group, b.i32(0),
                               b.bitAnd(thread, 127));
  for (size_t first = 0; first < sums.size(); first += 4) {
    SmallVector<Value> operands{
        b.offset(place, b.i64(static_cast<int64_t>(first) * 128 * 4))};
    llvm::append_range(operands, sums.slice(first, 4));
    b.ptx("red.relaxed.gpu.global.add.v4.f32 [$0], {$1, $2, $3, $4};",
          operands);
  }
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  b.ifThen(b.equal(kernel.lane, 0), [&] {
    NVVM::MBarrierArriveOp::create(b, /*res=*/Type(),
                                   ring.getFullBarrier(at.stage),
                                   /*count=*/Value());
  });
}

void BackwardConsumer::store(ArrayRef<Value> sums, Value factor,
                             const SharedMatrix &matrix, int64_t offset,
                             StringRef map) {
  SmallVector<Value> scaled(sums);
  for (Value &sum : scaled)
    if (factor)
      sum = b.mulF(sum, factor);
  storeFragment(b, packFragment(b, spec.grad, scaled), matrix, kernel.shared,
                b.i32(offset), b.mul(b.shiftRight(kernel.thread, 5), 16),
                kernel.lane);
  fenceForBulkCopies(b);
  b.namedBarrier(b.add(group, 1), 128);
  Value firstRow = b.mul(group, 64);
  b.ifThen(b.equal(b.bitAnd(kernel.warp, 3), 0), [&] {
    b.electOne([&] {
      for (int64_t box = 0; box < matrix.getBoxes(); ++box) {
        Value from = b.add(b.mul(firstRow, matrix.width),
                           offset + box * matrix.getBoxBytes());
        bulkStore(b, kernel.getParam(map), b.offset(kernel.shared, from),
                  kernel.getCoordinates(b.i32(box * matrix.getBoxColumns()),
                                        b.add(tiles.key, firstRow),
                                        tiles.headOfK, tiles.batch));
      }
      waitForReads(b, 0);
    });
  });
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void BackwardConsumer::release(const State &state) {
  Ring queries = kernel.queries, grads = kernel.grads;
  queries.release(state.at.stage, kernel.lane);
  grads.release(state.at.stage, kernel.lane);
}

State BackwardConsumer::begin() {
  Ring queries = kernel.queries, grads = kernel.grads, keys = kernel.keys;
  Ring codes = kernel.codesOfQueries, codesOfKeys = kernel.codesOfKeys;
  State state;
  setDescriptors();
  state.at = state.scores = state.added = {b.i32(0), b.i32(0)};
  state.step = tiles.getFirst();
  keys.waitFull({b.i32(0), b.i32(0)});
  if (memory.hasCodes()) {
    codesOfKeys.waitFull({b.i32(0), b.i32(0)});
    codes.waitFull(state.at);
  } else {
    queries.waitFull(state.at);
  }
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value scores = multiplyScores(state.at.stage);
  keys.waitFull({b.i32(1), b.i32(0)});
  grads.waitFull(state.at);
  Value products = multiplyGrads(state.at.stage);
  SmallVector<Value> ofScores =
      waitForAccumulators(b, /*pending=*/1, getRegisters(b, scores));
  if (memory.hasCodes()) {
    codes.release(state.at.stage, kernel.lane);
    queries.waitFull(state.at);
  }
  state.p = exponentiate(ofScores, state.step, state.at.stage);
  SmallVector<Value> ofProducts =
      waitForAccumulators(b, /*pending=*/0, getRegisters(b, products));
  state.g = differentiate(state.p, ofProducts, state.at.stage);
  leave(state.g, state.scores.stage);
  announce(state.scores.stage);
  state.dk.assign(spec.headDim / 2, b.f32(0.0f));
  state.dv.assign(spec.headDimOfV / 2, b.f32(0.0f));
  return state;
}

State BackwardConsumer::next(State state) {
  Ring queries = kernel.queries, grads = kernel.grads,
       scoresRing = kernel.scores;
  Ring codes = kernel.codesOfQueries;
  State after;
  setDescriptors();
  after.at = queries.advance(state.at);
  // Rings of as many stages are at the same one: registers that are one.
  after.scores =
      kernel.config.getStages() == AttentionBackwardMemory::kScoreStages
          ? after.at
          : scoresRing.advance(state.scores);
  after.step = tiles.advance(state.step);
  Value stage = after.at.stage;
  if (memory.hasCodes())
    codes.waitFull(after.at);
  else
    queries.waitFull(after.at);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value dv = addProduct(toV, state.p, memory.grad, ofGradRows, state.at.stage,
                        state.dv);
  Value dk =
      addProduct(toK, state.g, memory.q, ofQRows, state.at.stage, state.dk);
  Value scores = multiplyScores(stage);
  SmallVector<Value> sums = getRegisters(b, dv);
  llvm::append_range(sums, getRegisters(b, dk));
  sums = waitForAccumulators(b, /*pending=*/1, sums);
  after.dv.assign(sums.begin(), sums.begin() + state.dv.size());
  after.dk.assign(sums.begin() + state.dv.size(), sums.end());
  release(state);
  grads.waitFull(after.at);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value products = multiplyGrads(stage);
  SmallVector<Value> ofScores =
      waitForAccumulators(b, /*pending=*/1, getRegisters(b, scores));
  if (memory.hasCodes()) {
    codes.release(stage, kernel.lane);
    queries.waitFull(after.at);
  }
  SmallVector<Value> p = exponentiate(ofScores, after.step, stage);
  // G of the other keys.
  scoresRing.waitEmpty(state.scores);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value dq = multiplyQueries(state.scores.stage);
  SmallVector<Value> ofProducts =
      waitForAccumulators(b, /*pending=*/1, getRegisters(b, products));
  SmallVector<Value> g = differentiate(p, ofProducts, stage);
  leave(g, after.scores.stage);
  SmallVector<Value> part =
      waitForAccumulators(b, /*pending=*/0, getRegisters(b, dq));
  // Only now, as it says, too, that the stage before has been read.
  announce(after.scores.stage);
  add(part, state.step, state.added);
  Ring added = kernel.added;
  after.added = added.advance(state.added);
  after.p = renew(p);
  after.g = renew(g);
  return after;
}

void BackwardConsumer::finish(State &state) {
  Ring scoresRing = kernel.scores;
  setDescriptors();
  scoresRing.waitEmpty(state.scores);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value dv = addProduct(toV, state.p, memory.grad, ofGradRows, state.at.stage,
                        state.dv);
  Value dk =
      addProduct(toK, state.g, memory.q, ofQRows, state.at.stage, state.dk);
  Value dq = multiplyQueries(state.scores.stage);
  SmallVector<Value> sums = getRegisters(b, dv);
  llvm::append_range(sums, getRegisters(b, dk));
  llvm::append_range(sums, getRegisters(b, dq));
  ArrayRef<Value> all = sums = waitForAccumulators(b, /*pending=*/0, sums);
  state.dv = SmallVector<Value>(all.take_front(state.dv.size()));
  state.dk = SmallVector<Value>(
      all.drop_front(state.dv.size()).take_front(state.dk.size()));
  add(all.drop_front(state.dv.size() + state.dk.size()), state.step,
      state.added);
}

void BackwardConsumer::build() {
  size_t sumsOfK = spec.headDim / 2;
  SmallVector<Value> sums = b.choose(
      b.equal(tiles.steps, 0),
      [&] {
        return SmallVector<Value>(sumsOfK + spec.headDimOfV / 2, b.f32(0.0f));
      },
      [&] {
        State state = begin();
        SmallVector<Value> last =
            b.loop(b.i32(1), tiles.steps, b.i32(1), state.pack(),
                   [&](Value, ValueRange carried) {
                     return next(state.unpack(carried)).pack();
                   });
        state = state.unpack(last);
        finish(state);
        SmallVector<Value> sums(state.dk);
        llvm::append_range(sums, state.dv);
        return sums;
      });
  ArrayRef<Value> all = sums;
  Value factorOfK = b.f32(spec.scale);
  if (Value ofQ = kernel.getFactor("q"))
    factorOfK = b.mulF(factorOfK, ofQ);
  // Copies of what nobody has waited for would come after what is written here.
  Ring keys = kernel.keys;
  for (int64_t stage : {0, 1})
    keys.waitFull({b.i32(stage), b.i32(0)});
  // Both have read all keys.
  b.namedBarrier(b.i32(3), 128 * kernel.kConsumers);
  store(all.take_front(sumsOfK), factorOfK, memory.k, memory.offsetK, "dk.map");
  store(all.drop_front(sumsOfK), Value(), memory.v, memory.offsetV, "dv.map");
}

void sm90::buildAttentionBackwardConsumer(
    const AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  b.ifThen(b.less(b.i32(0), kernel.tiles.keys),
           [&] { BackwardConsumer(kernel).build(); });
}

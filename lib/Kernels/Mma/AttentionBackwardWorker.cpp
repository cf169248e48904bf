//===- AttentionBackwardWorker.cpp - A block of its gradients -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardWorker.h"
#include "../Blocks/Hazards.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

/// Sums of a lane in 16 rows by 16 columns.
static constexpr int64_t kSums = 8;

SmallVector<Value> BackwardWorker::State::pack() const {
  SmallVector<Value> values(ofScores);
  llvm::append_range(values, ofPowers);
  values.push_back(stage);
  return values;
}

BackwardWorker::State BackwardWorker::State::unpack(ValueRange values) const {
  State state;
  state.ofScores = llvm::to_vector(values.take_front(ofScores.size()));
  state.ofPowers =
      llvm::to_vector(values.drop_front(ofScores.size()).drop_back());
  state.stage = values.back();
  return state;
}

BackwardWorker::BackwardWorker(const AttentionBackwardContext &kernel,
                               BackwardPart part)
    : SoftmaxGradient(kernel.b, kernel.spec), kernel(kernel),
      memory(kernel.memory), part(part),
      tiles(b, spec,
            {part.ofKeys ? kernel.config.getTileK() : kernel.config.getTileQ(),
             part.ofKeys ? kernel.config.getTileQ() : kernel.config.getTileK(),
             kernel.config.getThreads() / 32},
            kernel.params),
      mma(b, spec.grad, spec.grad, /*factors=*/Type(), /*expands=*/false) {
  Value first = b.mul(kernel.warp, 16);
  for (int64_t i : {0, 1}) {
    rows.emplace_back(b, memory.rows[i], MatrixLoader::Use::Rows, kernel.shared,
                      kernel.lane, first);
    columns.emplace_back(b, memory.columns[i], MatrixLoader::Use::Columns,
                         kernel.shared, kernel.lane);
    lines.emplace_back(b, memory.columns[i], MatrixLoader::Use::Lines,
                       kernel.shared, kernel.lane);
  }
  loadFactors(kernel.params);
}

//===----------------------------------------------------------------------===//
// Which rows, and which columns
//===----------------------------------------------------------------------===//

void BackwardWorker::beginKeys(Value block) {
  tiles.begin(block);
  if (spec.hasKeyRanges)
    tiles.findTiles(b.offset(kernel.shared, b.i32(memory.offsetFound)),
                    kernel.warp);
  firstRow = tiles.key;
  rowsThere = tiles.keys;
  columnsThere = tiles.queries;
  headOfRows = tiles.headOfK;
  int64_t heads = spec.heads / spec.headsOfK;
  firstHead = b.mul(headOfRows, heads);
  firstTile = tiles.first;
  tilesOfHead = b.sub(tiles.end, tiles.first);
  steps = b.mul(tilesOfHead, heads);
}

void BackwardWorker::beginQueries(Value block) {
  int64_t tileQ = kernel.config.getTileQ(), tileK = kernel.config.getTileK();
  Value tilesOfQueries = b.ceilDiv(tiles.queries, tileQ);
  Value heads = b.mul(kernel.getParam("batch"), spec.heads);
  Value head, tile;
  if (spec.left || spec.right || spec.hasKeyRanges) {
    // Causal, the last queries are those that see most keys.
    tile = b.sub(b.sub(tilesOfQueries, b.i32(1)), b.div(block, heads));
    head = b.rem(block, heads);
  } else {
    tile = b.rem(block, tilesOfQueries);
    head = b.div(block, tilesOfQueries);
  }
  tiles.batch = b.div(head, spec.heads);
  tiles.diagonal =
      spec.bottomRight ? b.sub(tiles.keys, tiles.queries) : b.i32(0);
  firstHead = headOfRows = b.rem(head, spec.heads);
  firstRow = b.mul(tile, tileQ);
  rowsThere = tiles.queries;
  columnsThere = tiles.keys;
  BackwardKeys seen = tiles.getKeysOf(tile);
  Value seesSome =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, seen.begin, seen.end);
  firstTile = b.select(seesSome, b.div(seen.begin, tileK), b.i32(0));
  Value end = b.select(seesSome, b.ceilDiv(seen.end, tileK), b.i32(0));
  steps = tilesOfHead = b.sub(end, firstTile);
}

BackwardWorker::Step BackwardWorker::getStep(Value number) const {
  if (!part.ofKeys || spec.heads == spec.headsOfK)
    return {firstHead, b.add(firstTile, number)};
  return {b.add(firstHead, b.div(number, tilesOfHead)),
          b.add(firstTile, b.rem(number, tilesOfHead))};
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void BackwardWorker::copy(StringRef name, Type type, Value head, Value first,
                          Value extent, const SwizzledMatrix &matrix,
                          Value place) const {
  RowCopier copier{b, kernel.shared, kernel.thread, kernel.config.getThreads()};
  RowSource source = RowSource::get(
      b, [&](const Twine &param) { return kernel.getParam(param.str()); }, name,
      type, spec.getSequenceDim(), head);
  auto find = [&](Value row) -> std::array<Value, 3> {
    Value line = b.add(first, row);
    Value isThere = b.less(line, extent);
    // What is not read may not lie beyond the tensor either.
    return {tiles.batch, b.select(isThere, line, b.i32(0)), isThere};
  };
  if (type == matrix.elementType)
    copier.copy(source, matrix, place, find);
  else
    copier.convert(source, type, matrix, place, find);
}

void BackwardWorker::copyRows() const {
  bool ofKeys = part.ofKeys;
  copy(ofKeys ? "k" : "q", ofKeys ? spec.k : spec.q, headOfRows, firstRow,
       rowsThere, memory.rows[0], b.i32(memory.offsetRows[0]));
  if (part.sumsScores)
    copy(ofKeys ? "v" : "grad", ofKeys ? spec.v : spec.grad, headOfRows,
         firstRow, rowsThere, memory.rows[1], b.i32(memory.offsetRows[1]));
}

Value BackwardWorker::getNumbers(Value stage, int64_t which) const {
  int64_t at = memory.offsetNumbers + which * kernel.config.getTileK() * 4;
  return b.offset(kernel.shared,
                  b.add(b.mul(stage, memory.bytesOfNumbers), at));
}

void BackwardWorker::copyNumbers(Step step, Value stage) const {
  Value query = b.add(getColumn(step), kernel.thread);
  Value isThere = b.less(query, tiles.queries);
  query = b.widen(b.select(isThere, query, b.i32(0)));
  Value bytes = b.select(isThere, b.i32(4), b.i32(0));
  auto copyOne = [&](StringRef name, Value index, int64_t which) {
    Value from = b.element(kernel.getParam(name), index, b.getF32Type());
    Value to = b.offset(getNumbers(stage, which), b.mul(kernel.thread, 4));
    NVVM::CpAsyncOp::create(b, to, from, 4, NVVM::LoadCacheModifierKind::CA,
                            bytes);
  };
  Value queries = b.widen(tiles.queries);
  Value head = b.add(b.mul(tiles.batch, spec.heads), step.head);
  Value row = b.add(b.mul(b.widen(head), queries), query);
  copyOne("lse.ptr", row, 0);
  copyOne("delta.ptr", row, 1);
  if (!spec.hasKeyRanges)
    return;
  Value range = b.add(b.mul(b.widen(tiles.batch), queries), query);
  range = b.mul(range, 2);
  copyOne("key_ranges.ptr", range, 2);
  copyOne("key_ranges.ptr", b.add(range, 1), 3);
}

void BackwardWorker::copyColumns(Value number, Value stage) const {
  bool ofKeys = part.ofKeys;
  b.ifThen(b.less(number, steps), [&] {
    Step step = getStep(number);
    Value head = ofKeys ? step.head : getHeadOfK(step.head);
    copy(ofKeys ? "q" : "k", ofKeys ? spec.q : spec.k, head, getColumn(step),
         columnsThere, memory.columns[0],
         kernel.getPlace(memory.columns[0], memory.offsetColumns[0], stage));
    copy(ofKeys ? "grad" : "v", ofKeys ? spec.grad : spec.v, head,
         getColumn(step), columnsThere, memory.columns[1],
         kernel.getPlace(memory.columns[1], memory.offsetColumns[1], stage));
    if (ofKeys)
      b.ifThen(b.less(kernel.thread, b.i32(kernel.config.getTileK())),
               [&] { copyNumbers(step, stage); });
  });
  // Groups are counted, those without copies too.
  NVVM::CpAsyncCommitGroupOp::create(b);
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

SmallVector<Value> BackwardWorker::multiply(int64_t which, Value stage) {
  const SwizzledMatrix &matrix = memory.columns[which];
  Value begin = kernel.getPlace(matrix, memory.offsetColumns[which], stage);
  int64_t count = kernel.config.getTileK();
  SmallVector<Value> products(count / 2, b.f32(0.0f));
  for (int64_t i = 0; i < matrix.rowBytes / 32; ++i) {
    Words ofRows =
        rows[which].load(b.i32(memory.offsetRows[which]), /*row=*/0, 2 * i);
    for (int64_t column = 0; column < count; column += 16)
      mma.multiply(ofRows, columns[which].load(begin, column, 2 * i),
                   ScaleWords(),
                   MutableArrayRef(products).slice(column / 2, kSums));
  }
  return products;
}

void BackwardWorker::add(int64_t which, ArrayRef<Value> words, Value stage,
                         MutableArrayRef<Value> sums) {
  Value begin = kernel.getPlace(memory.columns[which],
                                memory.offsetColumns[which], stage);
  for (size_t column = 0; column < sums.size() / kSums; ++column)
    for (size_t i = 0; i < words.size() / 4; ++i) {
      Words own;
      llvm::copy(words.slice(4 * i, 4), own.begin());
      mma.multiply(own,
                   lines[which].load(begin, static_cast<int64_t>(16 * i),
                                     static_cast<int64_t>(2 * column)),
                   ScaleWords(), sums.slice(column * kSums, kSums));
    }
}

BackwardWorker::State BackwardWorker::step(Value number, State state) {
  int64_t stages = kernel.config.getStages();
  NVVM::CpAsyncWaitGroupOp::create(b, stages - 2);
  // Now all have their parts of these columns, and are through with those
  // before, whose stage the next copies go to.
  NVVM::BarrierOp::create(b);
  Value stage = state.stage;
  Value free =
      b.select(b.equal(stage, 0), b.i32(stages - 1), b.sub(stage, b.i32(1)));
  copyColumns(b.add(number, stages - 1), free);
  Step own = getStep(number);
  SmallVector<Value> slopes;
  SmallVector<Value> p =
      exponentiate(mask(multiply(0, stage), own, stage), own, stage, slopes);
  if (part.sumsPowers)
    add(1, getKept(p), stage, state.ofPowers);
  if (part.sumsScores)
    add(0, differentiate(p, slopes, multiply(1, stage), stage), stage,
        state.ofScores);
  Value next = b.add(stage, 1);
  state.stage = b.select(b.equal(next, stages), b.i32(0), next);
  return state;
}

BackwardWorker::State BackwardWorker::walk() {
  copyRows();
  int64_t stages = kernel.config.getStages();
  for (int64_t stage = 0; stage < stages - 1; ++stage)
    copyColumns(b.i32(stage), b.i32(stage));
  if (!part.ofKeys)
    loadRows();
  State state;
  if (part.sumsScores)
    state.ofScores.assign(spec.headDim / 2, b.f32(0.0f));
  if (part.sumsPowers)
    state.ofPowers.assign(spec.headDimOfV / 2, b.f32(0.0f));
  state.stage = b.i32(0);
  SmallVector<Value> last =
      b.loop(b.i32(0), steps, b.i32(1), state.pack(),
             [&](Value number, ValueRange carried) {
               return step(number, state.unpack(carried)).pack();
             });
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  return state.unpack(last);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

void BackwardWorker::store(StringRef name, ArrayRef<Value> sums,
                           Value factor) const {
  RowSource to = RowSource::get(
      b, [&](const Twine &param) { return kernel.getParam(param.str()); }, name,
      spec.grad, spec.getSequenceDim(), headOfRows);
  // Kept in registers all through the loop over columns, it would be for this.
  Value first = kFragmentScores.getFirstRow(b, launder(b, kernel.thread));
  for (int64_t half : {0, 1}) {
    Value row = b.add(b.add(firstRow, first), 8 * half);
    Value at = b.add(b.mul(b.widen(tiles.batch), to.strideBatch),
                     b.mul(b.widen(row), to.strideRow));
    b.ifThen(b.less(row, rowsThere), [&] {
      storeRow(b, spec.grad, sums, half, b.offset(to.base, at), kernel.lane,
               /*areOddLast=*/false, factor);
    });
  }
}

void BackwardWorker::build(Value block) {
  if (part.ofKeys)
    beginKeys(block);
  else
    beginQueries(block);
  State state = walk();
  if (part.sumsScores) {
    Value factor = b.f32(spec.scale);
    if (Value ofOther = kernel.getFactor(part.ofKeys ? "q" : "k"))
      factor = b.mulF(factor, ofOther);
    store(part.ofKeys ? "dk" : "dq", state.ofScores, factor);
  }
  if (part.sumsPowers)
    store(
        "dv", state.ofPowers,
        b.f32(spec.dropThreshold ? getFactorOfKept(spec.dropThreshold) : 1.0f));
}

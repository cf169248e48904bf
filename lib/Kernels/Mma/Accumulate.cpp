//===- Accumulate.cpp - Sums over K of a tile -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accumulate.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

/// Sums of a lane in 16 rows by 16 columns.
static constexpr int64_t kSums = 8;

/// That of factors which the instruction multiplies; null without such.
static Type getFactorType(KernelBuilder &b, const MatmulSpec &spec) {
  if (!spec.isMicroscaled())
    return {};
  return spec.a.scale == ScaleBlock::Row16
             ? Type(Float8E4M3FNType::get(b.getContext()))
             : Type(Float8E8M0FNUType::get(b.getContext()));
}

Accumulator::Accumulator(const MatmulContext &kernel, const Tile &tile)
    : kernel(kernel), b(kernel.b), config(kernel.config), tile(tile),
      promotion(kernel, tile), rows(b, kernel.layout.rows, /*ofRows=*/true,
                                    kernel.lane, kernel.getWarpRow()),
      cols(b, kernel.layout.colsPart, /*ofRows=*/false, kernel.lane,
           kernel.getWarpCol()),
      mma(b, kernel.getRowSpec().elementType, kernel.getColSpec().elementType,
          getFactorType(b, kernel.spec), kernel.expandsCodes) {
  loaders.emplace_back(kernel, tile, /*ofRows=*/true, /*number=*/0);
  for (int64_t number = 0; number < (kernel.spec.isDual() ? 2 : 1); ++number)
    loaders.emplace_back(kernel, tile, /*ofRows=*/false, number);
  if (!kernel.layout.factorWords)
    return;
  factorLoaders.emplace_back(kernel, tile, /*ofRows=*/true, /*number=*/0);
  for (int64_t number = 0; number < (kernel.spec.isDual() ? 2 : 1); ++number)
    factorLoaders.emplace_back(kernel, tile, /*ofRows=*/false, number);
}

void Accumulator::copy(Value k, Value stage) const {
  b.ifThen(b.less(k, tile.kEnd), [&] {
    for (const OperandLoader &loader : loaders)
      loader.copy(k, stage);
    for (const FactorLoader &loader : factorLoaders)
      loader.copy(k, stage);
    promotion.copy(k, stage);
  });
  // Groups are counted, those without copies too.
  NVVM::CpAsyncCommitGroupOp::create(b);
}

void Accumulator::clearOthers(Value k, Value stage) const {
  if (!tile.restK)
    return;
  const MatmulLayout &layout = kernel.layout;
  OwnK own = OwnK::get(b, tile, k, layout.rows.getBlockK());
  b.ifThen(own.isCut, [&] {
    for (auto [operand, offset] : {std::pair{&layout.rows, layout.offsetRows},
                                   {&layout.cols, layout.offsetCols}})
      operand->clearOutside(
          b,
          b.offset(kernel.shared,
                   b.add(b.mul(stage, operand->getBytes()), offset)),
          own.begin, own.end, kernel.thread, config.getThreads());
    kernel.synchronize();
  });
}

Words Accumulator::loadRows(Value stage, int64_t subtile, int64_t step) const {
  const MatmulLayout &layout = kernel.layout;
  Value base =
      b.offset(kernel.shared,
               b.add(b.mul(stage, layout.rows.getBytes()), layout.offsetRows));
  return rows.load(base, subtile * kernel.layout.subtileStride, step);
}

Words Accumulator::loadCols(Value stage, int64_t col, int64_t step) const {
  const MatmulLayout &layout = kernel.layout;
  int64_t perTensor = kernel.spec.getResultCols(layout.warpCols);
  int64_t part = col / perTensor * layout.colsPart.getBytes();
  Value base =
      b.offset(kernel.shared, b.add(b.mul(stage, layout.cols.getBytes()),
                                    layout.offsetCols + part));
  return cols.load(base, col % perTensor, step);
}

Value Accumulator::loadRowFactors(Value stage, int64_t subtile,
                                  int64_t step) const {
  return kernel.layout.factorWords
             ? FactorWords(kernel, /*ofRows=*/true)
                   .load(stage, subtile * kernel.layout.subtileStride, step)
             : Value();
}

Value Accumulator::loadColFactors(Value stage, int64_t col,
                                  int64_t step) const {
  return kernel.layout.factorWords
             ? FactorWords(kernel, /*ofRows=*/false)
                   .load(stage, kernel.getColOffset(col), step)
             : Value();
}

Accumulator::Operands Accumulator::load(Value stage, int64_t step) const {
  Operands operands;
  for (int64_t subtile = 0; subtile < kernel.layout.subtiles; ++subtile) {
    operands.rows.push_back(loadRows(stage, subtile, step));
    operands.rowFactors.push_back(loadRowFactors(stage, subtile, step));
  }
  for (int64_t col = 0; col < kernel.layout.warpCols; col += 16) {
    operands.cols.push_back(loadCols(stage, col, step));
    operands.colFactors.push_back(loadColFactors(stage, col, step));
  }
  return operands;
}

void Accumulator::multiply(const Operands &operands, int64_t step,
                           MutableArrayRef<Value> sums) {
  for (size_t col = 0; col < operands.cols.size(); ++col)
    for (size_t subtile = 0; subtile < operands.rows.size(); ++subtile)
      mma.multiply(
          operands.rows[subtile], operands.cols[col],
          {operands.rowFactors[subtile], operands.colFactors[col],
           getFactorByte(step)},
          sums.slice(subtile * kernel.layout.getRegisters() + col * kSums,
                     kSums));
}

void Accumulator::multiplyFast(Value k, Value stage, Value next,
                               Operands &operands,
                               MutableArrayRef<Value> sums) {
  for (int64_t step = 0; step < getSteps(); ++step) {
    Operands following;
    if (step + 1 < getSteps()) {
      following = load(stage, step + 1);
    } else if (prefetches()) {
      Value nextK = b.add(k, 1);
      waitFor(nextK, next);
      // Behind the last block nothing was copied.
      following =
          load(b.select(b.less(nextK, tile.kEnd), next, stage), /*step=*/0);
    }
    multiply(operands, step, sums);
    operands = std::move(following);
  }
}

/// All of a K block for few columns at a time: its sums need few registers.
void Accumulator::multiplyPromoted(Value stage, MutableArrayRef<Value> sums) {
  int64_t subtiles = kernel.layout.subtiles;
  SmallVector<SmallVector<Words>> ofRows(subtiles);
  SmallVector<Promotion::RowFactors> rowFactors;
  for (int64_t subtile = 0; subtile < subtiles; ++subtile) {
    for (int64_t step = 0; step < getSteps(); ++step)
      ofRows[subtile].push_back(loadRows(stage, subtile, step));
    rowFactors.push_back(promotion.loadRows(stage, subtile));
  }
  for (int64_t col = 0; col < kernel.layout.warpCols; col += 16) {
    SmallVector<Value> product(subtiles * kSums, b.f32(0.0f));
    for (int64_t step = 0; step < getSteps(); ++step) {
      Words ofCols = loadCols(stage, col, step);
      for (int64_t subtile = 0; subtile < subtiles; ++subtile)
        mma.multiply(ofRows[subtile][step], ofCols, ScaleWords(),
                     MutableArrayRef(product).slice(subtile * kSums, kSums));
    }
    Promotion::ColFactors colFactors = promotion.loadCols(stage, col);
    for (int64_t subtile = 0; subtile < subtiles; ++subtile)
      promotion.add(
          ArrayRef(product).slice(subtile * kSums, kSums), rowFactors[subtile],
          colFactors,
          sums.slice(subtile * kernel.layout.getRegisters() + col / 2, kSums));
  }
}

void Accumulator::waitFor(Value k, Value stage) const {
  NVVM::CpAsyncWaitGroupOp::create(b, config.getStages() - 2);
  kernel.synchronize();
  clearOthers(k, stage);
}

Value Accumulator::getPrevious(Value stage) const {
  return b.select(b.equal(stage, 0), b.i32(config.getStages() - 1),
                  b.sub(stage, b.i32(1)));
}

Value Accumulator::getNext(Value stage) const {
  Value next = b.add(stage, 1);
  return b.select(b.equal(next, config.getStages()), b.i32(0), next);
}

/// In registers a loop carries a block's first operands behind the sums.
SmallVector<Value> Accumulator::loopFast() {
  int64_t numSums = kernel.layout.subtiles * kernel.layout.getRegisters();
  SmallVector<Value> initial(numSums, b.f32(0.0f));
  auto forEach = [](Operands &operands,
                    llvm::function_ref<void(Value &)> body) {
    for (SmallVector<Words> *fragments : {&operands.rows, &operands.cols})
      for (Words &words : *fragments)
        llvm::for_each(words, body);
    for (SmallVector<Value> *factors :
         {&operands.rowFactors, &operands.colFactors})
      for (Value &word : *factors)
        if (word)
          body(word);
  };
  auto addAll = [&](Operands &operands, SmallVector<Value> &values) {
    forEach(operands, [&](Value &word) { values.push_back(word); });
  };
  Operands first;
  if (prefetches()) {
    waitFor(tile.kBegin, b.i32(0));
    // A part of K or a group may have no block.
    SmallVector<Value> loaded = b.choose(
        b.less(tile.kBegin, tile.kEnd),
        [&] {
          first = load(b.i32(0), /*step=*/0);
          SmallVector<Value> words;
          addAll(first, words);
          return words;
        },
        [&] {
          SmallVector<Value> words;
          forEach(first, [&](Value &) { words.push_back(b.i32(0)); });
          return words;
        });
    initial.append(loaded);
  }
  initial.push_back(b.i32(0));
  SmallVector<Value> carried =
      b.loop(tile.kBegin, tile.kEnd, b.i32(1), initial,
             [&](Value k, ValueRange carried) -> SmallVector<Value> {
               Value stage = carried.back(), next = getNext(stage);
               if (!prefetches())
                 waitFor(k, stage);
               // All are through with the block before.
               copy(b.add(k, config.getStages() - 1), getPrevious(stage));
               SmallVector<Value> results(carried.take_front(numSums));
               Operands operands =
                   prefetches() ? first : load(stage, /*step=*/0);
               size_t at = numSums;
               if (prefetches())
                 forEach(operands, [&](Value &word) { word = carried[at++]; });
               multiplyFast(k, stage, next, operands, results);
               addAll(operands, results);
               results.push_back(next);
               return results;
             });
  carried.truncate(numSums);
  return carried;
}

SmallVector<Value> Accumulator::loopPromoted() {
  SmallVector<Value> initial(
      kernel.layout.subtiles * kernel.layout.getRegisters(), b.f32(0.0f));
  initial.push_back(b.i32(0));
  SmallVector<Value> carried =
      b.loop(tile.kBegin, tile.kEnd, b.i32(1), initial,
             [&](Value k, ValueRange carried) -> SmallVector<Value> {
               Value stage = carried.back();
               waitFor(k, stage);
               copy(b.add(k, config.getStages() - 1), getPrevious(stage));
               SmallVector<Value> results(carried.drop_back());
               multiplyPromoted(stage, results);
               results.push_back(getNext(stage));
               return results;
             });
  carried.pop_back();
  return carried;
}

SmallVector<SmallVector<Value>>
Accumulator::accumulate(llvm::function_ref<void()> prepare) {
  // Others may still read stages of the tile before.
  kernel.synchronize();
  for (int64_t stage = 0; stage < config.getStages() - 1; ++stage)
    copy(b.add(tile.kBegin, stage), b.i32(stage));
  prepare();
  SmallVector<Value> sums = kernel.promotes ? loopPromoted() : loopFast();
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  SmallVector<SmallVector<Value>> subtiles;
  int64_t registers = kernel.layout.getRegisters();
  for (int64_t subtile = 0; subtile < kernel.layout.subtiles; ++subtile)
    subtiles.emplace_back(ArrayRef(sums).slice(subtile * registers, registers));
  return subtiles;
}

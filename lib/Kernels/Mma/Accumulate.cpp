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
           /*first=*/Value()),
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
  return rows.load(base, subtile * kernel.getSubtileStride(), step);
}

Words Accumulator::loadCols(Value stage, int64_t col, int64_t step) const {
  const MatmulLayout &layout = kernel.layout;
  int64_t perTensor = kernel.spec.getResultCols(config.getCols());
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
                   .load(stage, subtile * kernel.getSubtileStride(), step)
             : Value();
}

Value Accumulator::loadColFactors(Value stage, int64_t col,
                                  int64_t step) const {
  return kernel.layout.factorWords
             ? FactorWords(kernel, /*ofRows=*/false).load(stage, col, step)
             : Value();
}

void Accumulator::multiplyFast(Value stage, MutableArrayRef<Value> sums) {
  for (int64_t step = 0; step < getSteps(); ++step) {
    SmallVector<Words> ofRows;
    SmallVector<Value> factors;
    for (int64_t subtile = 0; subtile < config.getSubtiles(); ++subtile) {
      ofRows.push_back(loadRows(stage, subtile, step));
      factors.push_back(loadRowFactors(stage, subtile, step));
    }
    for (int64_t col = 0; col < config.getCols(); col += 16) {
      Words ofCols = loadCols(stage, col, step);
      Value ofColFactors = loadColFactors(stage, col, step);
      for (auto [subtile, words] : llvm::enumerate(ofRows))
        mma.multiply(
            words, ofCols,
            {factors[subtile], ofColFactors, getFactorByte(step)},
            sums.slice(subtile * config.getRegisters() + col / 2, kSums));
    }
  }
}

/// All of a K block for few columns at a time: its sums need few registers.
void Accumulator::multiplyPromoted(Value stage, MutableArrayRef<Value> sums) {
  int64_t subtiles = config.getSubtiles();
  SmallVector<SmallVector<Words>> ofRows(subtiles);
  SmallVector<Promotion::RowFactors> rowFactors;
  for (int64_t subtile = 0; subtile < subtiles; ++subtile) {
    for (int64_t step = 0; step < getSteps(); ++step)
      ofRows[subtile].push_back(loadRows(stage, subtile, step));
    rowFactors.push_back(promotion.loadRows(stage, subtile));
  }
  for (int64_t col = 0; col < config.getCols(); col += 16) {
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
          sums.slice(subtile * config.getRegisters() + col / 2, kSums));
  }
}

SmallVector<SmallVector<Value>>
Accumulator::accumulate(llvm::function_ref<void()> prepare) {
  int64_t stages = config.getStages();
  int64_t registers = config.getSubtiles() * config.getRegisters();
  // Others may still read stages of the tile before.
  kernel.synchronize();
  for (int64_t stage = 0; stage < stages - 1; ++stage)
    copy(b.add(tile.kBegin, stage), b.i32(stage));
  prepare();
  SmallVector<Value> carried(registers, b.f32(0.0f));
  carried.push_back(b.i32(0));
  carried =
      b.loop(tile.kBegin, tile.kEnd, b.i32(1), carried,
             [&](Value k, ValueRange carried) -> SmallVector<Value> {
               Value stage = carried.back();
               NVVM::CpAsyncWaitGroupOp::create(b, stages - 2);
               // Now all have their parts of this block, and are through with
               // the one before, whose stage the next copies go to.
               kernel.synchronize();
               Value isFirst = b.equal(stage, 0);
               copy(b.add(k, stages - 1), b.select(isFirst, b.i32(stages - 1),
                                                   b.sub(stage, b.i32(1))));
               clearOthers(k, stage);
               SmallVector<Value> sums(carried.drop_back());
               if (kernel.promotes)
                 multiplyPromoted(stage, sums);
               else
                 multiplyFast(stage, sums);
               Value next = b.add(stage, 1);
               sums.push_back(b.select(b.equal(next, stages), b.i32(0), next));
               return sums;
             });
  NVVM::CpAsyncWaitGroupOp::create(b, 0);
  SmallVector<SmallVector<Value>> subtiles;
  for (int64_t subtile = 0; subtile < config.getSubtiles(); ++subtile)
    subtiles.emplace_back(ArrayRef(carried).slice(
        subtile * config.getRegisters(), config.getRegisters()));
  return subtiles;
}

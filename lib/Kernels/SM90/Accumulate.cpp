//===- Accumulate.cpp - Sums over K of one consumer warpgroup -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accumulate.h"
#include "../Blocks/BulkCopy.h"
#include "TransposeFragments.h"

#include <numeric>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

RingPosition sm90::advance(KernelBuilder &b, Ring &ring, GemmConfigAttr config,
                           RingPosition position) {
  int64_t parts = config.getBlockParts(), stages = config.getStages();
  if (parts == 1)
    return ring.advance(position);
  Value next = b.add(position.stage, parts);
  Value stays = b.less(next, b.i32(stages));
  return {b.select(stays, next, b.sub(next, b.i32(stages))),
          b.select(stays, position.phase, b.bitXor(position.phase, b.i32(1)))};
}

Accumulator::Accumulator(const MatmulContext &kernel, Ring ring, Value slice,
                         Value group)
    : kernel(kernel), b(kernel.b), spec(kernel.spec), config(kernel.config),
      layout(kernel.layout), ring(ring),
      wgmma(b, config.getCols(), layout.rows, layout.cols), slice(slice),
      group(group) {
  lane = b.bitAnd(kernel.thread, 31);
  Value base = LLVM::PtrToIntOp::create(b, b.getI32Type(), kernel.shared);
  Value sliceBytes = b.mul(slice, layout.rows.getSliceBytes());
  rowsDescriptor = Wgmma::getDescriptor(
      b, layout.rows, b.add(b.add(base, sliceBytes), layout.offsetRows));
  colsDescriptor =
      Wgmma::getDescriptor(b, layout.cols, b.add(base, layout.offsetCols));
}

SmallVector<SmallVector<Value>>
Accumulator::accumulate(const Tile &tile, RingPosition &position,
                        llvm::function_ref<void()> issued) {
  return config.getBlockParts() > 1 ? accumulatePart(tile, position, issued)
                                    : accumulateAll(tile, position, issued);
}

SmallVector<SmallVector<Value>>
Accumulator::accumulatePart(const Tile &tile, RingPosition &position,
                            llvm::function_ref<void()> issued) {
  Tile own = tile;
  own.kBegin = kernel.getPartBegin(tile, group);
  own.kEnd = kernel.getPartBegin(tile, b.add(group, 1));
  Value rounds = kernel.getBlocks(tile).second;
  RingPosition begin = position;
  position = ring.skip(begin, group);
  SmallVector<SmallVector<Value>> sums = accumulateAll(own, position, issued);
  // What a shorter part has in the last round is not its own.
  b.ifThen(b.less(b.sub(own.kEnd, own.kBegin), rounds), [&] {
    ring.waitFull(position);
    ring.release(position.stage, lane);
  });
  position = ring.skip(begin, b.mul(rounds, config.getBlockParts()));
  return sums;
}

SmallVector<SmallVector<Value>>
Accumulator::accumulateAll(const Tile &tile, RingPosition &position,
                           llvm::function_ref<void()> issued) {
  if (layout.liftsInRegisters() || transposesRows(spec, config.getSwapAb()))
    return accumulateLifted(tile, position, issued);
  if (spec.accumulate == Accumulate::Fast)
    return accumulateFast(tile, position, issued);
  bool swapped = config.getSwapAb();
  firstRowInBlock = getFirstInBlock(kernel.getRowSpec(), config.getRows(),
                                    swapped ? tile.n : tile.m);
  firstColInBlock = getFirstInBlock(kernel.getColSpec(), config.getCols(),
                                    swapped ? tile.m : tile.n);
  if (layout.factorsBefore)
    rowsBefore = b.bitAnd(tile.m, 3);
  SmallVector<SmallVector<Value>> sums =
      spec.isMicroscaled()  ? accumulateMicroscaled(tile, position)
      : config.getOverlap() ? accumulateOverlapped(tile, position)
                            : accumulatePromoted(tile, position);
  issued();
  return sums;
}

/// Gives a stage back after all lanes have read their factors.
void Accumulator::release(Value stage) {
  if (layout.rowScales || layout.colScales)
    NVVM::SyncWarpOp::create(b, b.i32(-1));
  ring.release(stage, lane);
}

void Accumulator::clearOthers(const Tile &tile, Value k, Value stage) {
  if (!tile.restK)
    return;
  OwnK own = OwnK::get(b, tile, k, layout.rows.getBlockK());
  b.ifThen(own.isCut, [&] {
    int64_t threads = config.getConsumers() * 128;
    for (auto [operand, offset] : {std::pair{&layout.rows, layout.offsetRows},
                                   {&layout.cols, layout.offsetCols}})
      operand->clearOutside(
          b,
          b.offset(kernel.shared,
                   b.add(b.mul(stage, operand->getBytes()), offset)),
          own.begin, own.end, kernel.thread, threads);
    fenceForBulkCopies(b);
    b.namedBarrier(b.i32(kAllConsumersBarrier), threads);
  });
}

std::pair<Value, Value> Accumulator::getDescriptors(Value stage) {
  return {
      Wgmma::advance(b, rowsDescriptor, b.mul(stage, layout.rows.getBytes())),
      Wgmma::advance(b, colsDescriptor, b.mul(stage, layout.cols.getBytes()))};
}

Value Accumulator::multiply(int64_t subtile, Value stage, Value accumulator,
                            bool overwrite) {
  auto [rows, cols] = getDescriptors(stage);
  // Subtiles of the warpgroups that share the tile alternate.
  rows = Wgmma::advance(
      b, rows, subtile * config.getSharers() * layout.rows.getSliceBytes());
  return wgmma.multiply(b, rows, cols, accumulator, overwrite);
}

//===----------------------------------------------------------------------===//
// Fast
//===----------------------------------------------------------------------===//

SmallVector<Value>
Accumulator::multiplyAll(Value stage, ValueRange accumulators, bool overwrite) {
  NVVM::WgmmaFenceAlignedOp::create(b);
  SmallVector<Value> results;
  for (auto [subtile, accumulator] : llvm::enumerate(accumulators))
    results.push_back(multiply(subtile, stage, accumulator, overwrite));
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return results;
}

SmallVector<SmallVector<Value>>
Accumulator::accumulateFast(const Tile &tile, RingPosition &position,
                            llvm::function_ref<void()> issued) {
  int64_t subtiles = config.getSubtiles();
  // A part of K, or a group of it, may have no blocks at all.
  bool mayBeEmpty = config.getSplitK() > 1 || tile.restK;
  // The next block may be under way before the last is waited for, whose stage
  // is then given back.
  int64_t pending = config.getPending();
  SmallVector<Value> carried;
  Value begin = tile.kBegin, previous = b.i32(0);
  auto settle = [&](Value stage) {
    NVVM::WgmmaWaitGroupSyncOp::create(b, pending);
    ring.release(stage, lane);
  };
  if (mayBeEmpty) {
    carried.assign(subtiles, wgmma.getZeros(b));
  } else {
    // The first block overwrites: no accumulator is cleared.
    SmallVector<Value> undefined(subtiles, wgmma.getUndefined(b));
    ring.waitFull(position);
    carried = multiplyAll(position.stage, undefined, /*overwrite=*/true);
    if (pending == 0)
      settle(position.stage);
    previous = position.stage;
    position = ring.advance(position);
    begin = b.add(begin, 1);
  }
  carried.append({position.stage, position.phase, previous});
  SmallVector<Value> final = b.loop(
      begin, tile.kEnd, b.i32(1), carried, [&](Value k, ValueRange carried) {
        RingPosition at{carried[subtiles], carried[subtiles + 1]};
        ring.waitFull(at);
        clearOthers(tile, k, at.stage);
        SmallVector<Value> next =
            multiplyAll(at.stage, carried.take_front(subtiles),
                        /*overwrite=*/false);
        settle(pending ? carried.back() : at.stage);
        RingPosition after = ring.advance(at);
        next.append({after.stage, after.phase, at.stage});
        return next;
      });
  position = {final[subtiles], final[subtiles + 1]};
  issued();

  SmallVector<Value> registers;
  for (int64_t subtile = 0; subtile < subtiles; ++subtile)
    registers.append(wgmma.getRegisters(b, final[subtile]));
  registers = waitForAccumulators(b, 0, registers);
  if (pending)
    ring.release(final.back(), lane);
  SmallVector<SmallVector<Value>> sums;
  for (int64_t subtile = 0; subtile < subtiles; ++subtile)
    sums.emplace_back(ArrayRef(registers).slice(
        subtile * wgmma.getNumRegisters(), wgmma.getNumRegisters()));
  return sums;
}

//===----------------------------------------------------------------------===//
// Promoted
//===----------------------------------------------------------------------===//

/// Waits for a product. The next one goes to the registers that it leaves: to
/// those that it had before the wait, it would have to be copied in flight.
SmallVector<Value> Accumulator::takeProduct(Value &product, int64_t pending) {
  SmallVector<Value> terms =
      waitForAccumulators(b, pending, wgmma.getRegisters(b, product));
  product = wgmma.getUndefined(b);
  for (auto [i, term] : llvm::enumerate(terms))
    product = LLVM::InsertValueOp::create(b, product, term, int64_t(i));
  return terms;
}

/// The factors of rows 16 w + l / 4 and + 8 of the subtile.
std::array<Value, 2> Accumulator::loadRowFactors(int64_t subtile, Value stage) {
  if (!layout.rowScales)
    return {};
  Value place =
      b.offset(kernel.shared, b.add(b.mul(stage, layout.rowScaleStride),
                                    layout.offsetRowScales));
  Value subtileRow =
      b.add(b.mul(slice, 64), subtile * config.getSharers() * 64);
  Type f32 = b.getF32Type();
  if (kernel.getRowSpec().scale == ScaleBlock::Block128) {
    Value row =
        firstRowInBlock ? b.add(subtileRow, firstRowInBlock) : subtileRow;
    Value factor = b.load(b.offset(place, b.mul(b.div(row, 128), 4)), f32);
    return {factor, factor};
  }
  Value row =
      b.add(subtileRow,
            b.add(b.mul(b.shiftRight(b.bitAnd(kernel.thread, 127), 5), 16),
                  b.shiftRight(lane, 2)));
  if (rowsBefore && !config.getSwapAb())
    row = b.add(row, rowsBefore);
  Value address = b.offset(place, b.mul(row, 4));
  return {b.load(address, f32), b.load(b.offset(address, b.i32(32)), f32)};
}

Value Accumulator::getFirstInBlock(const OperandSpec &operand, int64_t extent,
                                   Value first) {
  if (operand.scale != ScaleBlock::Block128 || extent % 128 == 0 ||
      128 % extent == 0)
    return Value();
  return b.rem(first, 128);
}

Accumulator::ColFactors Accumulator::loadColFactors(Value stage) {
  ColFactors factors;
  if (!layout.colScales)
    return factors;
  Value place =
      b.offset(kernel.shared, b.add(b.mul(stage, layout.colScaleStride),
                                    layout.offsetColScales));
  Type f32 = b.getF32Type();
  int64_t groups = config.getCols() / 8;
  if (kernel.getColSpec().scale == ScaleBlock::Block128) {
    for (int64_t i = 0; i < layout.colScales; ++i)
      factors.blocks.push_back(b.load(b.offset(place, b.i32(4 * i)), f32));
    return factors;
  }
  Value quad = b.mul(b.bitAnd(lane, 3), 8);
  bool isMoved = rowsBefore && config.getSwapAb();
  if (isMoved)
    quad = b.add(quad, b.mul(rowsBefore, 4));
  for (int64_t j = 0; j < groups; ++j) {
    // Two of them are aligned only where the tile begins with the stage.
    if (isMoved) {
      for (int64_t e = 0; e < 2; ++e)
        factors.columns.push_back(
            b.load(b.offset(place, b.add(quad, j * 32 + e * 4)), f32));
      continue;
    }
    Value pair =
        b.load(b.offset(place, b.add(quad, j * 32)), VectorType::get({2}, f32));
    for (int64_t e = 0; e < 2; ++e)
      factors.columns.push_back(
          LLVM::ExtractElementOp::create(b, pair, b.i32(e)));
  }
  return factors;
}

SmallVector<Value> Accumulator::getBlockFactors(Value rowFactor,
                                                ArrayRef<Value> blocks) {
  SmallVector<Value> ofBlocks;
  for (Value block : blocks)
    ofBlocks.push_back(rowFactor ? b.mulF(rowFactor, block) : block);
  // Columns of one tensor, and how many factors it has of them.
  int64_t cols = spec.getResultCols(config.getCols());
  int64_t perTensor = layout.colScales * cols / config.getCols();
  int64_t step = std::gcd(cols, int64_t(128));
  // From the loop's outside there would be a predicate for each comparison.
  Value first = firstColInBlock ? launder(b, firstColInBlock) : Value();
  SmallVector<Value> factors;
  for (int64_t col = 0; col < config.getCols(); col += 8) {
    if (!first) {
      factors.push_back(ofBlocks[col / cols * perTensor + col % cols / 128]);
      continue;
    }
    if (col % step == 0) {
      Value factor = ofBlocks.back();
      for (int64_t i = ofBlocks.size() - 2; (i + 1) * 128 > col; --i)
        factor = b.select(b.less(first, b.i32((i + 1) * 128 - col)),
                          ofBlocks[i], factor);
      factors.push_back(factor);
    } else {
      factors.push_back(factors.back());
    }
  }
  return factors;
}

SmallVector<Value> Accumulator::promote(ArrayRef<Value> product,
                                        ValueRange sums,
                                        std::array<Value, 2> rowFactors,
                                        const ColFactors &colFactors) {
  SmallVector<Value> ofBlocks[2];
  if (!colFactors.blocks.empty())
    for (auto [ofRow, row] : llvm::zip_equal(ofBlocks, rowFactors))
      ofRow = getBlockFactors(row, colFactors.blocks);
  SmallVector<Value> results;
  for (auto [i, term, sum] : llvm::enumerate(product, sums)) {
    int64_t rowOfPair = (i >> 1) & 1, group = i >> 2;
    Value factor = rowFactors[rowOfPair];
    if (!colFactors.blocks.empty()) {
      factor = ofBlocks[rowOfPair][group];
    } else if (!colFactors.columns.empty()) {
      Value col = colFactors.columns[2 * group + (i & 1)];
      factor = factor ? b.mulF(factor, col) : col;
    }
    results.push_back(
        factor ? LLVM::FMAOp::create(b, b.getF32Type(), term, factor, sum)
               : Value(arith::AddFOp::create(b, term, sum)));
  }
  return results;
}

/// The sums of the first block, subtile after subtile: nothing is cleared, and
/// without factors nothing is added.
SmallVector<Value> Accumulator::beginPromoted(RingPosition at) {
  ring.waitFull(at);
  ColFactors colFactors = loadColFactors(at.stage);
  SmallVector<Value> sums;
  for (int64_t subtile = 0; subtile < config.getSubtiles(); ++subtile) {
    std::array<Value, 2> rowFactors = loadRowFactors(subtile, at.stage);
    NVVM::WgmmaFenceAlignedOp::create(b);
    Value product =
        multiply(subtile, at.stage, wgmma.getUndefined(b), /*overwrite=*/true);
    NVVM::WgmmaGroupSyncAlignedOp::create(b);
    SmallVector<Value> terms = takeProduct(product, /*pending=*/0);
    if (layout.rowScales || layout.colScales) {
      SmallVector<Value> zeros(terms.size(), b.f32(0.0f));
      terms = promote(terms, zeros, rowFactors, colFactors);
    }
    sums.append(terms);
  }
  release(at.stage);
  return sums;
}

SmallVector<SmallVector<Value>>
Accumulator::accumulatePromoted(const Tile &tile, RingPosition &position) {
  int64_t subtiles = config.getSubtiles(), registers = wgmma.getNumRegisters();
  SmallVector<Value> initial;
  Value begin = tile.kBegin;
  // A part of K, or a group of it, may have no blocks at all. And beside a loop
  // that has nearly all registers ptxas finds none for what comes before it.
  bool mayBeEmpty = config.getSplitK() > 1 || tile.restK;
  if (mayBeEmpty ||
      (subtiles + 1) * registers > layout.consumerRegisters - 32) {
    initial.assign(subtiles * registers, b.f32(0.0f));
  } else {
    initial = beginPromoted(position);
    position = ring.advance(position);
    begin = b.add(begin, 1);
  }
  initial.append({position.stage, position.phase, ring.isFull(position)});
  auto body = [&](Value k, ValueRange carried) {
    ValueRange stage = carried.take_back(3);
    RingPosition at{stage[0], stage[1]}, after = ring.advance(at);
    Value ready = stage[2];
    ring.waitFull(at, ready);
    clearOthers(tile, k, at.stage);
    ColFactors colFactors = loadColFactors(at.stage);
    SmallVector<Value> next;
    Value product = wgmma.getUndefined(b);
    for (int64_t subtile = 0; subtile < subtiles; ++subtile) {
      std::array<Value, 2> rowFactors = loadRowFactors(subtile, at.stage);
      NVVM::WgmmaFenceAlignedOp::create(b);
      // Every subtile writes the same registers.
      product = multiply(subtile, at.stage, product, /*overwrite=*/true);
      NVVM::WgmmaGroupSyncAlignedOp::create(b);
      SmallVector<Value> terms = takeProduct(product, /*pending=*/0);
      if (subtile == subtiles - 1) {
        release(at.stage);
        // The additions hide the way to the next stage's barrier and back.
        ready = ring.isFull(after);
      }
      SmallVector<Value> sums =
          promote(terms, carried.slice(subtile * registers, registers),
                  rowFactors, colFactors);
      if (subtile < subtiles - 1)
        sums = pinHere(b, sums);
      next.append(sums);
    }
    next.append({after.stage, after.phase, ready});
    return next;
  };
  SmallVector<Value> final = b.loop(begin, tile.kEnd, b.i32(1), initial, body);
  position = {final[subtiles * registers], final[subtiles * registers + 1]};
  SmallVector<SmallVector<Value>> sums;
  for (int64_t subtile = 0; subtile < subtiles; ++subtile)
    sums.emplace_back(ArrayRef(final).slice(subtile * registers, registers));
  return sums;
}

//===----------------------------------------------------------------------===//
// Promoted, overlapped
//===----------------------------------------------------------------------===//

Value Accumulator::issue(RingPosition position, Value accumulator) {
  ring.waitFull(position);
  NVVM::WgmmaFenceAlignedOp::create(b);
  Value product =
      multiply(/*subtile=*/0, position.stage, accumulator, /*overwrite=*/true);
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return product;
}

SmallVector<Value> Accumulator::drain(RingPosition position, Value &product,
                                      ValueRange sums, int64_t pending) {
  std::array<Value, 2> rowFactors =
      loadRowFactors(/*subtile=*/0, position.stage);
  ColFactors colFactors = loadColFactors(position.stage);
  SmallVector<Value> terms = takeProduct(product, pending);
  release(position.stage);
  return pinHere(b, promote(terms, sums, rowFactors, colFactors));
}

SmallVector<SmallVector<Value>>
Accumulator::accumulateOverlapped(const Tile &tile, RingPosition &position) {
  int64_t registers = wgmma.getNumRegisters();
  // Two blocks an iteration, so that each set of accumulators has registers of
  // its own: what is in flight cannot be moved.
  Value rest = b.sub(b.sub(tile.kEnd, tile.kBegin), b.i32(1));
  SmallVector<Value> carried(registers, b.f32(0.0f));
  Value first = issue(position, wgmma.getUndefined(b));
  carried.append({first, position.stage, position.phase});
  carried = b.loop(b.i32(0), b.shiftRight(rest, 1), b.i32(1), carried,
                   [&](Value, ValueRange carried) {
                     SmallVector<Value> sums(carried.take_front(registers));
                     Value even = carried[registers];
                     RingPosition evenAt{carried[registers + 1],
                                         carried[registers + 2]};
                     RingPosition oddAt = ring.advance(evenAt);
                     Value odd = issue(oddAt, wgmma.getUndefined(b));
                     sums = drain(evenAt, even, sums, /*pending=*/1);
                     evenAt = ring.advance(oddAt);
                     even = issue(evenAt, even);
                     sums = drain(oddAt, odd, sums, /*pending=*/1);
                     sums.append({even, evenAt.stage, evenAt.phase});
                     return sums;
                   });
  Value last = carried[registers];
  RingPosition lastAt{carried[registers + 1], carried[registers + 2]};
  ArrayRef<Value> sums = ArrayRef(carried).take_front(registers);
  auto finish = [&](SmallVector<Value> sums, RingPosition at) {
    RingPosition after = ring.advance(at);
    sums.append({after.stage, after.phase});
    return sums;
  };
  SmallVector<Value> final = b.choose(
      b.equal(b.bitAnd(rest, 1), 1),
      [&] {
        RingPosition oddAt = ring.advance(lastAt);
        Value even = last, odd = issue(oddAt, wgmma.getUndefined(b));
        SmallVector<Value> first = drain(lastAt, even, sums, /*pending=*/1);
        return finish(drain(oddAt, odd, first, /*pending=*/0), oddAt);
      },
      [&] {
        Value even = last;
        return finish(drain(lastAt, even, sums, /*pending=*/0), lastAt);
      });
  position = {final[registers], final[registers + 1]};
  final.truncate(registers);
  return {final};
}

//===- Accumulate.cpp - Sums over K of one consumer warpgroup -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Accumulate.h"

using namespace mlir;
using namespace mlir::fp8;

static const OperandSpec &getRowSpec(const MatmulSpec &spec,
                                     GemmConfigAttr config) {
  return config.getSwapAb() ? spec.b : spec.a;
}

static const OperandSpec &getColSpec(const MatmulSpec &spec,
                                     GemmConfigAttr config) {
  return config.getSwapAb() ? spec.a : spec.b;
}

Accumulator::Accumulator(KernelBuilder &b, const MatmulSpec &spec,
                         GemmConfigAttr config, const MatmulLayout &layout,
                         Ring ring, Value shared, Value slice, Value thread)
    : b(b), spec(spec), config(config), layout(layout), ring(ring),
      wgmma(b, config.getCols(), getRowSpec(spec, config).elementType,
            getColSpec(spec, config).elementType),
      shared(shared), slice(slice), thread(thread) {
  lane = b.bitAnd(thread, 31);
  Value base = LLVM::PtrToIntOp::create(b, b.getI32Type(), shared);
  Value sliceBytes = b.mul(slice, 64 * GemmConfigAttr::kTileK);
  rowsDescriptor = Wgmma::getDescriptor(
      b, b.add(b.add(base, sliceBytes), layout.offsetRows));
  colsDescriptor = Wgmma::getDescriptor(b, b.add(base, layout.offsetCols));
}

SmallVector<SmallVector<Value>>
Accumulator::accumulate(const Tile &tile, RingPosition &position) {
  return spec.accumulate == Accumulate::Fast
             ? accumulateFast(tile, position)
             : accumulatePromoted(tile, position);
}

Value Accumulator::multiply(int64_t wave, Value stage, Value accumulator,
                            bool overwrite) {
  Value rows =
      Wgmma::advance(b, rowsDescriptor, b.mul(stage, layout.rowsBytes));
  Value cols =
      Wgmma::advance(b, colsDescriptor, b.mul(stage, layout.colsBytes));
  // Waves of the warpgroups that share the tile alternate.
  rows = Wgmma::advance(
      b, rows, wave * config.getSharers() * 64 * GemmConfigAttr::kTileK);
  return wgmma.multiply(b, rows, cols, accumulator, overwrite);
}

//===----------------------------------------------------------------------===//
// Fast
//===----------------------------------------------------------------------===//

SmallVector<Value>
Accumulator::multiplyAll(Value stage, ValueRange accumulators, bool overwrite) {
  NVVM::WgmmaFenceAlignedOp::create(b);
  SmallVector<Value> results;
  for (auto [wave, accumulator] : llvm::enumerate(accumulators))
    results.push_back(multiply(wave, stage, accumulator, overwrite));
  NVVM::WgmmaGroupSyncAlignedOp::create(b);
  return results;
}

SmallVector<SmallVector<Value>>
Accumulator::accumulateFast(const Tile &tile, RingPosition &position) {
  int64_t waves = config.getWaves();
  SmallVector<Value> accumulators;
  Value begin = tile.kBegin;
  // The other warpgroups keep the tensor cores busy while this one waits.
  auto step = [&](RingPosition at, ValueRange current, bool overwrite) {
    ring.waitFull(at);
    SmallVector<Value> next = multiplyAll(at.stage, current, overwrite);
    NVVM::WgmmaWaitGroupSyncOp::create(b, 0);
    ring.release(at.stage, lane);
    return next;
  };
  if (config.getSplitK() == 1) {
    // The first block overwrites: no accumulator is cleared.
    SmallVector<Value> undefined(waves, wgmma.getUndefined(b));
    accumulators = step(position, undefined, /*overwrite=*/true);
    position = ring.advance(position);
    begin = b.add(begin, 1);
  } else {
    // A part of K may have no blocks at all.
    accumulators.assign(waves, wgmma.getZeros(b));
  }
  accumulators.append({position.stage, position.phase});
  SmallVector<Value> final = b.loop(
      begin, tile.kEnd, b.i32(1), accumulators, [&](Value, ValueRange carried) {
        RingPosition at{carried[waves], carried[waves + 1]};
        SmallVector<Value> next =
            step(at, carried.take_front(waves), /*overwrite=*/false);
        RingPosition after = ring.advance(at);
        next.append({after.stage, after.phase});
        return next;
      });
  position = {final[waves], final[waves + 1]};

  SmallVector<Value> registers;
  for (int64_t wave = 0; wave < waves; ++wave)
    registers.append(wgmma.getRegisters(b, final[wave]));
  registers = waitForAccumulators(b, 0, registers);
  SmallVector<SmallVector<Value>> sums;
  for (int64_t wave = 0; wave < waves; ++wave)
    sums.emplace_back(ArrayRef(registers).slice(wave * wgmma.getNumRegisters(),
                                                wgmma.getNumRegisters()));
  return sums;
}

//===----------------------------------------------------------------------===//
// Promoted
//===----------------------------------------------------------------------===//

/// The factors of rows 16 w + l / 4 and + 8 of the wave.
std::array<Value, 2> Accumulator::loadRowFactors(int64_t wave, Value stage) {
  if (!layout.rowScales)
    return {};
  Value slot = b.offset(shared, b.add(b.mul(stage, layout.rowScales * 4),
                                      layout.offsetRowScales));
  Value waveRow = b.add(b.mul(slice, 64), wave * config.getSharers() * 64);
  Type f32 = b.getF32Type();
  if (getRowSpec(spec, config).scale == ScaleBlock::Block128) {
    Value factor = b.load(b.offset(slot, b.mul(b.div(waveRow, 128), 4)), f32);
    return {factor, factor};
  }
  Value row =
      b.add(waveRow, b.add(b.mul(b.shiftRight(b.bitAnd(thread, 127), 5), 16),
                           b.shiftRight(lane, 2)));
  Value address = b.offset(slot, b.mul(row, 4));
  return {b.load(address, f32), b.load(b.offset(address, b.i32(32)), f32)};
}

/// The factors of the thread's columns, two for each group of 8; or one for all
/// of 128.
SmallVector<Value> Accumulator::loadColFactors(Value stage) {
  SmallVector<Value> factors;
  if (!layout.colScales)
    return factors;
  Value slot = b.offset(shared, b.add(b.mul(stage, layout.colScales * 4),
                                      layout.offsetColScales));
  Type f32 = b.getF32Type();
  int64_t groups = config.getCols() / 8;
  if (getColSpec(spec, config).scale == ScaleBlock::Block128) {
    SmallVector<Value> blocks;
    for (int64_t i = 0; i < layout.colScales; ++i)
      blocks.push_back(b.load(b.offset(slot, b.i32(4 * i)), f32));
    for (int64_t j = 0; j < groups; ++j)
      factors.append(2, blocks[j * 8 / 128]);
    return factors;
  }
  Value quad = b.mul(b.bitAnd(lane, 3), 8);
  for (int64_t j = 0; j < groups; ++j) {
    Value pair =
        b.load(b.offset(slot, b.add(quad, j * 32)), VectorType::get({2}, f32));
    for (int64_t e = 0; e < 2; ++e)
      factors.push_back(LLVM::ExtractElementOp::create(b, pair, b.i32(e)));
  }
  return factors;
}

SmallVector<Value> Accumulator::promote(ArrayRef<Value> product,
                                        ValueRange sums,
                                        std::array<Value, 2> rowFactors,
                                        ArrayRef<Value> colFactors) {
  SmallVector<Value> results;
  for (auto [i, term, sum] : llvm::enumerate(product, sums)) {
    Value row = rowFactors[(i >> 1) & 1];
    Value col =
        colFactors.empty() ? Value() : colFactors[2 * (i >> 2) + (i & 1)];
    Value factor = row && col ? b.mulF(row, col) : row ? row : col;
    results.push_back(
        factor ? LLVM::FMAOp::create(b, b.getF32Type(), term, factor, sum)
               : Value(arith::AddFOp::create(b, term, sum)));
  }
  return results;
}

SmallVector<SmallVector<Value>>
Accumulator::accumulatePromoted(const Tile &tile, RingPosition &position) {
  int64_t waves = config.getWaves(), registers = wgmma.getNumRegisters();
  SmallVector<Value> initial(waves * registers, b.f32(0.0f));
  initial.append({position.stage, position.phase});
  auto body = [&](Value, ValueRange carried) {
    RingPosition at{carried[carried.size() - 2], carried.back()};
    ring.waitFull(at);
    SmallVector<Value> colFactors = loadColFactors(at.stage);
    SmallVector<Value> next;
    Value product = wgmma.getUndefined(b);
    for (int64_t wave = 0; wave < waves; ++wave) {
      std::array<Value, 2> rowFactors = loadRowFactors(wave, at.stage);
      NVVM::WgmmaFenceAlignedOp::create(b);
      // Every wave writes the same registers.
      product = multiply(wave, at.stage, product, /*overwrite=*/true);
      NVVM::WgmmaGroupSyncAlignedOp::create(b);
      SmallVector<Value> terms =
          waitForAccumulators(b, 0, wgmma.getRegisters(b, product));
      if (wave == waves - 1) {
        // All lanes have read their factors before one of them gives the slot
        // back.
        if (layout.rowScales || layout.colScales)
          NVVM::SyncWarpOp::create(b, b.i32(-1));
        ring.release(at.stage, lane);
      }
      SmallVector<Value> sums =
          promote(terms, carried.slice(wave * registers, registers), rowFactors,
                  colFactors);
      if (wave < waves - 1)
        sums = pinHere(b, sums);
      next.append(sums);
    }
    RingPosition after = ring.advance(at);
    next.append({after.stage, after.phase});
    return next;
  };
  SmallVector<Value> final =
      b.loop(tile.kBegin, tile.kEnd, b.i32(1), initial, body);
  position = {final[waves * registers], final[waves * registers + 1]};
  SmallVector<SmallVector<Value>> sums;
  for (int64_t wave = 0; wave < waves; ++wave)
    sums.emplace_back(ArrayRef(final).slice(wave * registers, registers));
  return sums;
}

//===- Producer.cpp - The warps that fill the ring of a matmul ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Producer.h"
#include "../Blocks/BulkCopy.h"
#include "../Blocks/OperandCopy.h"
#include "../Matmul/MatmulArguments.h"
#include "../Matmul/ScaleFactorCopy.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Every `stride`-th bit, `count` of them, moved by `shift` if that is not
/// null (i16).
static Value getMask(KernelBuilder &b, int64_t count, int64_t stride,
                     Value shift) {
  int64_t bits = 0;
  for (int64_t i = 0; i < count; ++i)
    bits |= int64_t(1) << (i * stride);
  Value mask = arith::ConstantOp::create(b, b.getI16IntegerAttr(bits));
  if (!shift)
    return mask;
  shift = arith::TruncIOp::create(b, b.getI16Type(), shift);
  return arith::ShLIOp::create(b, mask, shift);
}

/// The operands of a tile, of a pair's B both tensors.
static SmallVector<SharedOperand> getOperands(const MatmulContext &kernel,
                                              const Tile &tile) {
  KernelBuilder &b = kernel.b;
  GemmConfigAttr config = kernel.config;
  const MatmulLayout &layout = kernel.layout;
  int64_t cluster = config.getClusterRows(),
          clusterCols = config.getClusterCols();
  // Blocks of one rank along the rows have the same rows, and the other way
  // around.
  Value rowBlocks, colBlocks;
  if (clusterCols > 1)
    rowBlocks = getMask(b, clusterCols, cluster,
                        cluster > 1 ? kernel.rankOfRows : Value());
  if (cluster > 1)
    colBlocks =
        getMask(b, cluster, 1,
                clusterCols > 1 ? b.mul(kernel.rankOfCols, cluster) : Value());
  bool skipsZeros = TileConfig::get(config).skipsZeros();
  SmallVector<SharedOperand> operands;
  auto add = [&](bool ofRows, bool isSecond) {
    StringRef name = ofRows ? kernel.getRowName() : kernel.getColName();
    bool isA = name == "a";
    auto getMap = [&](StringRef part) {
      return isSecond ? kernel.getParam(getNameOfResult(name, 1) + part)
                      : kernel.getParam(tile, name, part);
    };
    bool isPacked = layout.lift && !isA;
    const OperandTile &part = isPacked ? layout.lift->packed
                              : ofRows ? layout.rows
                                       : layout.colsPart;
    int64_t offset = isPacked ? layout.lift->offsetCodes
                     : ofRows ? layout.offsetRows
                              : layout.offsetCols;
    int64_t stride = isPacked
                         ? layout.lift->codeStride
                         : layout.stageBlocks *
                               (ofRows ? layout.rows : layout.cols).getBytes();
    Value end;
    if (skipsZeros && !isPacked && endsWithTensor(kernel.spec, name))
      end = kernel.getParam(tile, isA ? "m" : "n");
    operands.push_back(
        SharedOperand{getMap(".map"), &part, isA ? tile.m : tile.n,
                      kernel.spec.hasBatch(name) ? tile.batch : Value(),
                      offset + (isSecond ? part.getBytes() : 0), stride,
                      ofRows ? kernel.rankOfCols : kernel.rankOfRows,
                      ofRows ? rowBlocks : colBlocks, end, getMap(".tail")});
  };
  add(/*ofRows=*/true, /*isSecond=*/false);
  add(/*ofRows=*/false, /*isSecond=*/false);
  if (kernel.spec.isDual())
    add(/*ofRows=*/false, /*isSecond=*/true);
  return operands;
}

/// The factors of A, or of B, that a bulk copy brings; it fills what is out of
/// bounds with zeros.
static void copyFactors(const MatmulContext &kernel, bool ofA, const Tile &tile,
                        const RingStage &stage) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  bool ofRows = ofA != kernel.config.getSwapAb();
  if (!(ofRows ? layout.rowScalesInBulk : layout.colScalesInBulk))
    return;
  StringRef name = ofA ? "scale_a" : "scale_b";
  Value k = stage.k;
  // K of a group begins with a block of factors.
  if (stage.firstK)
    k = b.add(k, b.div(stage.firstK, layout.rows.getBlockK()));
  SmallVector<Value> coordinates{ofA ? tile.m : tile.n, k};
  if (ofA && layout.factorsBefore)
    coordinates.front() = b.bitAnd(tile.m, -4);
  if (kernel.spec.hasBatch(name))
    coordinates.push_back(tile.batch);
  int64_t stride = ofRows ? layout.rowScaleStride : layout.colScaleStride;
  int64_t offset = ofRows ? layout.offsetRowScales : layout.offsetColScales;
  int64_t factors = ofRows ? layout.rowScales : layout.colScales;
  int64_t boxes = getFactorBoxes(factors), box = factors / boxes;
  Value place = b.add(b.mul(stage.position.stage, stride), offset);
  Value first = coordinates.front();
  for (int64_t i = 0; i < boxes; ++i) {
    if (i > 0)
      coordinates.front() = b.add(first, i * box);
    bulkLoad(b, kernel.getParam(tile, name, ".map"),
             b.offset(kernel.shared, i > 0 ? b.add(place, i * box * 4) : place),
             stage.barrier, coordinates);
  }
}

/// The exponents of packed weights, of a pair those of both tensors.
static void copyExponents(const MatmulContext &kernel, const Tile &tile,
                          const RingStage &stage, Value barrier) {
  KernelBuilder &b = kernel.b;
  const LiftLayout &lift = *kernel.layout.lift;
  int64_t tensors = kernel.spec.isDual() ? 2 : 1;
  SmallVector<Value> coordinates{tile.n, b.mul(stage.k, lift.blocks)};
  if (kernel.spec.hasBatch("exponents"))
    coordinates.push_back(tile.batch);
  Value place = b.add(b.mul(stage.position.stage, lift.exponentStride),
                      lift.offsetExponents);
  Value first = coordinates[1];
  for (int64_t block = 0; block < lift.blocks; ++block) {
    if (block > 0)
      coordinates[1] = b.add(first, block);
    for (int64_t number = 0; number < tensors; ++number) {
      StringRef name = "exponents";
      Value map = number ? kernel.getParam(getNameOfResult(name, 1) + ".map")
                         : kernel.getParam(tile, name, ".map");
      int64_t inStage =
          block * lift.getExponentStep() + number * 4 * lift.extent / tensors;
      bulkLoad(b, map, b.offset(kernel.shared, b.add(place, inStage)), barrier,
               coordinates);
    }
  }
}

/// Everything of a stage, whose full barrier knows how many bytes come; packed
/// weights and exponents arrive at the barrier of those who lift them.
static void copyStage(const MatmulContext &kernel, const Tile &tile,
                      ArrayRef<SharedOperand> operands, RingStage stage,
                      std::optional<Ring> packed) {
  KernelBuilder &b = kernel.b;
  int64_t blocks = kernel.layout.stageBlocks;
  for (const SharedOperand &operand : operands) {
    RingStage own = stage;
    bool isPacked =
        kernel.layout.lift && operand.tile == &kernel.layout.lift->packed;
    if (packed && isPacked)
      own.barrier = packed->getFullBarrier(stage.position.stage);
    if (isPacked || blocks == 1) {
      copyOperand(b, kernel.shared, operand, own);
      continue;
    }
    // Rows of a K block are as wide as they can be.
    SharedOperand ofBlock = operand;
    for (int64_t block = 0; block < blocks; ++block) {
      own.k = b.add(b.mul(stage.k, blocks), block);
      ofBlock.offset = operand.offset + block * operand.tile->getBytes();
      copyOperand(b, kernel.shared, ofBlock, own);
    }
  }
  if (kernel.layout.lift && !kernel.hasLiftFactorWarp())
    copyExponents(kernel, tile, stage,
                  packed ? packed->getFullBarrier(stage.position.stage)
                         : stage.barrier);
  for (bool ofA : {true, false})
    copyFactors(kernel, ofA, tile, stage);
}

void sm90::buildOperandProducer(const MatmulContext &kernel,
                                const TileScheduler &scheduler, Ring ring,
                                std::optional<Ring> packed, int64_t turn) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  int64_t bytesOfFactors = (layout.rowScalesInBulk ? 4 * layout.rowScales : 0) +
                           (layout.colScalesInBulk ? 4 * layout.colScales : 0);
  int64_t bytesOfOperands = layout.rows.getBytes() + layout.cols.getBytes();
  int64_t blocks = layout.stageBlocks;
  if (layout.lift)
    bytesOfOperands =
        blocks *
        (kernel.config.getSwapAb() ? layout.cols : layout.rows).getBytes();
  int64_t bytesOfPacked = 0;
  if (layout.lift)
    bytesOfPacked =
        layout.lift->codeStride +
        (kernel.hasLiftFactorWarp() ? 0 : blocks * 4 * layout.lift->extent);
  if (layout.liftsInRegisters())
    bytesOfFactors += bytesOfPacked;
  Value bytes = b.i32(bytesOfFactors + bytesOfOperands);
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(1)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           SmallVector<SharedOperand> operands = getOperands(kernel, tile);
           Value bytesInBounds = b.i32(bytesOfFactors);
           for (const SharedOperand &operand : operands)
             if (!layout.lift || operand.tile != &layout.lift->packed)
               bytesInBounds =
                   b.add(bytesInBounds,
                         b.mul(operand.end ? getBytesInBounds(b, operand)
                                           : b.i32(operand.tile->getBytes()),
                               blocks));
           auto copyBlocks = [&](Value from, Value to, bool hasZeros,
                                 ValueRange carried) {
             return kernel.loopOverBlocks(
                 tile, from, to, carried,
                 [&](Value k, ValueRange carried) -> SmallVector<Value> {
                   RingPosition position{carried[0], carried[1]};
                   ring.waitEmpty(position);
                   ring.expectBytes(position.stage,
                                    hasZeros ? bytesInBounds : bytes);
                   if (packed)
                     packed->expectBytes(position.stage, b.i32(bytesOfPacked));
                   RingStage stage{position,
                                   ring.getFullBarrier(position.stage), k,
                                   tile.firstK, hasZeros};
                   copyStage(kernel, tile, operands, stage, packed);
                   RingPosition next = ring.advance(position);
                   return {next.stage, next.phase};
                 },
                 ring, turn);
           };
           auto [first, last] = kernel.getBlocks(tile);
           if (!TileConfig::get(kernel.config).skipsZeros())
             return copyBlocks(first, last, /*hasZeros=*/false, carried);
           // From here on each stage has held this tile.
           int64_t filled = llvm::divideCeil(kernel.config.getStages(),
                                             kernel.config.getBlockParts());
           Value second = b.min(b.add(first, filled), last);
           SmallVector<Value> position =
               copyBlocks(first, second, /*hasZeros=*/false, carried);
           return copyBlocks(second, last, /*hasZeros=*/true, position);
         });
}

//===----------------------------------------------------------------------===//
// Factors
//===----------------------------------------------------------------------===//

/// The copy of the operand's tensor `number`, of which it has one or, of a
/// pair's B, two.
static ScaleFactorCopy getScaleFactorCopy(const MatmulContext &kernel, bool ofA,
                                          const Tile &tile, int64_t number) {
  const MatmulLayout &layout = kernel.layout;
  bool ofRows = ofA != kernel.config.getSwapAb();
  int64_t inStage = ofRows ? layout.rowScales : layout.colScales;
  int64_t count =
      ofRows ? inStage
             : inStage * layout.colsPart.getBytes() / layout.cols.getBytes();
  int64_t offset = ofRows ? layout.offsetRowScales : layout.offsetColScales;
  return ScaleFactorCopy(
      kernel, tile,
      ScaleFactorCopy::Source{ofA, number, layout.rows.getBlockK()},
      ScaleFactorCopy::Stages{
          kernel.shared, offset + number * count * 4,
          ofRows ? layout.rowScaleStride : layout.colScaleStride, count},
      kernel.lane);
}

void sm90::buildScaleProducer(const MatmulContext &kernel,
                              const TileScheduler &scheduler, Ring ring,
                              int64_t turn) {
  KernelBuilder &b = kernel.b;
  GemmConfigAttr config = kernel.config;
  const MatmulLayout &layout = kernel.layout;
  int64_t tensors = kernel.spec.isDual() ? 2 : 1;
  b.loop(scheduler.getFirst(), scheduler.getCount(), scheduler.getStride(),
         {b.i32(0), b.i32(1)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler.getTile(b, item);
           SmallVector<ScaleFactorCopy> copies;
           if (layout.rowScales && !layout.rowScalesInBulk)
             copies.push_back(getScaleFactorCopy(
                 kernel, /*ofA=*/!config.getSwapAb(), tile, /*number=*/0));
           if (layout.colScales && !layout.colScalesInBulk)
             for (int64_t number = 0; number < tensors; ++number)
               copies.push_back(getScaleFactorCopy(
                   kernel, /*ofA=*/config.getSwapAb(), tile, number));
           auto [first, last] = kernel.getBlocks(tile);
           return kernel.loopOverBlocks(
               tile, first, last, carried,
               [&](Value k, ValueRange carried) -> SmallVector<Value> {
                 RingPosition position{carried[0], carried[1]};
                 ring.waitEmpty(position);
                 for (const ScaleFactorCopy &copy : copies)
                   copy.copy(k, position.stage);
                 // Arrives when this lane's copies have landed; the
                 // barrier counts it from the start (noinc).
                 NVVM::CpAsyncMBarrierArriveOp::create(
                     b, ring.getFullBarrier(position.stage),
                     /*noinc=*/true);
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase};
               },
               ring, turn);
         });
}

//===- Matmul.cpp - The sm_90a matmul kernel ------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Warp-specialized and persistent. One producer warpgroup fills a ring of
// shared memory stages: a warp with bulk tensor copies of the operands and,
// where factors change along K, a second one with the factors. One to three
// consumer warpgroups multiply stages on the tensor cores and store finished
// tiles.
//
//   producer:  for tile: for k: wait empty -> copy A, B (, factors) -> full
//   consumer:  for tile: for k: wait full -> wgmma -> empty;  epilogue; store
//
// Weights that are packed in memory go through warpgroups between the two:
//
//   lifter:    for tile: for k: wait packed -> E4M3, or bf16, of B -> full
//
// Or consumers make bf16 of them, in the registers that wgmma takes A from.

#include "../Matmul/MatmulFunction.h"
#include "Consumer.h"
#include "Lift.h"
#include "LiftBytes.h"
#include "MatmulGenerator.h"
#include "Producer.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

static void buildBarriers(const MatmulContext &kernel, GPUTargetAttr target,
                          Ring &ring, std::optional<Ring> packed) {
  KernelBuilder &b = kernel.b;
  b.ifThen(b.equal(kernel.warp, kernel.config.getConsumers() * 4), [&] {
    b.electOne([&] {
      kernel.prefetchMaps();
      if (std::optional<ClusterSplitK> parts = kernel.getClusterSplitK())
        parts->initialize();
      // The factors arrive with one asynchronous copy per lane.
      ring.initialize(
          /*fullArrivals=*/1 + (kernel.hasFactorWarp() ? 32 : 0) +
              (kernel.hasLiftFactorWarp() && !packed ? 32 : 0) +
              (packed ? kernel.layout.lift->sharing : 0),
          /*emptyArrivals=*/kernel.config.getSharers() * 4);
      if (packed)
        packed->initialize(
            /*fullArrivals=*/1 + (kernel.hasLiftFactorWarp() ? 32 : 0),
            /*emptyArrivals=*/1);
    });
  });
  if (kernel.layout.lift)
    buildLiftTable(kernel);
  kernel.synchronize();
  beginDependentLaunch(b, target.getMultiprocessors());
}

/// The warps that do not multiply.
static void buildProducers(const MatmulContext &kernel,
                           const TileScheduler &scheduler, Ring ring,
                           std::optional<Ring> packed) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  int64_t producerWarp = kernel.config.getConsumers() * 4;
  auto produce = [&] {
    NVVM::SetMaxRegisterOp::create(b, layout.producerRegisters,
                                   NVVM::SetMaxRegisterAction::decrease);
    for (int64_t turn = 0; turn < kernel.getProducerTurns(); ++turn) {
      int64_t warp = producerWarp + 2 * turn;
      b.ifThen(b.equal(kernel.warp, warp), [&] {
        b.electOne([&] {
          buildOperandProducer(kernel, scheduler, ring, packed, turn);
          // Otherwise they come in as these end: had only some of them room
          // before, the others would come late, by up to a third of the
          // kernel's time.
          if (turn == 0)
            NVVM::GriddepcontrolOp::create(
                b, NVVM::GridDepActionKind::launch_dependents);
        });
      });
      if (kernel.hasFactorWarp())
        b.ifThen(b.equal(kernel.warp, warp + 1),
                 [&] { buildScaleProducer(kernel, scheduler, ring, turn); });
      if (kernel.hasLiftFactorWarp())
        b.ifThen(b.equal(kernel.warp, warp + 1), [&] {
          buildLiftFactorProducer(kernel, scheduler, ring,
                                  packed.value_or(ring), turn);
        });
    }
  };
  if (!packed)
    return produce();
  int64_t firstLifter = producerWarp + 4;
  b.ifThenElse(b.less(kernel.warp, b.i32(firstLifter)), produce, [&] {
    NVVM::SetMaxRegisterOp::create(b, layout.lift->registers,
                                   NVVM::SetMaxRegisterAction::decrease);
    buildLifter(kernel, scheduler, ring, *packed,
                b.sub(kernel.warp, b.i32(firstLifter)));
  });
}

static void buildBody(const MatmulContext &kernel, GPUTargetAttr target) {
  KernelBuilder &b = kernel.b;
  GemmConfigAttr config = kernel.config;
  const MatmulLayout &layout = kernel.layout;
  Ring::Cluster cluster{config.getClusterRows(),
                        config.getClusterCols(),
                        kernel.rankOfRows,
                        kernel.rankOfCols,
                        /*wholeRows=*/layout.rows.getParts() == 1,
                        /*wholeCols=*/layout.colsPart.getParts() == 1};
  Ring ring(b, kernel.shared, layout.offsetBarriers, config.getStages(),
            cluster);
  // Its stages are given back with those of the other.
  std::optional<Ring> packed;
  if (layout.lift && !layout.liftsInRegisters())
    packed.emplace(b, kernel.shared, layout.lift->offsetBarriers,
                   config.getStages(), Ring::Cluster{1, 1, Value(), Value()});
  buildBarriers(kernel, target, ring, packed);
  std::optional<TileScheduler::Groups> groups = kernel.buildGroups(
      layout.offsetGroups, config.getClusterTileM(), layout.threads);
  TileScheduler scheduler(
      b,
      TileScheduler::Shape{
          config.getTileM(), kernel.spec.getResultCols(config.getTileN()),
          config.getClusterTileM(),
          kernel.spec.getResultCols(config.getClusterTileN()),
          config.getGroup(), config.getSplitK(), layout.getStageK()},
      kernel.getExtents(), kernel.getTileRank(), groups);
  int64_t producerWarp = config.getConsumers() * 4;
  b.ifThenElse(
      b.less(kernel.warp, b.i32(producerWarp)),
      [&] {
        NVVM::SetMaxRegisterOp::create(b, layout.consumerRegisters,
                                       NVVM::SetMaxRegisterAction::increase);
        buildConsumer(kernel, scheduler, ring);
      },
      [&] { buildProducers(kernel, scheduler, ring, packed); });
  // Until both are done, a block's shared memory is written by the other one.
  if (kernel.isClustered())
    kernel.synchronize();
  LLVM::ReturnOp::create(b, ValueRange());
}

/// Those of one side that a bulk copy brings.
static int64_t getBulkFactors(const MatmulLayout &layout, bool ofRows) {
  bool inBulk = ofRows ? layout.rowScalesInBulk : layout.colScalesInBulk;
  int64_t factors = ofRows ? layout.rowScales : layout.colScales;
  return inBulk ? factors / getFactorBoxes(factors) : 0;
}

MatmulForm sm90::getMatmulForm(GemmConfigAttr config,
                               const MatmulLayout &layout) {
  bool swapped = config.getSwapAb();
  const OperandTile &ofB = layout.lift ? layout.lift->packed
                           : swapped   ? layout.rows
                                       : layout.colsPart;
  return MatmulForm{
      swapped ? layout.colsPart : layout.rows,
      ofB,
      layout.storeBytes,
      /*storeRows=*/swapped ? config.getCols() : 64,
      config.getClusterTileM(),
      config.getClusterTileN(),
      config.getClusterK() ? 1 : config.getSplitK(),
      config.getRows() * config.getCols() * config.getBlockParts(),
      config.getClusterBlocks(),
      layout.threads,
      layout.sharedBytes,
      getBulkFactors(layout, /*ofRows=*/!swapped),
      getBulkFactors(layout, /*ofRows=*/swapped),
      TileConfig::get(config).skipsZeros(),
      layout.lift && !copiesFactors(layout.lift->lifting)
          ? layout.lift->packed.getBytes() / layout.lift->packed.getRowBytes()
          : 0};
}

void sm90::buildMatmul(MatmulFunction &kernel, const MatmulSpec &spec,
                       GemmConfigAttr config, const MatmulLayout &layout,
                       GPUTargetAttr target) {
  buildBody(MatmulContext(kernel.b, spec, config, layout, kernel.getParams(),
                          kernel.shared),
            target);
}

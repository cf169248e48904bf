//===- Matmul.cpp - The sm_100a matmul kernel -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Roles of the block's warps: one thread loads tiles of A and B to a ring in
// shared memory, one multiplies them into tensor memory, and one or two
// warpgroups take the sums from there, finish and store them. There are two
// sets of sums, so that a tile is finished while the next one is multiplied.
// Where sums of K blocks are promoted there are more, of a K block each, and a
// warp brings the factors.
//
//===----------------------------------------------------------------------===//

#include "../Matmul/MatmulFunction.h"
#include "MatmulGenerator.h"
#include "Roles.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

static NVVM::CTAGroupKind getGroup(GemmConfigAttr config) {
  return config.isCTAPair() ? NVVM::CTAGroupKind::CTA_2
                            : NVVM::CTAGroupKind::CTA_1;
}

/// At the full barrier of a stage. Factors arrive with one asynchronous copy
/// per lane, in the lane's own block; the second of two blocks says when its
/// are there, and nothing else comes to its own barrier.
static Value getFullArrivals(const MatmulContext &kernel) {
  KernelBuilder &b = kernel.b;
  if (!kernel.spec.isMicroscaled())
    return b.i32(1);
  constexpr int64_t factors = 32;
  if (!kernel.rank)
    return b.i32(1 + factors);
  return b.select(b.equal(kernel.rank, 0), b.i32(1 + factors + 1),
                  b.i32(factors));
}

/// Makes the barriers and gets tensor memory, before all else.
static void beginBlock(MatmulContext &kernel, GPUTargetAttr target, Ring &ring,
                       Ring &accumulators, Ring &scales) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  b.ifThen(b.equal(kernel.warp, kLoadWarp), [&] {
    b.electOne([&] {
      kernel.prefetchMaps();
      ring.initialize(getFullArrivals(kernel), /*emptyArrivals=*/1);
      accumulators.initialize(
          /*fullArrivals=*/1,
          /*emptyArrivals=*/kernel.config.getEpilogueWarpgroups() *
              kernel.config.getCtaGroup() * 4);
      // Factors arrive with one asynchronous copy per lane.
      if (layout.isPromoted())
        scales.initialize(
            /*fullArrivals=*/32,
            /*emptyArrivals=*/kernel.config.getEpilogueWarpgroups() * 4);
    });
  });
  Value address = kernel.getShared(layout.offsetMemory);
  b.ifThen(b.equal(kernel.warp, kMemoryWarp), [&] {
    NVVM::Tcgen05AllocOp::create(b, address, b.i32(layout.memoryColumns),
                                 getGroup(kernel.config));
    // The next kernel's blocks may come in beside these, and wait for it.
    NVVM::Tcgen05RelinquishAllocPermitOp::create(b, getGroup(kernel.config));
  });
  fenceBeforeSync(b);
  kernel.synchronize();
  fenceAfterSync(b);
  kernel.memory = b.load(address, b.getI32Type());
  beginDependentLaunch(b, target.getMultiprocessors());
}

/// Gives tensor memory back, when all have taken what is there.
static void endBlock(const MatmulContext &kernel) {
  KernelBuilder &b = kernel.b;
  fenceBeforeSync(b);
  // Two blocks both have the first one's products, and barriers too.
  kernel.synchronize();
  b.ifThen(b.equal(kernel.warp, kMemoryWarp), [&] {
    fenceAfterSync(b);
    Value memory = LLVM::IntToPtrOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), 6), kernel.memory);
    NVVM::Tcgen05DeallocOp::create(
        b, memory, b.i32(kernel.layout.memoryColumns), getGroup(kernel.config));
  });
  LLVM::ReturnOp::create(b, ValueRange());
}

static TileScheduler::Shape getSchedule(const MatmulContext &kernel) {
  GemmConfigAttr config = kernel.config;
  int64_t tileM = config.getTileM();
  int64_t tileN = kernel.spec.getResultCols(config.getTileN());
  bool swapped = config.getSwapAb();
  return {swapped ? tileM : config.getBlockRows(),
          swapped ? config.getBlockRows() : tileN,
          tileM,
          tileN,
          config.getGroup(),
          config.getSplitK(),
          kernel.layout.rows.getBlockK()};
}

namespace {
/// The code of each warp.
class Roles {
public:
  Roles(const MatmulContext &kernel, Ring ring, Ring accumulators, Ring scales)
      : kernel(kernel), b(kernel.b), ring(ring), accumulators(accumulators),
        scales(scales), groups(kernel.buildGroups(kernel.layout.offsetGroups,
                                                  kernel.config.getTileM(),
                                                  kernel.layout.threads)) {
    if (!groups)
      ofAll.emplace(createScheduler());
  }

  /// The warps before those that finish tiles.
  void buildFirst() const;
  void buildEpilogueWarpgroups() const {
    buildEpilogueWarpgroup(kernel, getScheduler(), accumulators, scales);
  }

private:
  using Build = llvm::function_ref<void(const TileScheduler &)>;

  TileScheduler createScheduler() const {
    return TileScheduler(b, getSchedule(kernel), kernel.getExtents(),
                         kernel.getTileRank(), groups);
  }
  TileScheduler getScheduler() const {
    return ofAll ? *ofAll : createScheduler();
  }
  void inWarp(Value isWarp, Build build) const {
    b.ifThen(isWarp, [&] { build(getScheduler()); });
  }
  void inThread(Value isWarp, Build build) const {
    inWarp(isWarp, [&](const TileScheduler &scheduler) {
      b.electOne([&] { build(scheduler); });
    });
  }

  const MatmulContext &kernel;
  KernelBuilder &b;
  Ring ring, accumulators, scales;
  std::optional<TileScheduler::Groups> groups;
  /// Null with groups: sums in registers leave no room for what a table of
  /// groups says, and each role asks for itself.
  std::optional<TileScheduler> ofAll;
};
} // namespace

void Roles::buildFirst() const {
  inThread(b.equal(kernel.warp, kLoadWarp),
           [&](const TileScheduler &scheduler) {
             buildLoader(kernel, scheduler, ring);
             // Otherwise they come in as these end: had only some of them room
             // before, the others would come late.
             NVVM::GriddepcontrolOp::create(
                 b, NVVM::GridDepActionKind::launch_dependents);
           });
  Value multiplies = b.equal(kernel.warp, kMultiplyWarp);
  if (kernel.rank) {
    if (kernel.spec.isMicroscaled())
      inThread(b.bitAnd(multiplies, b.equal(kernel.rank, 1)),
               [&](const TileScheduler &scheduler) {
                 buildFactorRelay(kernel, scheduler, ring);
               });
    multiplies = b.bitAnd(multiplies, b.equal(kernel.rank, 0));
  }
  inThread(multiplies, [&](const TileScheduler &scheduler) {
    buildMultiplier(kernel, scheduler, ring, accumulators);
  });
  if (kernel.spec.isMicroscaled())
    inWarp(b.equal(kernel.warp, kFactorWarp),
           [&](const TileScheduler &scheduler) {
             buildFactorLoader(kernel, scheduler, ring);
           });
  if (kernel.layout.isPromoted())
    inWarp(b.equal(kernel.warp, kFactorWarp),
           [&](const TileScheduler &scheduler) {
             buildScaleLoader(kernel, scheduler, scales);
           });
}

static void buildBody(MatmulContext kernel, GPUTargetAttr target) {
  KernelBuilder &b = kernel.b;
  const MatmulLayout &layout = kernel.layout;
  Ring::Cluster alone{/*rows=*/1, /*cols=*/1, Value(), Value()};
  Ring ring(b, kernel.shared, layout.offsetRing, kernel.config.getStages(),
            alone);
  Ring accumulators(b, kernel.shared, layout.offsetAccumulators,
                    layout.getAccumulatorStages(), alone);
  Ring scales(b, kernel.shared, layout.offsetScaleRing, layout.scaleStages,
              alone);
  beginBlock(kernel, target, ring, accumulators, scales);
  Roles roles(kernel, ring, accumulators, scales);
  b.ifThenElse(
      b.less(kernel.warp, b.i32(kFirstEpilogueWarpgroup)),
      [&] {
        if (layout.otherRegisters)
          NVVM::SetMaxRegisterOp::create(b, layout.otherRegisters,
                                         NVVM::SetMaxRegisterAction::decrease);
        roles.buildFirst();
      },
      [&] {
        if (layout.finisherRegisters)
          NVVM::SetMaxRegisterOp::create(b, layout.finisherRegisters,
                                         NVVM::SetMaxRegisterAction::increase);
        roles.buildEpilogueWarpgroups();
      });
  endBlock(kernel);
}

MatmulForm sm100::getMatmulForm(GemmConfigAttr config,
                                const MatmulLayout &layout) {
  bool swapped = config.getSwapAb();
  return MatmulForm{swapped ? layout.colsPart : layout.rows,
                    swapped ? layout.rows : layout.colsPart,
                    layout.storeBytes,
                    /*storeRows=*/128,
                    config.getTileM(),
                    config.getTileN(),
                    config.getSplitK(),
                    config.getRows() * config.getCols(),
                    config.getCtaGroup(),
                    layout.threads,
                    layout.sharedBytes};
}

void sm100::buildMatmul(MatmulFunction &kernel, const MatmulSpec &spec,
                        GemmConfigAttr config, const MatmulLayout &layout,
                        GPUTargetAttr target) {
  buildBody(MatmulContext(kernel.b, spec, config, layout, kernel.getParams(),
                          kernel.shared),
            target);
}

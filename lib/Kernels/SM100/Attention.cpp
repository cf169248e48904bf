//===- Attention.cpp - The sm_100a attention kernel -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Warp-specialized and persistent. A warp copies tiles of queries, keys and
// values to shared memory. One thread multiplies. Warpgroups of 128 queries
// each, two of which take turns at the tensor core, exponentiate: scores, P and
// sums stay in tensor memory.
//
//   loader:     for tile of queries: for tile of keys: K, V
//   multiplier: see AttentionMultiplier.cpp
//   softmax:    see AttentionSoftmax.cpp
//
//===----------------------------------------------------------------------===//

#include "../Attention/AttentionLoads.h"
#include "../Attention/AttentionParts.h"
#include "AttentionContext.h"
#include "AttentionGenerator.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

void sm100::describeAttention(AttentionSignature &made,
                              const AttentionSpec &spec,
                              AttentionConfigAttr config,
                              const AttentionMemory &memory,
                              KernelSignature::Launch &launch) {
  int64_t keysOfBox = getKeysOfBox(spec, config.getTileK());
  // Few queries read each line of keys once, as on Hopper.
  int64_t l2 = config.isForFewQueries() ? 128 : 256;
  made.addMap("k", memory.k, keysOfBox, l2);
  made.addMap("v", memory.v, keysOfBox, l2);
  if (config.isForFewQueries()) {
    made.addParams();
    launch.grid = {addParts(
        made, spec, PartsLayout(spec, config.getRows(), config.getTileHeads()),
        config.getTileHeads(), config.getSplitTiles() * config.getTileK())};
  } else {
    made.addMap("q", memory.q, config.getTileQ(), l2);
    made.addMap("output", memory.output, kStoredRows, l2);
    made.addParams();
    launch.grid = {made.batch * spec.heads *
                   made.queries.ceilDiv(config.getTileQ())};
  }
  launch.block = memory.threads;
  launch.sharedBytes = memory.sharedBytes;
  launch.resident = memory.resident;
  launch.overlap = true;
  launch.flops = made.getFlops();
}

/// Makes the barriers and gets tensor memory, before all else.
static void beginBlock(AttentionContext &kernel) {
  KernelBuilder &b = kernel.b;
  b.ifThen(b.equal(kernel.warp, kernel.getLoadWarp()), [&] {
    b.electOne([&] {
      for (StringRef name : {"q.map", "k.map", "v.map", "output.map"})
        if (Value map = kernel.getParam(name))
          NVVM::PrefetchOp::create(b, /*cacheLevel=*/nullptr,
                                   /*evictPriority=*/nullptr, map,
                                   /*predicate=*/Value(), /*tensormap=*/true);
      for (Ring *ring : {&kernel.q, &kernel.k, &kernel.v, &kernel.sums})
        ring->initialize(/*fullArrivals=*/1, /*emptyArrivals=*/1);
      kernel.scores.initialize(/*fullArrivals=*/1, /*emptyArrivals=*/4);
    });
  });
  Value address = b.offset(kernel.shared, b.i32(kernel.memory.offsetAddress));
  b.ifThen(b.equal(kernel.warp, kernel.getMultiplyWarp()), [&] {
    NVVM::Tcgen05AllocOp::create(b, address, b.i32(kernel.memory.columns),
                                 NVVM::CTAGroupKind::CTA_1);
    // The next kernel's blocks may come in beside these, and wait for it.
    NVVM::Tcgen05RelinquishAllocPermitOp::create(b, NVVM::CTAGroupKind::CTA_1);
  });
  fenceBeforeSync(b);
  NVVM::BarrierOp::create(b);
  fenceAfterSync(b);
  kernel.columns = b.load(address, b.getI32Type());
  NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
}

/// Gives tensor memory back, when all have taken what is there.
static void endBlock(const AttentionContext &kernel) {
  KernelBuilder &b = kernel.b;
  fenceBeforeSync(b);
  NVVM::BarrierOp::create(b);
  b.ifThen(b.equal(kernel.warp, kernel.getMultiplyWarp()), [&] {
    fenceAfterSync(b);
    Value columns = LLVM::IntToPtrOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), 6), kernel.columns);
    NVVM::Tcgen05DeallocOp::create(b, columns, b.i32(kernel.memory.columns),
                                   NVVM::CTAGroupKind::CTA_1);
  });
  LLVM::ReturnOp::create(b, ValueRange());
}

static AttentionTiles getTiles(KernelBuilder &b, const AttentionSpec &spec,
                               AttentionConfigAttr config,
                               const llvm::StringMap<Value> &params) {
  // Half of what a Blackwell has.
  constexpr int64_t inL2 = int64_t(56) << 20;
  return AttentionTiles(b, spec,
                        {config.getQueriesOfTile(), config.getTileK(), inL2,
                         config.getTileHeads(), config.getSplitTiles()},
                        params);
}

/// Builds what a role does. Scores in registers leave no room for what all
/// roles have, so that each asks for its tiles and its threads by itself.
static void inRole(const AttentionContext &kernel,
                   llvm::function_ref<void(const AttentionContext &)> build) {
  AttentionTiles tiles =
      getTiles(kernel.b, kernel.spec, kernel.config, kernel.params);
  AttentionBlock block =
      getBlock(kernel.b, kernel.spec, kernel.params, tiles, kernel.tileK);
  build({block, kernel.config, kernel.memory, kernel.q, kernel.k, kernel.v,
         kernel.scores, kernel.sums, kernel.columns});
}

static void buildBody(const AttentionContext &kernel) {
  KernelBuilder &b = kernel.b;
  const AttentionMemory &memory = kernel.memory;
  b.ifThenElse(
      b.less(kernel.warp, b.i32(kernel.getSoftmaxWarps())),
      [&] {
        if (memory.softmaxRegisters)
          NVVM::SetMaxRegisterOp::create(b, memory.softmaxRegisters,
                                         NVVM::SetMaxRegisterAction::increase);
        inRole(kernel, buildAttentionSoftmax);
      },
      [&] {
        if (memory.otherRegisters)
          NVVM::SetMaxRegisterOp::create(b, memory.otherRegisters,
                                         NVVM::SetMaxRegisterAction::decrease);
        b.ifThen(b.equal(kernel.warp, kernel.getLoadWarp()), [&] {
          inRole(kernel, buildAttentionLoader);
          NVVM::GriddepcontrolOp::create(
              b, NVVM::GridDepActionKind::launch_dependents);
        });
        b.ifThen(b.equal(kernel.warp, kernel.getMultiplyWarp()),
                 [&] { inRole(kernel, buildAttentionMultiplier); });
      });
}

void sm100::buildAttention(AttentionKernel<AttentionMemory> &made,
                           const AttentionSpec &spec,
                           AttentionConfigAttr config, GPUTargetAttr) {
  KernelBuilder &b = made.b;
  made.setResident(made.memory.resident);
  AttentionTiles tiles = getTiles(b, spec, config, made.params);
  AttentionBlock block =
      getBlock(b, spec, made.params, tiles, config.getTileK());
  int64_t halves = config.getHalves(), stages = config.getStages();
  RingRow rings(b, block.shared, made.memory.offsetBarriers);
  Ring q = rings.get(1), k = rings.get(stages), v = rings.get(stages);
  Ring scores = rings.get(halves), sums = rings.get(halves);
  AttentionContext kernel{block, config, made.memory, q,      k,
                          v,     scores, sums,        Value()};
  beginBlock(kernel);
  buildBody(kernel);
  endBlock(kernel);
}

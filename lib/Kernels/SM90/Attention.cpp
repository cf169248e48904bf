//===- Attention.cpp - The sm_90a attention kernel ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Warp-specialized and persistent. A warp copies tiles of queries, keys and
// values to shared memory; for 8 bits three more put the keys of values side by
// side. One to three warpgroups compute 64 queries each.
//
//   producer:    for tile of queries: Q; for tile of keys: K, V
//   transposing: for tile of keys: V -> V with keys innermost
//   consumers:   see AttentionConsumer.cpp
//
// Tri Dao and others, "FlashAttention-3" (arXiv 2407.08608), has the schedule:
// softmax of one tile beside the products of its neighbours, warpgroups in
// turns, and 8-bit values transposed in shared memory.
//
//===----------------------------------------------------------------------===//

#include "../Attention/AttentionLoads.h"
#include "../Attention/AttentionParts.h"
#include "AttentionContext.h"
#include "AttentionGenerator.h"
#include "AttentionTotals.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

//===----------------------------------------------------------------------===//
// What it takes
//===----------------------------------------------------------------------===//

void sm90::describeAttention(AttentionSignature &made,
                             const AttentionSpec &spec,
                             AttentionConfigAttr config,
                             const AttentionMemory &memory,
                             KernelSignature::Launch &launch) {
  int64_t keysOfBox = getKeysOfBox(spec, config.getTileK());
  // What L2 fetches beside a line is of the next head. Blocks that share keys
  // find it there; those that decode read each line once, and bf16 gains 7 % of
  // bandwidth.
  int64_t l2 = config.isForFewQueries() ? 128 : 256;
  made.addMap("k", memory.k, keysOfBox, l2);
  made.addMap("v", memory.v, keysOfBox, l2);
  if (!config.isForFewQueries()) {
    made.addMap("q", memory.q, config.getTileQ(), l2);
    made.addMap("output", memory.output, /*rows=*/64, l2);
  }
  made.addParams();
  if (config.isForFewQueries()) {
    int64_t keysOfPart = spec.invariant
                             ? AttentionTiles::kChunkKeys
                             : config.getSplitTiles() * config.getTileK();
    launch.grid = {addParts(
        made, spec, PartsLayout(spec, config.getTileQ(), config.getTileHeads()),
        config.getTileHeads(), keysOfPart)};
  } else {
    launch.grid = {made.batch * spec.heads *
                   made.queries.ceilDiv(config.getTileQ())};
  }
  launch.block = memory.threads;
  launch.sharedBytes = memory.sharedBytes;
  launch.resident = memory.resident;
  launch.overlap = true;
  launch.flops = made.getFlops();
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

static void buildBarriers(AttentionContext &kernel) {
  KernelBuilder &b = kernel.b;
  int64_t consumers = kernel.getConsumerWarps();
  bool transposes = kernel.memory.hasTransposedV();
  b.ifThen(b.equal(kernel.warp, consumers), [&] {
    b.electOne([&] {
      for (StringRef name : {"q.map", "k.map", "v.map", "output.map"})
        if (Value map = kernel.getParam(name))
          NVVM::PrefetchOp::create(b, /*cacheLevel=*/nullptr,
                                   /*evictPriority=*/nullptr, map,
                                   /*predicate=*/Value(), /*tensormap=*/true);
      kernel.q.initialize(/*fullArrivals=*/1, consumers);
      kernel.k.initialize(/*fullArrivals=*/1, consumers);
      kernel.v.initialize(/*fullArrivals=*/1,
                          transposes ? kProducerWarps : consumers);
      if (transposes)
        kernel.transposedV.initialize(
            /*fullArrivals=*/kProducerWarps * 32, consumers);
      if (kernel.config.loadsZero())
        b.store(b.i32(0),
                b.offset(kernel.shared, b.i32(kernel.memory.offsetFlag)));
    });
  });
  NVVM::BarrierOp::create(b);
  NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
}

static void buildBody(AttentionContext &kernel) {
  KernelBuilder &b = kernel.b;
  int64_t producer = kernel.getConsumerWarps();
  b.ifThenElse(
      b.less(kernel.warp, b.i32(producer)),
      [&] {
        NVVM::SetMaxRegisterOp::create(b, kernel.memory.consumerRegisters,
                                       NVVM::SetMaxRegisterAction::increase);
        buildAttentionConsumer(kernel);
      },
      [&] {
        NVVM::SetMaxRegisterOp::create(b, kernel.memory.producerRegisters,
                                       NVVM::SetMaxRegisterAction::decrease);
        auto build = [&] {
          buildAttentionProducer(kernel);
          NVVM::GriddepcontrolOp::create(
              b, NVVM::GridDepActionKind::launch_dependents);
        };
        // One warp alone needs no others.
        if (kernel.memory.hasTransposedV())
          build();
        else
          b.ifThen(b.equal(kernel.warp, producer), build);
      });
  LLVM::ReturnOp::create(b, ValueRange());
}

void sm90::buildAttention(AttentionKernel<AttentionMemory> &made,
                          const AttentionSpec &spec, AttentionConfigAttr config,
                          GPUTargetAttr) {
  KernelBuilder &b = made.b;
  made.setResident(made.memory.resident);
  // Half of what a Hopper has.
  constexpr int64_t bytesInL2 = int64_t(24) << 20;
  AttentionTiles tiles(b, spec,
                       {config.getQueriesOfTile(), config.getTileK(), bytesInL2,
                        config.getTileHeads(), config.getSplitTiles()},
                       made.params);
  AttentionBlock block =
      getBlock(b, spec, made.params, tiles, config.getTileK());
  int64_t stages = config.getStages();
  RingRow rings(b, block.shared, made.memory.offsetBarriers);
  Ring q = rings.get(1), k = rings.get(stages), v = rings.get(stages);
  Ring transposedV = rings.get(stages);
  Value totals;
  if (spec.invariant && !config.isForFewQueries())
    totals = AttentionTotals::allocate(b, spec.headDimOfV / 2);
  AttentionContext kernel{block, config, made.memory, q,
                          k,     v,      transposedV, totals};
  buildBarriers(kernel);
  buildBody(kernel);
}

//===- AttentionBackward.cpp - The sm_90a kernel of its gradients ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has 128 keys, 64 for each of two warpgroups, whose gradients it sums
// in registers, and walks the queries that see them; scores are transposed, so
// that they come out as first operands of the sums' products:
//
//   S = K Q^T; P = exp2(S - lse); D = V dO^T; G = P (D - delta)
//   dV += P dO; dK += G Q; dQ += G^T K
//
// With a cap, S is bent before its exponentials, and G has its slope as a
// factor. With ranges of keys a block walks the queries from the first tile to
// the last of which some see some of its keys; one in between of which none do
// is a step that adds nothing.
//
// With dropout, P has a sign where it is left out: it is 0 as an operand of dV
// then, and its D counts as 0. What is kept counts by a factor.
//
// G goes through shared memory for dQ, which all blocks that see a query add
// up in global memory, in f32 and as the registers of threads lie: one after
// the other in the order of their keys, or as they come. The block that adds
// last makes a tile of the result of it. Tri Dao and others,
// "FlashAttention-3" (arXiv 2407.08608), have the roles of the operands.
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardContext.h"
#include "AttentionBackwardGenerator.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

void sm90::describeAttentionBackward(AttentionBackwardSignature &made,
                                     const AttentionBackwardSpec &spec,
                                     AttentionConfigAttr config,
                                     const AttentionBackwardMemory &memory,
                                     KernelSignature::Launch &launch) {
  KernelSignature &signature = made.signature;
  int64_t sequence = spec.getSequenceDim();
  auto addMap = [&](StringRef name, const SharedMatrix &matrix, int64_t rows) {
    SmallVector<int64_t> box{matrix.getBoxColumns(), 1, 1, 1};
    box[3 - sequence] = rows;
    signature.addTensorMap(name + ".map", name, box, matrix.width, /*l2=*/256);
  };
  int64_t tileQ = config.getTileQ(), tileK = config.getTileK();
  bool hasCodes = memory.hasCodes();
  addMap("grad", memory.grad, tileQ);
  addMap("q", hasCodes ? memory.codesOfQ : memory.q, tileQ);
  addMap("k", hasCodes ? memory.codesOfK : memory.k, tileK);
  addMap("v", hasCodes ? memory.codesOfV : memory.v, tileK);
  addMap("dk", memory.k, /*rows=*/64);
  addMap("dv", memory.v, /*rows=*/64);
  made.addParams();
  made.addTensor("dq");
  launch.grid = {addSums(made, spec, tileQ, tileK)};
  launch.block = AttentionBackwardMemory::kThreads;
  launch.sharedBytes = memory.sharedBytes;
  launch.overlap = true;
  launch.flops = made.getFlops();
}

static void buildBarriers(AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  constexpr int64_t kWarps = AttentionBackwardContext::kConsumerWarps;
  bool hasCodes = kernel.memory.hasCodes();
  // Lanes of two warps fill stages with numbers of codes.
  constexpr int64_t kConverting = 64;
  b.ifThen(b.equal(kernel.warp, kWarps), [&] {
    b.electOne([&] {
      for (StringRef name :
           {"q.map", "k.map", "v.map", "grad.map", "dk.map", "dv.map"})
        NVVM::PrefetchOp::create(b, /*cacheLevel=*/nullptr,
                                 /*evictPriority=*/nullptr,
                                 kernel.getParam(name), /*predicate=*/Value(),
                                 /*tensormap=*/true);
      kernel.keys.initialize(hasCodes ? kConverting : 1, kWarps);
      // The copies and the lanes that have the rows' numbers.
      kernel.queries.initialize(hasCodes ? kConverting : 1 + 32, kWarps);
      kernel.grads.initialize(/*fullArrivals=*/1, kWarps);
      kernel.scores.initialize(/*fullArrivals=*/1, kWarps);
      kernel.added.initialize(kWarps, /*emptyArrivals=*/1);
      if (hasCodes) {
        kernel.codesOfKeys.initialize(/*fullArrivals=*/1, kWarps);
        kernel.codesOfQueries.initialize(/*fullArrivals=*/1, kWarps + 2);
      }
    });
  });
  if (kernel.spec.isDeterministic)
    drawTicket(kernel, kernel.memory.offsetTicket);
  NVVM::BarrierOp::create(b);
  NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
  if (kernel.spec.isDeterministic)
    kernel.tiles.begin(b.uniform(
        b.load(b.offset(kernel.shared, b.i32(kernel.memory.offsetTicket)),
               b.getI32Type())));
  if (kernel.spec.hasKeyRanges)
    kernel.tiles.findTiles(
        b.offset(kernel.shared, b.i32(kernel.memory.offsetFound)), kernel.warp);
}

static void buildBody(AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  b.ifThenElse(
      b.less(kernel.warp, b.i32(AttentionBackwardContext::kConsumerWarps)),
      [&] {
        NVVM::SetMaxRegisterOp::create(
            b, AttentionBackwardMemory::kConsumerRegisters,
            NVVM::SetMaxRegisterAction::increase);
        buildAttentionBackwardConsumer(kernel);
      },
      [&] {
        NVVM::SetMaxRegisterOp::create(
            b, AttentionBackwardMemory::kProducerRegisters,
            NVVM::SetMaxRegisterAction::decrease);
        buildAttentionBackwardProducer(kernel);
        NVVM::GriddepcontrolOp::create(
            b, NVVM::GridDepActionKind::launch_dependents);
      });
  LLVM::ReturnOp::create(b, ValueRange());
}

void sm90::buildAttentionBackward(
    AttentionKernel<AttentionBackwardMemory> &made,
    const AttentionBackwardSpec &spec, AttentionConfigAttr config,
    GPUTargetAttr) {
  KernelBuilder &b = made.b;
  made.setResident(1);
  Value shared = LLVM::AddressOfOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 3),
      KernelSignature::kSharedName);
  int64_t stages = config.getStages();
  RingRow rings(b, shared, made.memory.offsetBarriers);
  Ring keys = rings.get(2), codesOfKeys = rings.get(2);
  Ring queries = rings.get(stages), codesOfQueries = rings.get(stages);
  Ring grads = rings.get(stages);
  Ring scores = rings.get(AttentionBackwardMemory::kScoreStages);
  Ring added = rings.get(AttentionBackwardMemory::kAddStages);
  AttentionBackwardTiles tiles(
      b, spec,
      {config.getTileQ(), config.getTileK(), AttentionBackwardMemory::kWarps},
      made.params);
  if (!spec.isDeterministic)
    tiles.begin(NVVM::BlockIdXOp::create(b, b.getI32Type()));
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  AttentionBackwardBlock block{
      b,
      spec,
      made.params,
      tiles,
      config.getTileQ(),
      config.getTileK(),
      made.memory.offsetRows,
      made.memory.bytesOfRows,
      shared,
      LLVM::PtrToIntOp::create(b, b.getI32Type(), shared),
      thread,
      b.uniform(b.shiftRight(thread, 5)),
      b.bitAnd(thread, 31)};
  AttentionBackwardContext kernel{block,       config,  made.memory,    keys,
                                  codesOfKeys, queries, codesOfQueries, grads,
                                  scores,      added};
  buildBarriers(kernel);
  buildBody(kernel);
}

//===- AttentionBackward.cpp - The sm_100a kernel of its gradients --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block has 128 keys, whose gradients it sums in tensor memory, and walks the
// queries that see them. Scores are transposed, a key a lane, so that P is the
// first operand of dV as it is written over them:
//
//   S = K Q^T; P = exp2(S - lse); D = V dO^T; G = P (D - delta)
//   dV += P dO; dK += G Q; dQ += G^T K
//
// G goes through shared memory, where it is read by rows for dK and by columns
// for dQ. A step's part of dQ takes the place of D. What blocks add to dQ in
// global memory, and when, is as on Hopper: AttentionBackwardTurns. The block
// whose turn is last adds in registers, and stores the result.
//
//   multiplier: see AttentionBackwardMultiplier.cpp
//   scores:     see AttentionBackwardScores.cpp
//   adders:     see AttentionBackwardAdder.cpp
//
//===----------------------------------------------------------------------===//

#include "../Blocks/BulkCopy.h"
#include "AttentionBackwardContext.h"
#include "AttentionBackwardGenerator.h"
#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

using Memory = AttentionBackwardMemory;

/// Sums have their order also where any would do: it costs a wait that no
/// thread has which multiplies.
static AttentionBackwardSpec inOrder(const AttentionBackwardSpec &spec) {
  AttentionBackwardSpec ordered = spec;
  ordered.isDeterministic = true;
  return ordered;
}

void sm100::describeAttentionBackward(AttentionBackwardSignature &made,
                                      const AttentionBackwardSpec &spec,
                                      AttentionConfigAttr,
                                      const AttentionBackwardMemory &memory,
                                      KernelSignature::Launch &launch) {
  int64_t sequence = spec.getSequenceDim();
  auto addMap = [&](StringRef name, const SwizzledMatrix &matrix,
                    int64_t rows) {
    SmallVector<int64_t> box{matrix.getBoxColumns(), 1, 1, 1};
    box[3 - sequence] = rows;
    made.signature.addTensorMap(name + ".map", name, box, matrix.width,
                                /*l2=*/256);
  };
  addMap("grad", memory.grad, Memory::kRows);
  addMap("q", memory.q, Memory::kRows);
  addMap("k", memory.k, Memory::kRows);
  addMap("v", memory.v, Memory::kRows);
  // A warp stores its lanes.
  addMap("dk", memory.k, /*rows=*/32);
  addMap("dv", memory.v, /*rows=*/32);
  made.addParams();
  made.addTensor("dq");
  launch.grid = {addSums(made, inOrder(spec), Memory::kRows, Memory::kRows)};
  launch.block = Memory::kThreads;
  launch.sharedBytes = memory.sharedBytes;
  launch.overlap = true;
  launch.flops = made.getFlops();
}

static void initializeBarriers(AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  for (StringRef name :
       {"q.map", "k.map", "v.map", "grad.map", "dk.map", "dv.map"})
    NVVM::PrefetchOp::create(b, /*cacheLevel=*/nullptr,
                             /*evictPriority=*/nullptr, kernel.getParam(name),
                             /*predicate=*/Value(), /*tensormap=*/true);
  for (Ring *ring :
       {&kernel.keys, &kernel.queries, &kernel.grads, &kernel.sums})
    ring->initialize(/*fullArrivals=*/1, /*emptyArrivals=*/1);
  kernel.rows.initialize(/*fullArrivals=*/32, Memory::kScoreWarps);
  kernel.scores.initialize(/*fullArrivals=*/1, Memory::kScoreWarps);
  kernel.products.initialize(/*fullArrivals=*/1, Memory::kScoreWarps);
  kernel.parts.initialize(/*fullArrivals=*/1, Memory::kAddWarps);
  kernel.added.initialize(Memory::kAddWarps, /*emptyArrivals=*/1);
}

void sm100::forEachStep(
    const AttentionBackwardContext &kernel, Ring ring,
    llvm::function_ref<void(BackwardStep, RingPosition, Value)> body) {
  KernelBuilder &b = kernel.b;
  const AttentionBackwardTiles &tiles = kernel.tiles;
  Value zero = b.i32(0);
  BackwardStep begin = tiles.getFirst();
  b.loop(zero, tiles.steps, b.i32(1),
         {begin.head, begin.tile, zero, zero, zero},
         [&](Value, ValueRange carried) -> SmallVector<Value> {
           BackwardStep now{carried[0], carried[1]};
           RingPosition at{carried[2], carried[3]};
           body(now, at, carried[4]);
           BackwardStep next = tiles.advance(now);
           RingPosition after = ring.advance(at);
           return {next.head, next.tile, after.stage, after.phase,
                   b.bitXor(carried[4], b.i32(1))};
         });
}

/// Makes the barriers, gets tensor memory, and draws the block's ticket.
static void beginBlock(AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  const Memory &memory = kernel.memory;
  b.ifThen(b.equal(kernel.warp, Memory::kCopies),
           [&] { b.electOne([&] { initializeBarriers(kernel); }); });
  Value address = b.offset(kernel.shared, b.i32(memory.offsetAddress));
  b.ifThen(b.equal(kernel.warp, Memory::kMultiplies), [&] {
    NVVM::Tcgen05AllocOp::create(b, address, b.i32(memory.columns),
                                 NVVM::CTAGroupKind::CTA_1);
    NVVM::Tcgen05RelinquishAllocPermitOp::create(b, NVVM::CTAGroupKind::CTA_1);
  });
  drawTicket(kernel, memory.offsetTicket);
  fenceBeforeSync(b);
  NVVM::BarrierOp::create(b);
  fenceAfterSync(b);
  kernel.columns = b.load(address, b.getI32Type());
  NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
  kernel.tiles.begin(b.uniform(b.load(
      b.offset(kernel.shared, b.i32(memory.offsetTicket)), b.getI32Type())));
  if (kernel.spec.hasKeyRanges)
    kernel.tiles.findTiles(b.offset(kernel.shared, b.i32(memory.offsetFound)),
                           kernel.warp);
}

/// Gives tensor memory back, when all have taken what is there.
static void endBlock(const AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  fenceBeforeSync(b);
  NVVM::BarrierOp::create(b);
  b.ifThen(b.equal(kernel.warp, Memory::kMultiplies), [&] {
    fenceAfterSync(b);
    Value columns = LLVM::IntToPtrOp::create(
        b, LLVM::LLVMPointerType::get(b.getContext(), 6), kernel.columns);
    NVVM::Tcgen05DeallocOp::create(b, columns, b.i32(kernel.memory.columns),
                                   NVVM::CTAGroupKind::CTA_1);
  });
  LLVM::ReturnOp::create(b, ValueRange());
}

/// One lane: K and V, and then queries and the result's gradient, step by step.
static void copyAll(const AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  const Memory &memory = kernel.memory;
  const AttentionBackwardTiles &tiles = kernel.tiles;
  copyTile(kernel, kernel.keys, b.i32(0), "k.map", memory.k,
           b.i32(memory.offsetK), tiles.key, tiles.headOfK);
  copyTile(kernel, kernel.keys, b.i32(1), "v.map", memory.v,
           b.i32(memory.offsetV), tiles.key, tiles.headOfK);
  auto copy = [&](Ring ring, RingPosition empty, StringRef map,
                  const SwizzledMatrix &matrix, int64_t offset,
                  BackwardStep step) {
    ring.waitEmpty(empty);
    copyTile(kernel, ring, empty.stage, map, matrix,
             kernel.getPlace(matrix, offset, empty.stage),
             b.mul(step.tile, kernel.tileQ), step.head);
  };
  tiles.forEachStep(
      kernel.queries, /*phase=*/1, [&](BackwardStep step, RingPosition at) {
        copy(kernel.queries, at, "q.map", memory.q, memory.offsetQ, step);
        copy(kernel.grads, at, "grad.map", memory.grad, memory.offsetGrad,
             step);
      });
}

static void readRows(const AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  Ring rows = kernel.rows;
  kernel.tiles.forEachStep(
      rows, /*phase=*/1, [&](BackwardStep step, RingPosition empty) {
        rows.waitEmpty(empty);
        writeRows(kernel, step, empty.stage);
        NVVM::MBarrierArriveOp::create(b, /*res=*/Type(),
                                       rows.getFullBarrier(empty.stage),
                                       /*count=*/Value());
      });
}

static void buildBody(const AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  Value hasKeys = b.less(b.i32(0), kernel.tiles.keys);
  auto inWarp = [&](int64_t warp, llvm::function_ref<void()> build) {
    b.ifThen(b.equal(kernel.warp, warp), build);
  };
  auto setRegisters = [&](int64_t count, NVVM::SetMaxRegisterAction action) {
    NVVM::SetMaxRegisterOp::create(b, count, action);
  };
  using Action = NVVM::SetMaxRegisterAction;
  b.ifThen(hasKeys, [&] {
    b.ifThenElse(
        b.less(kernel.warp, b.i32(Memory::kScoreWarps)),
        [&] {
          setRegisters(Memory::kScoreRegisters, Action::increase);
          buildBackwardScores(kernel);
        },
        [&] {
          b.ifThenElse(
              b.less(kernel.warp, b.i32(Memory::kCopies)),
              [&] {
                setRegisters(Memory::kAddRegisters, Action::decrease);
                buildBackwardAdder(kernel);
              },
              [&] {
                setRegisters(Memory::kOtherRegisters, Action::decrease);
                inWarp(Memory::kCopies,
                       [&] { b.electOne([&] { copyAll(kernel); }); });
                inWarp(Memory::kMultiplies,
                       [&] { buildBackwardMultiplier(kernel); });
                inWarp(Memory::kReads, [&] { readRows(kernel); });
              });
        });
  });
  inWarp(Memory::kTurns, [&] {
    buildBackwardTurns(kernel);
    NVVM::GriddepcontrolOp::create(b,
                                   NVVM::GridDepActionKind::launch_dependents);
  });
}

void sm100::buildAttentionBackward(
    AttentionKernel<AttentionBackwardMemory> &made,
    const AttentionBackwardSpec &asked, AttentionConfigAttr config,
    GPUTargetAttr) {
  KernelBuilder &b = made.b;
  AttentionBackwardSpec spec = inOrder(asked);
  made.setResident(1);
  Value shared = LLVM::AddressOfOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 3),
      KernelSignature::kSharedName);
  int64_t stages = config.getStages();
  RingRow rings(b, shared, made.memory.offsetBarriers);
  Ring keys = rings.get(2), queries = rings.get(stages);
  Ring grads = rings.get(stages), rows = rings.get(stages);
  Ring scores = rings.get(1), products = rings.get(1), parts = rings.get(1);
  Ring added = rings.get(Memory::kAddStages), sums = rings.get(1);
  AttentionBackwardTiles tiles(
      b, spec, {Memory::kRows, Memory::kRows, Memory::kWarps}, made.params);
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  AttentionBackwardBlock block{
      b,
      spec,
      made.params,
      tiles,
      Memory::kRows,
      Memory::kRows,
      made.memory.offsetRows,
      made.memory.bytesOfRows,
      shared,
      LLVM::PtrToIntOp::create(b, b.getI32Type(), shared),
      thread,
      b.uniform(b.shiftRight(thread, 5)),
      b.bitAnd(thread, 31)};
  AttentionBackwardContext kernel{block, config, made.memory, keys,     queries,
                                  grads, rows,   scores,      products, parts,
                                  added, sums,   Value()};
  beginBlock(kernel);
  buildBody(kernel);
  endBlock(kernel);
}

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

#include "../Blocks/KernelSignature.h"
#include "AttentionContext.h"
#include "AttentionGenerator.h"
#include "AttentionParts.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

//===----------------------------------------------------------------------===//
// What it takes
//===----------------------------------------------------------------------===//

static SmallVector<KernelArgumentAttr> getArguments(MLIRContext *context,
                                                    const AttentionSpec &spec) {
  SmallVector<KernelArgumentAttr> arguments;
  auto add = [&](StringRef name, Type element, int64_t rank,
                 KernelAccess access, int64_t alignment) {
    arguments.push_back(KernelArgumentAttr::get(context, name, element, rank,
                                                access, alignment));
  };
  for (auto [name, element] :
       {std::pair<StringRef, Type>{"q", spec.q}, {"k", spec.k}, {"v", spec.v}})
    add(name, element, 4, KernelAccess::Read, 16);
  Type f32 = Float32Type::get(context);
  if (spec.isScaled)
    for (StringRef name : {"q_scale", "k_scale", "v_scale"})
      add(name, f32, 4, KernelAccess::Read, 4);
  if (spec.hasKeyLengths)
    add("key_lengths", IntegerType::get(context, 32), 1, KernelAccess::Read, 4);
  if (spec.pageSize)
    add("page_table", IntegerType::get(context, 32), 2, KernelAccess::Read, 4);
  if (spec.hasKeyStarts)
    add("key_starts", IntegerType::get(context, 32), 1, KernelAccess::Read, 4);
  if (spec.hasKeyRanges)
    add("key_ranges", IntegerType::get(context, 32), 3, KernelAccess::Read, 4);
  if (spec.hasSinks)
    add("sinks", f32, 1, KernelAccess::Read, 4);
  if (spec.dropThreshold)
    add("dropout", IntegerType::get(context, 64), 1, KernelAccess::Read, 8);
  if (spec.mask)
    add("mask", spec.mask, 4, KernelAccess::Read,
        std::max<int64_t>(spec.mask.getIntOrFloatBitWidth() / 8, 1));
  add("output", spec.output, 4, KernelAccess::Write, 16);
  if (spec.hasLse)
    add("lse", f32, 3, KernelAccess::Write, 4);
  return arguments;
}

static void addMap(KernelSignature &signature, const AttentionSpec &spec,
                   AttentionConfigAttr config, StringRef name,
                   const SharedMatrix &matrix, int64_t rows) {
  SmallVector<int64_t> box{matrix.getBoxColumns(), 1, 1, 1};
  box[spec.layout == fp8::AttentionLayout::BSHD ? 2 : 1] = rows;
  // What L2 fetches beside a line is of the next head. Blocks that share keys
  // find it there; those that decode read each line once, and bf16 gains 7 % of
  // bandwidth.
  signature.addTensorMap(name + ".map", name, box, matrix.width,
                         config.isForFewQueries() ? 128 : 256);
}

/// What threads need that copy the rows of few queries and store their results
/// themselves, and put parts of keys together.
static void addRows(KernelSignature &signature, const AttentionSpec &spec,
                    AttentionConfigAttr config) {
  for (StringRef name : {"q", "output"}) {
    signature.addPointer(name + ".ptr", name);
    for (int64_t dim : {0, 1, 2})
      signature.addStride(name + ".stride" + Twine(dim), name, dim);
  }
  PartsLayout layout(spec, config);
  MLIRContext *context = config.getContext();
  auto addScratch = [&](StringRef name, int64_t bytes, bool zero) {
    signature.addScratch(
        name,
        signature.addWorkspace(getAffineConstantExpr(bytes, context), zero));
  };
  addScratch("parts.ptr", layout.getBytes(), /*zero=*/false);
  addScratch("counters.ptr", AttentionTiles::kMaxBlocks * 4, /*zero=*/true);
}

static KernelSignature getSignature(MLIRContext *context,
                                    const AttentionSpec &spec,
                                    AttentionConfigAttr config,
                                    const AttentionMemory &memory,
                                    KernelSignature::Launch &launch) {
  KernelSignature signature(context, getArguments(context, spec));
  int64_t sequence = spec.getSequenceDim();
  AffineExpr batch = signature.addExtent("batch", "q", 0);
  AffineExpr queries = signature.addExtent("queries", "q", sequence);
  AffineExpr keys;
  if (spec.pageSize) {
    AffineExpr pages = signature.addExtent("pages", "page_table", 1);
    keys = pages * spec.pageSize;
  } else {
    keys = signature.addExtent("keys", "k", sequence);
  }
  int64_t keysOfBox = memory.getKeysOfBox(spec);
  addMap(signature, spec, config, "k", memory.k, keysOfBox);
  addMap(signature, spec, config, "v", memory.v, keysOfBox);
  if (!config.isForFewQueries()) {
    addMap(signature, spec, config, "q", memory.q, config.getTileQ());
    addMap(signature, spec, config, "output", memory.output, /*rows=*/64);
  }
  if (spec.isScaled)
    for (StringRef name : {"q_scale", "k_scale", "v_scale"})
      signature.addPointer(name + ".ptr", name);
  if (spec.hasKeyLengths)
    signature.addPointer("key_lengths.ptr", "key_lengths");
  if (spec.pageSize) {
    signature.addPointer("page_table.ptr", "page_table");
    signature.addValue("pages", signature.addExtent("all_pages", "k", 0), 32);
  }
  if (spec.hasKeyStarts)
    signature.addPointer("key_starts.ptr", "key_starts");
  if (spec.hasKeyRanges)
    signature.addPointer("key_ranges.ptr", "key_ranges");
  if (spec.hasSinks)
    signature.addPointer("sinks.ptr", "sinks");
  if (spec.dropThreshold)
    signature.addPointer("dropout.ptr", "dropout");
  if (spec.mask) {
    signature.addPointer("mask.ptr", "mask");
    for (int64_t dim : {0, 1, 2})
      if (!spec.isMaskShared[dim])
        signature.addStride("mask.stride" + Twine(dim), "mask", dim);
  }
  if (spec.hasLse)
    signature.addPointer("lse.ptr", "lse");
  signature.addValue("batch", batch, 32);
  signature.addValue("queries", queries, 32);
  signature.addValue("keys", keys, 32);
  AffineExpr tiles = batch;
  if (config.isForFewQueries()) {
    addRows(signature, spec, config);
    tiles = tiles * (spec.headsOfK * AttentionTiles::getTilesOfGroup(
                                         spec, config.getTileHeads()));
    tiles =
        tiles * (keys.floorDiv(config.getSplitTiles() * config.getTileK()) + 1);
  } else {
    tiles = tiles * spec.heads * queries.ceilDiv(config.getTileQ());
  }
  launch.grid = {tiles};
  launch.block = memory.threads;
  launch.sharedBytes = memory.sharedBytes;
  launch.resident = memory.resident;
  launch.overlap = true;
  launch.flops = batch * queries * keys *
                 (2 * spec.heads * (spec.headDim + spec.headDimOfV));
  return signature;
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

FailureOr<LLVM::LLVMFuncOp>
sm90::buildAttention(OpBuilder &builder, Location loc,
                     const AttentionSpec &spec, AttentionConfigAttr config,
                     GPUTargetAttr target, StringRef name,
                     std::string &reason) {
  FailureOr<AttentionMemory> memory =
      AttentionMemory::get(spec, config, target, reason);
  if (failed(memory))
    return failure();
  OpBuilder::InsertionGuard guard(builder);
  KernelSignature::Launch launch;
  KernelSignature signature =
      getSignature(builder.getContext(), spec, config, *memory, launch);
  LLVM::LLVMFuncOp function =
      signature.create(builder, loc, name, launch, KernelMath::Approximate);
  // As for matmuls: without it ptxas ignores setmaxnreg.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    builder.getI32IntegerAttr(memory->resident));
  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  KernelBuilder b(loc, builder);
  llvm::StringMap<Value> params = signature.getParams(function);
  Value shared = LLVM::AddressOfOp::create(
      b, LLVM::LLVMPointerType::get(builder.getContext(), 3),
      KernelSignature::kSharedName);
  int64_t barriers = memory->offsetBarriers, stages = config.getStages();
  auto getRing = [&](int64_t stages) {
    Ring ring(b, shared, barriers, stages,
              Ring::Cluster{/*rows=*/1, /*cols=*/1, Value(), Value()});
    barriers += 16 * stages;
    return ring;
  };
  Ring q = getRing(1), k = getRing(stages), v = getRing(stages);
  Ring transposedV = getRing(stages);
  AttentionTiles tiles(b, spec, config, params);
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  AttentionContext kernel{b,
                          spec,
                          config,
                          *memory,
                          params,
                          tiles,
                          q,
                          k,
                          v,
                          transposedV,
                          shared,
                          LLVM::PtrToIntOp::create(b, b.getI32Type(), shared),
                          thread,
                          b.uniform(b.shiftRight(thread, 5)),
                          b.bitAnd(thread, 31)};
  buildBarriers(kernel);
  buildBody(kernel);
  return function;
}

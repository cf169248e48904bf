//===- Matmul.cpp - The sm_90a matmul kernel ------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Warp-specialised and persistent. One producer warpgroup fills a ring of
// shared memory slots: a warp with bulk tensor copies of the operands and,
// where factors change along K, a second one with the factors. One to three
// consumer warpgroups multiply slots on the tensor cores and store finished
// tiles.
//
//   producer:  for tile: for k: wait empty -> copy A, B (, factors) -> full
//   consumer:  for tile: for k: wait full -> wgmma -> empty;  epilogue; store
//
// "Rows" are the side of the tensor core that comes in 64s, "cols" the one that
// comes in 8s: A and B, or with swap_ab B and A.

#include "../Blocks/BulkCopy.h"
#include "../Blocks/Epilogue.h"
#include "../Blocks/SplitK.h"
#include "../Blocks/TileScheduler.h"
#include "../Blocks/TileStore.h"
#include "Accumulate.h"
#include "fp8/Kernels/MatmulKernel.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::fp8;

/// Dynamic shared memory, whose size the launch gives.
static constexpr StringLiteral kSharedName = "fp8_shared";

/// Named barriers: 1.. are the consumers' own, these come after.
static constexpr int64_t kTurnBarrier = 4;
static constexpr int64_t kAllConsumersBarrier = 6;

namespace {
class MatmulKernel {
public:
  MatmulKernel(KernelBuilder &b, const MatmulSpec &spec, GemmConfigAttr config,
               const MatmulLayout &layout, LLVM::LLVMFuncOp function)
      : b(b), spec(spec), config(config), layout(layout), function(function) {}

  void build();

private:
  bool isPingPong() const {
    return config.getSchedule() == GemmSchedule::PingPong;
  }
  bool hasScalesInRing() const { return layout.rowScales || layout.colScales; }
  const OperandSpec &getRowSpec() const {
    return config.getSwapAb() ? spec.b : spec.a;
  }
  const OperandSpec &getColSpec() const {
    return config.getSwapAb() ? spec.a : spec.b;
  }
  /// Parameter names of the rows' side: "a" or "b".
  StringRef getRowName() const { return config.getSwapAb() ? "b" : "a"; }
  StringRef getColName() const { return config.getSwapAb() ? "a" : "b"; }
  Value getParam(const Twine &name) const { return params.lookup(name.str()); }

  void buildParams();
  void buildThreads();
  void buildBarriers(Ring &ring);
  void buildOperandProducer(Ring ring);
  void buildScaleProducer(Ring ring);
  void buildConsumer(Ring ring);

  /// One operand's factors of a tile: the lane's first one at K block 0, bytes
  /// to the next K block and to 32 rows further on, rows that the lane has
  /// left; how many lie where in a slot.
  struct ScaleCopy {
    Value first, strideK, step, left;
    int64_t count, offset;
  };
  ScaleCopy getScaleCopy(bool ofA, const Tile &tile, int64_t count,
                         int64_t offset);
  void copyScales(const ScaleCopy &scales, Value k, Value stage);
  FragmentSource getSource(StringRef name, Type type, bool alongM, bool alongN,
                           bool alongBatch, const Tile &tile);
  void setSources(Epilogue &epilogue, const Tile &tile);
  void storeTile(Epilogue &epilogue, BulkTileStore *bulkStore, const Tile &tile,
                 ArrayRef<SmallVector<Value>> sums);

  KernelBuilder &b;
  const MatmulSpec &spec;
  GemmConfigAttr config;
  const MatmulLayout &layout;
  LLVM::LLVMFuncOp function;
  llvm::StringMap<Value> params;
  Value shared, thread, warp, lane;
  std::optional<TileScheduler> scheduler;
};
} // namespace

void MatmulKernel::build() {
  buildParams();
  buildThreads();
  Ring ring(b, shared, layout.offsetBarriers, config.getStages());
  buildBarriers(ring);

  scheduler.emplace(b,
                    TileScheduler::Shape{config.getTileM(), config.getTileN(),
                                         config.getGroup(), config.getSplitK()},
                    getParam("m"), getParam("n"), getParam("k"),
                    getParam("batch"));
  int64_t producerWarp = config.getConsumers() * 4;
  b.ifThenElse(
      b.less(warp, b.i32(producerWarp)),
      [&] {
        NVVM::SetMaxRegisterOp::create(b, layout.consumerRegisters,
                                       NVVM::SetMaxRegisterAction::increase);
        buildConsumer(ring);
      },
      [&] {
        NVVM::SetMaxRegisterOp::create(b, layout.producerRegisters,
                                       NVVM::SetMaxRegisterAction::decrease);
        b.ifThen(b.equal(warp, producerWarp),
                 [&] { b.electOne([&] { buildOperandProducer(ring); }); });
        if (hasScalesInRing())
          b.ifThen(b.equal(warp, producerWarp + 1),
                   [&] { buildScaleProducer(ring); });
      });
  LLVM::ReturnOp::create(b, ValueRange());
}

void MatmulKernel::buildParams() {
  for (auto [param, argument] :
       llvm::zip_equal(getMatmulParams(b.getContext(), spec, config),
                       function.getArguments()))
    params[param.name] = argument;
}

void MatmulKernel::buildThreads() {
  shared = LLVM::AddressOfOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 3), kSharedName);
  thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  // Through a shuffle, so that ptxas knows it to be uniform in a warp.
  warp = NVVM::ShflOp::create(
      b, b.getI32Type(), b.i32(-1), b.shiftRight(thread, 5), b.i32(0),
      b.i32(31), NVVM::ShflKind::idx, /*return_value_and_is_valid=*/UnitAttr());
  lane = b.bitAnd(thread, 31);
}

void MatmulKernel::buildBarriers(Ring &ring) {
  b.ifThen(b.equal(warp, config.getConsumers() * 4), [&] {
    b.electOne([&] {
      for (StringRef name : {"a.map", "b.map", "d.map"})
        if (Value map = getParam(name))
          NVVM::PrefetchOp::create(b, /*cacheLevel=*/nullptr,
                                   /*evictPriority=*/nullptr, map,
                                   /*predicate=*/Value(), /*tensormap=*/true);
      // The factors arrive with one asynchronous copy per lane.
      ring.initialize(/*fullArrivals=*/1 + (hasScalesInRing() ? 32 : 0),
                      /*emptyArrivals=*/config.getSharers() * 4);
    });
  });
  NVVM::BarrierOp::create(b);
  // With programmatic dependent launch, the kernel before has finished here.
  NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
}

//===----------------------------------------------------------------------===//
// Producers
//===----------------------------------------------------------------------===//

void MatmulKernel::buildOperandProducer(Ring ring) {
  int64_t bytes = layout.rowsBytes + layout.colsBytes;
  b.loop(scheduler->getFirst(), scheduler->getCount(), scheduler->getStride(),
         {b.i32(0), b.i32(1)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler->getTile(b, item);
           Value row = config.getSwapAb() ? tile.n : tile.m;
           Value col = config.getSwapAb() ? tile.m : tile.n;
           return b.loop(
               tile.kBegin, tile.kEnd, b.i32(1), carried,
               [&](Value k, ValueRange carried) -> SmallVector<Value> {
                 RingPosition position{carried[0], carried[1]};
                 ring.waitEmpty(position);
                 ring.expectBytes(position.stage, bytes);
                 Value barrier = ring.getFullBarrier(position.stage);
                 auto copy = [&](StringRef name, int64_t offset, int64_t size,
                                 Value origin) {
                   SmallVector<Value> coordinates{
                       b.mul(k, GemmConfigAttr::kTileK), origin};
                   if (spec.batched)
                     coordinates.push_back(tile.batch);
                   Value slot = b.offset(
                       shared, b.add(b.mul(position.stage, size), offset));
                   bulkLoad(b, getParam(name + ".map"), slot, barrier,
                            coordinates);
                 };
                 copy(getRowName(), layout.offsetRows, layout.rowsBytes, row);
                 copy(getColName(), layout.offsetCols, layout.colsBytes, col);
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase};
               });
         });
}

void MatmulKernel::buildScaleProducer(Ring ring) {
  b.loop(scheduler->getFirst(), scheduler->getCount(), scheduler->getStride(),
         {b.i32(0), b.i32(1)}, [&](Value item, ValueRange carried) {
           Tile tile = scheduler->getTile(b, item);
           std::optional<ScaleCopy> rows, cols;
           if (layout.rowScales)
             rows = getScaleCopy(/*ofA=*/!config.getSwapAb(), tile,
                                 layout.rowScales, layout.offsetRowScales);
           if (layout.colScales)
             cols = getScaleCopy(/*ofA=*/config.getSwapAb(), tile,
                                 layout.colScales, layout.offsetColScales);
           return b.loop(
               tile.kBegin, tile.kEnd, b.i32(1), carried,
               [&](Value k, ValueRange carried) -> SmallVector<Value> {
                 RingPosition position{carried[0], carried[1]};
                 ring.waitEmpty(position);
                 if (rows)
                   copyScales(*rows, k, position.stage);
                 if (cols)
                   copyScales(*cols, k, position.stage);
                 // Arrives when this lane's copies have landed; the barrier
                 // counts it from the start (noinc).
                 NVVM::CpAsyncMBarrierArriveOp::create(
                     b, ring.getFullBarrier(position.stage), /*noinc=*/true);
                 RingPosition next = ring.advance(position);
                 return {next.stage, next.phase};
               });
         });
}

MatmulKernel::ScaleCopy MatmulKernel::getScaleCopy(bool ofA, const Tile &tile,
                                                   int64_t count,
                                                   int64_t offset) {
  StringRef name = ofA ? "scale_a" : "scale_b";
  int64_t rows = getScaleRows(ofA ? spec.a.scale : spec.b.scale);
  Value extent = b.ceilDiv(getParam(ofA ? "m" : "n"), rows);
  Value first = b.add(b.div(ofA ? tile.m : tile.n, rows), lane);
  Value strideRow = getParam(name + ".stride_row");
  Value index = b.mul(b.widen(first), strideRow);
  if (spec.batched)
    index = b.add(index,
                  b.mul(b.widen(tile.batch), getParam(name + ".stride_batch")));
  Value step =
      arith::TruncIOp::create(b, b.getI32Type(), b.mul(strideRow, 32 * 4));
  return {b.element(getParam(name + ".ptr"), index, b.getF32Type()),
          b.mul(getParam(name + ".stride_k"), 4),
          step,
          b.sub(extent, first),
          count,
          offset};
}

/// Lane l copies factors l, l + 32, ... of a K block; beyond the operand they
/// are zero, like its rows. This warp must keep up with the tensor core: a few
/// instructions for each copy.
void MatmulKernel::copyScales(const ScaleCopy &scales, Value k, Value stage) {
  Value slot = b.offset(
      shared, b.add(b.add(b.mul(stage, scales.count * 4), scales.offset),
                    b.mul(lane, 4)));
  Value source = b.offset(scales.first, b.mul(b.widen(k), scales.strideK));
  // What could be computed before the loop would be kept in registers, of which
  // a producer has few.
  Value left = launder(b, scales.left);
  Value step = b.widen(launder(b, scales.step));
  for (int64_t i = 0; i < scales.count; i += 32) {
    auto copy = [&] {
      Value inside =
          arith::CmpIOp::create(b, arith::CmpIPredicate::sgt, left, b.i32(i));
      NVVM::CpAsyncOp::create(b, b.offset(slot, b.i32(i * 4)), source, 4,
                              NVVM::LoadCacheModifierKind::CA,
                              b.select(inside, b.i32(4), b.i32(0)));
    };
    if (scales.count - i >= 32)
      copy();
    else
      b.ifThen(b.less(lane, b.i32(scales.count - i)), copy);
    source = b.offset(source, step);
  }
}

//===----------------------------------------------------------------------===//
// Consumers
//===----------------------------------------------------------------------===//

void MatmulKernel::buildConsumer(Ring ring) {
  Value group = b.shiftRight(warp, 2);
  // Which slice of the tile this warpgroup computes.
  Value slice = isPingPong() ? b.i32(0) : group;
  Value barrierId = b.add(group, 1);
  Accumulator accumulator(b, spec, config, layout, ring, shared, slice, thread);

  std::optional<BulkTileStore> bulkStore;
  if (config.getStore() == GemmStore::TMA)
    bulkStore.emplace(
        b,
        BulkTileStore::Shape{
            config.getCols(), config.getWaves(), layout.storeBytes,
            spec.resultType.getIntOrFloatBitWidth() / 8, layout.stagingBuffers},
        shared,
        b.add(b.mul(group, layout.stagingBuffers * 64 * 128),
              layout.offsetStaging),
        getParam("d.map"), barrierId);
  Epilogue epilogue(b, spec, getParam("m"), getParam("n"),
                    /*vectorLoads=*/config.getStore() == GemmStore::TMA);
  if (spec.amax)
    epilogue.resetAmax();
  std::optional<SplitK> splitK;
  int64_t registers = config.getCols() / 2;
  if (config.getSplitK() > 1)
    splitK.emplace(
        b,
        SplitK::Shape{config.getSplitK(), config.getConsumers() * 128,
                      config.getWaves() * registers},
        getParam("workspace.ptr"), getParam("counters.ptr"),
        b.offset(shared,
                 b.i32(layout.offsetBarriers + 16 * config.getStages())),
        b.i32(kAllConsumersBarrier));

  Value first = scheduler->getFirst(), stride = scheduler->getStride();
  RingPosition position{b.i32(0), b.i32(0)};
  if (isPingPong()) {
    // The second warpgroup starts one tile later, in the schedule and the ring,
    // and lets the first one begin.
    Value isSecond = b.equal(group, 1);
    RingPosition later = ring.skip(position, scheduler->getKBlocks());
    position = {b.select(isSecond, later.stage, position.stage),
                b.select(isSecond, later.phase, position.phase)};
    first = b.add(first, b.mul(group, stride));
    stride = b.mul(stride, 2);
    b.ifThen(isSecond, [&] { b.namedBarrierArrive(b.i32(kTurnBarrier), 256); });
  }

  b.loop(first, scheduler->getCount(), stride, {position.stage, position.phase},
         [&](Value item, ValueRange carried) -> SmallVector<Value> {
           Tile tile = scheduler->getTile(b, item);
           RingPosition position{carried[0], carried[1]};
           // Warpgroups take turns on the tensor cores: each waits at its own
           // barrier for the other to have issued a whole tile.
           if (isPingPong())
             b.namedBarrier(b.add(group, kTurnBarrier), 256);
           SmallVector<SmallVector<Value>> sums =
               accumulator.accumulate(tile, position, [&] {
                 if (isPingPong())
                   b.namedBarrierArrive(b.sub(b.i32(kTurnBarrier + 1), group),
                                        256);
               });
           if (isPingPong())
             position = ring.skip(position, scheduler->getKBlocks());
           auto finish = [&](ArrayRef<SmallVector<Value>> sums) {
             setSources(epilogue, tile);
             storeTile(epilogue, bulkStore ? &*bulkStore : nullptr, tile, sums);
           };
           if (!splitK) {
             finish(sums);
           } else {
             SmallVector<Value> flat;
             for (ArrayRef<Value> wave : sums)
               flat.append(wave.begin(), wave.end());
             splitK->reduce(
                 tile.index, tile.split, thread, flat, [&](ValueRange all) {
                   SmallVector<SmallVector<Value>> waves;
                   for (; !all.empty(); all = all.drop_front(registers))
                     waves.emplace_back(all.take_front(registers));
                   finish(waves);
                 });
           }
           return {position.stage, position.phase};
         });
  if (bulkStore)
    bulkStore->finish(b.bitAnd(thread, 127));
  if (spec.amax)
    epilogue.storeAmax(getParam("amax.ptr"), lane);
}

FragmentSource MatmulKernel::getSource(StringRef name, Type type, bool alongM,
                                       bool alongN, bool alongBatch,
                                       const Tile &tile) {
  Value pointer = getParam(name + ".ptr");
  if (alongBatch)
    pointer = b.element(
        pointer, b.mul(b.widen(tile.batch), getParam(name + ".stride_batch")),
        type);
  return {pointer, getParam(name + ".stride_m"), type, alongM, alongN};
}

void MatmulKernel::setSources(Epilogue &epilogue, const Tile &tile) {
  auto factor = [&](const OperandSpec &operand, StringRef name,
                    bool isA) -> std::optional<FragmentSource> {
    if (isBlockedAlongK(operand.scale))
      return std::nullopt;
    bool perRow = operand.scale == ScaleBlock::Row;
    FragmentSource source = getSource(name, b.getF32Type(), perRow && isA,
                                      perRow && !isA, spec.batched, tile);
    // One factor a row, next to each other.
    source.strideM = b.i64(1);
    return source;
  };
  epilogue.setFactors(factor(spec.a, "scale_a", true),
                      factor(spec.b, "scale_b", false));
  for (auto [i, operand] : llvm::enumerate(spec.operands))
    epilogue.addOperand(getSource("operand" + std::to_string(i),
                                  operand.elementType, operand.alongM,
                                  operand.alongN, operand.alongBatch, tile));
  SmallVector<Value> captures;
  for (size_t i = 0; i < spec.captures.size(); ++i)
    captures.push_back(getParam("capture" + Twine(i)));
  epilogue.setCaptures(captures);
}

void MatmulKernel::storeTile(Epilogue &epilogue, BulkTileStore *bulkStore,
                             const Tile &tile,
                             ArrayRef<SmallVector<Value>> sums) {
  bool swapped = config.getSwapAb();
  // Addresses of the store would otherwise be kept in registers all through
  // the main loop.
  Value local = launder(b, thread);
  Value inGroup = b.bitAnd(local, 127), laneId = b.bitAnd(local, 31);
  Value slice = isPingPong() ? b.i32(0) : b.shiftRight(local, 7);
  for (auto [wave, registers] : llvm::enumerate(sums)) {
    Value waveRow = b.add(b.mul(slice, 64), wave * config.getSharers() * 64);
    Value threadRow =
        b.add(b.mul(b.shiftRight(inGroup, 5), 16), b.shiftRight(laneId, 2));
    Fragment fragment;
    fragment.row = b.add(b.add(swapped ? tile.n : tile.m, waveRow), threadRow);
    fragment.col =
        b.add(swapped ? tile.m : tile.n, b.mul(b.bitAnd(laneId, 3), 2));
    fragment.swapped = swapped;
    epilogue.beginWave(fragment);
    auto packedAt = [&, &registers = registers](int64_t j, int64_t h) {
      return epilogue.evaluate(
          j, h, {registers[4 * j + 2 * h], registers[4 * j + 2 * h + 1]});
    };
    if (bulkStore) {
      SmallVector<Value> origin{tile.n, b.add(tile.m, waveRow)};
      if (spec.batched)
        origin.push_back(tile.batch);
      bulkStore->storeWave(wave, inGroup, origin, packedAt);
      continue;
    }
    Value result = getParam("d.ptr");
    if (spec.batched)
      result = b.element(result,
                         b.mul(b.widen(tile.batch), getParam("d.stride_batch")),
                         spec.resultType);
    DirectTileStore(b, spec.resultType, config.getCols(), getParam("m"),
                    getParam("n"), getParam("d.stride_m"))
        .storeWave(result, fragment, packedAt);
  }
}

//===----------------------------------------------------------------------===//
// The function
//===----------------------------------------------------------------------===//

/// Declares dynamic shared memory once in the module around `builder`.
static void declareShared(OpBuilder &builder, Location loc) {
  Operation *module = builder.getInsertionBlock()
                          ->getParent()
                          ->getParentOfType<gpu::GPUModuleOp>();
  if (SymbolTable::lookupSymbolIn(module, kSharedName))
    return;
  auto type = LLVM::LLVMArrayType::get(builder.getI8Type(), 0);
  LLVM::GlobalOp::create(builder, loc, type, /*isConstant=*/false,
                         LLVM::Linkage::External, kSharedName,
                         /*value=*/Attribute(), /*alignment=*/1024,
                         /*addrSpace=*/3);
}

FailureOr<LLVM::LLVMFuncOp>
fp8::buildMatmulSM90(OpBuilder &builder, Location loc, const MatmulSpec &spec,
                     GemmConfigAttr config, StringRef name,
                     std::string &reason) {
  FailureOr<MatmulLayout> layout = MatmulLayout::get(spec, config, reason);
  if (failed(layout) || failed(Epilogue::check(spec, reason)))
    return failure();
  MLIRContext *context = builder.getContext();
  OpBuilder::InsertionGuard guard(builder);
  declareShared(builder, loc);

  SmallVector<Type> types;
  SmallVector<KernelParam> params = getMatmulParams(context, spec, config);
  for (const KernelParam &param : params)
    types.push_back(param.type);
  auto type =
      LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), types);
  auto function = LLVM::LLVMFuncOp::create(builder, loc, name, type);
  for (auto [i, param] : llvm::enumerate(params)) {
    if (!param.isTensorMap)
      continue;
    // Read in place from the constant bank, 64-byte aligned.
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                        builder.getI64IntegerAttr(64));
    function.setArgAttr(
        i, LLVM::LLVMDialect::getByValAttrName(),
        TypeAttr::get(LLVM::LLVMArrayType::get(builder.getI8Type(), 128)));
    function.setArgAttr(i, NVVM::NVVMDialect::getGridConstantAttrName(),
                        builder.getUnitAttr());
  }
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(),
                    builder.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    builder.getDenseI32ArrayAttr(
                        {static_cast<int32_t>(layout->threads), 1, 1}));
  // Without it ptxas does not know how many registers a thread has at entry,
  // and ignores setmaxnreg.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    builder.getI32IntegerAttr(1));
  function->setAttr(kLaunchAttrName,
                    getMatmulLaunchInfo(context, spec, config, *layout));

  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  KernelBuilder b(loc, builder);
  MatmulKernel(b, spec, config, *layout, function).build();
  return function;
}

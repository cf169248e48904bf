//===- MatmulLayout.cpp - Shared memory, registers and interface of matmuls
//===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/MatmulKernel.h"
#include "fp8/Kernels/Target.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

/// Bytes of one consumer's staging buffer: 64 rows of a 128-byte swizzle atom.
static constexpr int64_t kStagingBytes = 64 * 128;

static int64_t getByteWidth(Type type) {
  return type.getIntOrFloatBitWidth() / 8;
}

/// Factors of one operand in a slot of the ring.
static int64_t getScalesPerSlot(ScaleBlock scale, int64_t extent) {
  return isBlockedAlongK(scale) ? llvm::divideCeil(extent, getScaleRows(scale))
                                : 0;
}

/// The accumulator registers of one consumer thread: f32 sums of all waves
/// and, with promotion, one more wave that the tensor core writes to.
static int64_t getAccumulatorRegisters(const MatmulSpec &spec,
                                       GemmConfigAttr config) {
  int64_t wave = config.getCols() / 2;
  return wave * (config.getWaves() + (spec.accumulate == Accumulate::Promote));
}

FailureOr<MatmulLayout> MatmulLayout::get(const MatmulSpec &spec,
                                          GemmConfigAttr config,
                                          std::string &reason) {
  MatmulLayout layout;
  int64_t consumers = config.getConsumers();
  const OperandSpec &rowSpec = config.getSwapAb() ? spec.b : spec.a;
  const OperandSpec &colSpec = config.getSwapAb() ? spec.a : spec.b;
  layout.rowsBytes = config.getRows() * GemmConfigAttr::kTileK;
  layout.colsBytes = config.getCols() * GemmConfigAttr::kTileK;
  layout.rowScales = getScalesPerSlot(rowSpec.scale, config.getRows());
  layout.colScales = getScalesPerSlot(colSpec.scale, config.getCols());
  layout.threads = (consumers + 1) * 128;
  // 512 registers for one thread of each warpgroup, in multiples of 8; the warp
  // that copies factors needs more than one that only issues bulk copies.
  bool hasScales = layout.rowScales || layout.colScales;
  layout.producerRegisters = consumers == 3 ? 32 : hasScales ? 40 : 24;
  layout.consumerRegisters = consumers == 3 ? 160 : hasScales ? 232 : 240;

  for (auto [operand, extent, name] :
       {std::tuple{&rowSpec, config.getRows(),
                   config.getSwapAb() ? "tile_n" : "tile_m"},
        {&colSpec, config.getCols(), config.getSwapAb() ? "tile_m" : "tile_n"}})
    if (operand->scale == ScaleBlock::Block128 && extent % 128 != 0 &&
        128 % extent != 0) {
      reason = llvm::formatv("expected {0} to divide 128 or be a multiple of "
                             "it with factors of 128 rows, but got {1}",
                             name, extent);
      return failure();
    }

  int64_t accumulators = getAccumulatorRegisters(spec, config);
  // Factors of columns live through all waves of a k-block.
  if (colSpec.scale == ScaleBlock::Row128)
    accumulators += config.getCols() / 4;
  // An epilogue holds results of one wave beside the sums of the next; factors
  // per row take some registers, too.
  int64_t sums = config.getWaves() * config.getCols() / 2;
  bool perRow =
      rowSpec.scale == ScaleBlock::Row || colSpec.scale == ScaleBlock::Row;
  accumulators = std::max(accumulators, sums + (spec.epilogue ? 64
                                                : perRow      ? 44
                                                              : 0));
  // What addresses and factors need beside them.
  int64_t limit = layout.consumerRegisters - 24;
  if (accumulators > limit) {
    reason = llvm::formatv("expected accumulators of up to {0} registers a "
                           "thread, but {1} need {2}",
                           limit, config, accumulators);
    return failure();
  }

  if (config.getStore() == GemmStore::TMA) {
    // The widest swizzle that writes no more than a quarter of the tile twice.
    int64_t bytes = config.getTileN() * getByteWidth(spec.resultType);
    for (int64_t width : {128, 64, 32, 16})
      if (!layout.storeBytes && width <= bytes &&
          llvm::alignTo(bytes, width) * 4 <= bytes * 5)
        layout.storeBytes = width;
    if (!layout.storeBytes) {
      reason = llvm::formatv("expected the rows of a tile to have a multiple "
                             "of 16 bytes with store = tma, but got {0}",
                             bytes);
      return failure();
    }
  }

  // One buffer is filled while the bulk copy reads the other, if both fit.
  layout.place(config);
  if (layout.sharedBytes > kSM90.sharedBytesPerBlock) {
    layout.stagingBuffers = 1;
    layout.place(config);
  }
  if (layout.sharedBytes > kSM90.sharedBytesPerBlock) {
    reason =
        llvm::formatv("expected up to {0} bytes of shared memory, but {1} "
                      "needs {2}",
                      kSM90.sharedBytesPerBlock, config, layout.sharedBytes);
    return failure();
  }
  return layout;
}

void MatmulLayout::place(GemmConfigAttr config) {
  int64_t stages = config.getStages();
  offsetRows = 0;
  offsetCols = offsetRows + stages * rowsBytes;
  offsetStaging = offsetCols + stages * colsBytes;
  offsetRowScales = offsetStaging;
  if (storeBytes)
    offsetRowScales += config.getConsumers() * stagingBuffers * kStagingBytes;
  // Factors of columns are loaded in pairs.
  offsetColScales = llvm::alignTo(offsetRowScales + stages * rowScales * 4, 8);
  // A full and an empty barrier for each slot; a word for the last block of a
  // split tile.
  offsetBarriers = llvm::alignTo(offsetColScales + stages * colScales * 4, 8);
  sharedBytes = offsetBarriers + stages * 16 + 16;
}

SmallVector<KernelParam> fp8::getMatmulParams(MLIRContext *context,
                                              const MatmulSpec &spec,
                                              GemmConfigAttr config) {
  auto pointer = LLVM::LLVMPointerType::get(context, 1);
  auto generic = LLVM::LLVMPointerType::get(context);
  auto i32 = IntegerType::get(context, 32), i64 = IntegerType::get(context, 64);
  SmallVector<KernelParam> params;
  auto addMap = [&](const char *name) {
    params.push_back({name, generic, /*isTensorMap=*/true});
  };
  auto add = [&](const Twine &name, Type type) {
    params.push_back({name.str(), type});
  };
  addMap("a.map");
  addMap("b.map");
  if (config.getStore() == GemmStore::TMA) {
    addMap("d.map");
  } else {
    add("d.ptr", pointer);
    add("d.stride_m", i64);
    add("d.stride_batch", i64);
  }
  for (StringRef name : {"scale_a", "scale_b"}) {
    add(name + ".ptr", pointer);
    add(name + ".stride_row", i64);
    add(name + ".stride_k", i64);
    add(name + ".stride_batch", i64);
  }
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    std::string name = "operand" + std::to_string(i);
    add(name + ".ptr", pointer);
    add(name + ".stride_m", i64);
    add(name + ".stride_batch", i64);
  }
  for (auto [i, value] : llvm::enumerate(spec.captures))
    add("capture" + Twine(i), value.getType());
  if (spec.amax)
    add("amax.ptr", pointer);
  if (config.getSplitK() > 1) {
    add("workspace.ptr", pointer);
    add("counters.ptr", pointer);
  }
  for (StringRef name : {"m", "n", "k"})
    add(name, i32);
  if (spec.batched)
    add("batch", i32);
  return params;
}

//===----------------------------------------------------------------------===//
// Names and launch information
//===----------------------------------------------------------------------===//

static StringRef getTypeName(Type type) {
  if (isa<Float8E4M3FNType>(type))
    return "e4m3";
  if (isa<Float8E5M2Type>(type))
    return "e5m2";
  return isa<BFloat16Type>(type) ? "bf16" : type.isF16() ? "f16" : "f32";
}

static StringRef getScaleName(ScaleBlock scale) {
  switch (scale) {
  case ScaleBlock::Tensor:
    return "tensor";
  case ScaleBlock::Row:
    return "row";
  case ScaleBlock::Row128:
    return "1x128";
  case ScaleBlock::Block128:
    return "128x128";
  }
  llvm_unreachable("every granularity has a name");
}

std::string fp8::getMatmulTypesName(const MatmulSpec &spec) {
  std::string name;
  llvm::raw_string_ostream os(name);
  os << getTypeName(spec.a.elementType) << '_'
     << getTypeName(spec.b.elementType) << '_' << getTypeName(spec.resultType)
     << '_' << getScaleName(spec.a.scale) << '_' << getScaleName(spec.b.scale)
     << '_' << stringifyAccumulate(spec.accumulate);
  return name;
}

std::string fp8::getMatmulKernelName(const MatmulSpec &spec,
                                     GemmConfigAttr config) {
  std::string name;
  llvm::raw_string_ostream os(name);
  os << "fp8_matmul_sm90a_" << getMatmulTypesName(spec) << '_'
     << config.getTileM() << 'x' << config.getTileN() << "_s"
     << config.getStages() << 'c' << config.getConsumers();
  if (config.getSchedule() == GemmSchedule::PingPong)
    os << "_pp";
  if (config.getSwapAb())
    os << "_swap";
  if (config.getSplitK() > 1)
    os << "_k" << config.getSplitK();
  if (config.getStore() == GemmStore::Direct && !config.getSwapAb())
    os << "_direct";
  if (config.getCluster() > 1)
    os << "_cluster" << config.getCluster();
  os << "_g" << config.getGroup();
  if (spec.batched)
    os << "_batch";
  return name;
}

DictionaryAttr fp8::getMatmulLaunchInfo(MLIRContext *context,
                                        const MatmulSpec &spec,
                                        GemmConfigAttr config,
                                        const MatmulLayout &layout) {
  Builder builder(context);
  SmallVector<Attribute> params;
  for (const KernelParam &param : getMatmulParams(context, spec, config))
    params.push_back(builder.getStringAttr(param.name));
  auto i64 = [&](int64_t value) { return builder.getI64IntegerAttr(value); };
  SmallVector<NamedAttribute> entries{
      builder.getNamedAttr("params", builder.getArrayAttr(params)),
      builder.getNamedAttr("threads", i64(layout.threads)),
      builder.getNamedAttr("shared_bytes", i64(layout.sharedBytes)),
      builder.getNamedAttr("tile_m", i64(config.getTileM())),
      builder.getNamedAttr("tile_n", i64(config.getTileN())),
      builder.getNamedAttr("split_k", i64(config.getSplitK())),
      builder.getNamedAttr("cluster", i64(config.getCluster())),
      builder.getNamedAttr("cluster_m", i64(config.getClusterM())),
      builder.getNamedAttr("cluster_n", i64(config.getClusterN())),
      builder.getNamedAttr("box_m", i64(config.getBoxM())),
      builder.getNamedAttr("box_n", i64(config.getBoxN())),
      builder.getNamedAttr("store_bytes", i64(layout.storeBytes)),
      builder.getNamedAttr("config", config)};
  if (config.getSplitK() > 1)
    entries.push_back(builder.getNamedAttr(
        "workspace_bytes_per_tile",
        i64(config.getSplitK() * config.getRows() * config.getCols() * 4)));
  return builder.getDictionaryAttr(entries);
}

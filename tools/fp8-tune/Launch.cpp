//===- Launch.cpp - One kernel on one set of buffers ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"

#include "StateContents.h"

using namespace mlir;
using namespace mlir::fp8;

static uint64_t getAddress(void *pointer) {
  return reinterpret_cast<uintptr_t>(pointer);
}

/// The bits of 1 in a scalar that the epilogue captures.
static uint64_t getOne(Type type) {
  auto floatType = dyn_cast<FloatType>(type);
  if (!floatType)
    return 1;
  return llvm::APFloat::getOne(floatType.getFloatSemantics())
      .bitcastToAPInt()
      .getZExtValue();
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

static int32_t getMapType(Type type) {
  if (type.getIntOrFloatBitWidth() == 8)
    return FP8RT_TENSOR_MAP_U8;
  if (type.isF32())
    return FP8RT_TENSOR_MAP_F32;
  return type.isF16() ? FP8RT_TENSOR_MAP_F16 : FP8RT_TENSOR_MAP_BF16;
}

static int32_t getSwizzle(int64_t rowBytes) {
  switch (rowBytes) {
  case 128:
    return FP8RT_TENSOR_MAP_SWIZZLE_128B;
  case 64:
    return FP8RT_TENSOR_MAP_SWIZZLE_64B;
  case 32:
    return FP8RT_TENSOR_MAP_SWIZZLE_32B;
  default:
    return FP8RT_TENSOR_MAP_SWIZZLE_NONE;
  }
}

llvm::Error Launch::makeMap(StringRef name, fp8rt_tensor_map &map) const {
  bool isA = name == "a", isResult = name == "d";
  Type type = isResult ? spec.resultType
              : isA    ? spec.a.elementType
                       : spec.b.elementType;
  uint64_t bytes = type.getIntOrFloatBitWidth() / 8;
  uint64_t columns = isResult ? spec.n : spec.k;
  uint64_t rows = isResult || isA ? spec.m : spec.n;
  uint64_t rowBytes = isResult ? candidate.storeBytes : 128;
  uint64_t boxRows = isResult ? 64
                     : isA    ? candidate.config.getBoxM()
                              : candidate.config.getBoxN();
  fp8rt_tensor_map_desc desc{};
  desc.address = isResult ? buffers.result : isA ? buffers.a : buffers.b;
  desc.type = getMapType(type);
  desc.rank = spec.batched ? 3 : 2;
  desc.sizes[0] = columns;
  desc.sizes[1] = rows;
  desc.sizes[2] = spec.batch;
  desc.strides[1] = columns * bytes;
  desc.strides[2] = rows * columns * bytes;
  desc.box[0] = rowBytes / bytes;
  desc.box[1] = boxRows;
  desc.box[2] = 1;
  desc.swizzle = getSwizzle(rowBytes);
  desc.l2_promotion = FP8RT_TENSOR_MAP_L2_128B;
  return makeError(fp8rt_tensor_map_get(GPU::kDevice, &desc, &map));
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// Factors lie as programs have them: those along K together.
uint64_t Launch::getScaleValue(bool isA, StringRef field) const {
  if (field == "ptr")
    return getAddress(isA ? buffers.scaleA : buffers.scaleB);
  ScaleExtents extents = getScaleExtents(isA ? spec.a.scale : spec.b.scale,
                                         isA ? spec.m : spec.n, spec.k);
  if (field == "stride_batch")
    return extents.rows * extents.k;
  if (field == "stride_row")
    return extents.rows == 1 ? 0 : extents.k;
  return extents.k == 1 ? 0 : 1;
}

uint64_t Launch::getOperandValue(unsigned index, StringRef field) const {
  if (field == "ptr")
    return getAddress(buffers.operands[index]);
  const EpilogueOperandSpec &operand = spec.operands[index];
  int64_t row = operand.alongN ? spec.n : 1;
  if (field == "stride_m")
    return operand.alongM ? row : 0;
  return operand.alongBatch ? row * (operand.alongM ? spec.m : 1) : 0;
}

std::optional<uint64_t> Launch::getValue(StringRef name,
                                         StringRef field) const {
  unsigned index;
  if (name == "scale_a" || name == "scale_b")
    return getScaleValue(name == "scale_a", field);
  if (name == "d" && field == "ptr")
    return getAddress(buffers.result);
  if (name == "d")
    return field == "stride_m" ? spec.n : spec.m * spec.n;
  if (name.consume_front("operand") && !name.getAsInteger(10, index))
    return getOperandValue(index, field);
  if (name.consume_front("capture") && !name.getAsInteger(10, index))
    return getOne(spec.captures[index].getType());
  if (name == "amax")
    return getAddress(buffers.amax);
  if (name == "workspace")
    return getAddress(problem.getWorkspace());
  if (name == "counters")
    return getAddress(problem.getCounters());
  if (name == "m")
    return spec.m;
  if (name == "n")
    return spec.n;
  if (name == "k")
    return spec.k;
  if (name == "batch")
    return spec.batch;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

llvm::Error Launch::addParam(StringRef param) {
  auto [name, field] = param.split('.');
  if (field == "map") {
    params.push_back(&maps.emplace_back());
    return makeMap(name, maps.back());
  }
  std::optional<uint64_t> value = getValue(name, field);
  if (!value)
    return llvm::createStringError("expected a parameter of a matmul's kernel, "
                                   "but got '" +
                                   param + "'");
  // Little-endian: narrower values are the first bytes.
  params.push_back(&values.emplace_back(*value));
  return llvm::Error::success();
}

Launch::Launch(const Candidate &candidate, const Problem &problem,
               const Problem::Buffers &buffers, fp8rt_function function,
               GPU &gpu)
    : candidate(candidate), problem(problem), spec(problem.getSpec()),
      buffers(buffers), gpu(gpu), function(function) {
  int64_t cluster = candidate.config.getCluster();
  int64_t clusters = std::min<int64_t>(gpu.getInfo().num_sms / cluster,
                                       getTiles(spec, candidate.config) *
                                           candidate.config.getSplitK());
  config.grid[0] = clusters * cluster;
  config.grid[1] = config.grid[2] = 1;
  config.block[0] = candidate.threads;
  config.block[1] = config.block[2] = 1;
  config.flags = FP8RT_LAUNCH_OVERLAP;
  config.dynamic_smem = candidate.sharedBytes;
  values.reserve(candidate.params.size());
  maps.reserve(candidate.params.size());
}

llvm::Expected<std::unique_ptr<Launch>>
Launch::create(const Candidate &candidate, const Problem &problem,
               const Problem::Buffers &buffers, fp8rt_function function,
               GPU &gpu) {
  std::unique_ptr<Launch> launch(
      new Launch(candidate, problem, buffers, function, gpu));
  for (StringRef param : candidate.params)
    if (auto error = launch->addParam(param))
      return error;
  return launch;
}

llvm::Error Launch::run() {
  return makeError(
      fp8rt_launch(function, &config, params.data(), gpu.getStream()));
}

//===- Problem.cpp - Arguments of a kernel on a GPU -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Problem.h"

#include "fp8/IR/FP8Ops.h"
#include "fp8/Support/Runtime.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/MathExtras.h"

#include <random>

using namespace mlir;
using namespace mlir::fp8;

/// Repeated for larger tensors; a multiple of every element's size.
static constexpr size_t kRandomBytes = 16 << 20;
static constexpr int64_t kMaxSets = 16;

/// The bits of a random element; of bytes two codes of f4E2M1FN, of other types
/// that are no floats 1.
static uint64_t getRandomBits(Type type, std::mt19937_64 &random) {
  auto floatType = dyn_cast<FloatType>(type);
  if (type.isInteger(8))
    return random() & 0xff;
  if (!floatType)
    return 1;
  const llvm::fltSemantics &semantics = floatType.getFloatSemantics();
  unsigned mantissaBits = llvm::APFloat::semanticsPrecision(semantics) - 1;
  uint64_t bits = random();
  uint64_t one =
      llvm::APFloat::getOne(semantics).bitcastToAPInt().getZExtValue();
  uint64_t exponent = (one >> mantissaBits) - 3 + (bits & 0xff) % 5;
  uint64_t mantissa =
      bits >> 12 & llvm::maskTrailingOnes<uint64_t>(mantissaBits);
  uint64_t code = exponent << mantissaBits | mantissa;
  if (llvm::APFloat::semanticsHasSignedRepr(semantics))
    code |= (bits >> 8 & 1) << (floatType.getWidth() - 1);
  return code;
}

static std::vector<uint8_t> getRandomData(Type type, uint64_t bytes,
                                          unsigned seed) {
  std::mt19937_64 random(seed);
  size_t size = llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
  std::vector<uint8_t> data(std::min<uint64_t>(bytes, kRandomBytes));
  for (size_t at = 0; at + size <= data.size(); at += size) {
    // Little-endian: narrower values are the first bytes.
    uint64_t bits = getRandomBits(type, random);
    std::memcpy(data.data() + at, &bits, size);
  }
  return data;
}

/// Bounds of groups that are equally large; those that are masked are as large
/// as they are expected to be.
static std::vector<uint8_t> getEvenBounds(GroupedMatmulOp op) {
  int64_t groups = op.getNumGroups();
  SmallVector<int64_t> shape = op.getShapeOfA();
  int64_t extent = op.sumsGroups() ? shape.back() : shape[shape.size() - 2];
  std::vector<uint8_t> data;
  auto add = [&](int32_t bound) {
    auto *bytes = reinterpret_cast<const uint8_t *>(&bound);
    data.insert(data.end(), bytes, bytes + sizeof(bound));
  };
  if (op.isMasked())
    for (int64_t group = 0; group < groups; ++group)
      add(std::min<int64_t>(op.getExpectedM().value_or(extent), extent));
  else
    for (int64_t group = 0; group <= groups; ++group)
      add(extent * group / groups);
  return data;
}

static uint64_t getBytes(RankedTensorType type) {
  return type.getNumElements() *
         llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// A dense tensor.
static fp8rt_kernel_argument getArgument(RankedTensorType type, void *data) {
  fp8rt_kernel_argument argument{};
  argument.data = data;
  int64_t stride = 1;
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    argument.sizes[dim] = type.getDimSize(dim);
    argument.strides[dim] = stride;
    stride *= type.getDimSize(dim);
  }
  return argument;
}

llvm::Error Problem::addSet(ArrayRef<RankedTensorType> types,
                            ArrayRef<std::vector<uint8_t>> inputs) {
  Arguments &arguments = sets.emplace_back();
  for (auto [i, type] : llvm::enumerate(types)) {
    auto block = i < inputs.size()
                     ? memory.allocate(getBytes(type), inputs[i])
                     : memory.allocate(getBytes(type), uint8_t(0));
    if (!block)
      return block.takeError();
    arguments.push_back(getArgument(type, *block));
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Problem>>
Problem::create(const TunedKernel &tuned, GPU &gpu) {
  std::unique_ptr<Problem> problem(new Problem(gpu));
  OpBuilder builder(tuned.op);
  KernelOpInterface op = tuned.op;
  KernelOperands operands = op.getKernelOperands(builder);
  SmallVector<RankedTensorType> types;
  for (Value value : llvm::concat<Value>(operands.ins, operands.outs))
    types.push_back(cast<RankedTensorType>(value.getType()));
  uint64_t bytes = 0;
  for (RankedTensorType type : types)
    bytes += getBytes(type);
  std::mt19937_64 random;
  for (Value capture : operands.captures)
    problem->scalars.push_back(getRandomBits(capture.getType(), random));
  for (uint64_t &bits : problem->scalars)
    problem->captures.push_back(&bits);
  std::vector<std::vector<uint8_t>> inputs;
  auto grouped = dyn_cast<GroupedMatmulOp>(op.getOperation());
  for (auto [i, value] : llvm::enumerate(operands.ins))
    inputs.push_back(grouped && value == grouped.getBounds()
                         ? getEvenBounds(grouped)
                         : getRandomData(types[i].getElementType(),
                                         getBytes(types[i]),
                                         /*seed=*/i + 1));
  int64_t count = llvm::divideCeil(2 * gpu.getInfo().l2_cache_size,
                                   std::max<uint64_t>(bytes, 1)) +
                  1;
  for (int64_t i = 0, e = std::clamp<int64_t>(count, 2, kMaxSets); i < e; ++i)
    if (auto error = problem->addSet(types, inputs))
      return error;
  return problem;
}

llvm::Expected<ArrayRef<void *>>
Problem::getWorkspaces(const fp8rt_kernel *kernel) {
  size_t count = fp8rt_kernel_get_num_workspaces(kernel);
  workspaces.resize(std::max(workspaces.size(), count));
  workspaceBytes.resize(workspaces.size());
  for (size_t i = 0; i < count; ++i) {
    uint64_t bytes = 0;
    if (auto error = makeError(fp8rt_kernel_get_workspace_bytes(
            kernel, sets.front().data(), i, &bytes)))
      return error;
    if (bytes <= workspaceBytes[i])
      continue;
    auto block = memory.allocate(bytes, uint8_t(0));
    if (!block)
      return block.takeError();
    workspaces[i] = *block;
    workspaceBytes[i] = bytes;
  }
  return ArrayRef<void *>(workspaces).take_front(count);
}

//===- Call.cpp - A call with a caller's tensors --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"

#include "fp8/Runtime/Memory.h"
#include "fp8/Support/Runtime.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::capi;

llvm::Error capi::makeArgumentError(const Twine &message) {
  return llvm::make_error<RuntimeError>(FP8RT_ERROR_INVALID_ARGUMENT,
                                        message.str());
}

std::string NamedValue::describe() const {
  return (kind + " '" + info.name + "' of '" + function.name + "'").str();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

llvm::Error Call::findFunction(const char *name) {
  const fp8rt_program_info &info = program.getInfo();
  if (!name && info.num_functions == 1) {
    function = &info.functions[0];
    return llvm::Error::success();
  }
  if (!name) {
    std::string names;
    for (uint32_t i = 0; i < info.num_functions; ++i)
      names += std::string(i ? ", '" : "'") + info.functions[i].name + "'";
    return makeArgumentError("expected the name of one of the functions " +
                             names + ", but got null");
  }
  auto found = program.getFunction(name);
  if (!found)
    return found.takeError();
  function = *found;
  return llvm::Error::success();
}

static llvm::Error checkCount(const fp8rt_program_function &function,
                              StringRef kind, int32_t expected, size_t got) {
  if (got == static_cast<size_t>(expected))
    return llvm::Error::success();
  return makeArgumentError("expected " + Twine(expected) + " " + kind +
                           " for '" + function.name + "', but got " +
                           Twine(got));
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The dtype's name, also of one that programs lack, or its numbers.
static std::string describe(fp8c_dtype dtype) {
  if (const char *name = fp8c_dtype_get_name(dtype))
    return name;
  // DLPack's codes, in their order.
  static constexpr StringRef letters = "IUF__C";
  if (dtype.lanes == 1 && dtype.code < letters.size() &&
      letters[dtype.code] != '_')
    return letters[dtype.code] + std::to_string(dtype.bits);
  return "dtype " + std::to_string(dtype.code) + " of " +
         std::to_string(dtype.bits) + " bits and " +
         std::to_string(dtype.lanes) + " lanes";
}

/// Whether an element of the dtype is a byte that codes share.
static bool isSharedByte(const char *name) {
  fp8c_dtype dtype;
  return fp8c_dtype_from_name(name, &dtype) == FP8RT_OK && dtype.lanes > 1 &&
         dtype.bits * dtype.lanes == 8;
}

llvm::Error Call::checkType(const NamedValue &named,
                            const fp8c_tensor *tensor) {
  const fp8rt_program_value &info = named.info;
  if (!tensor)
    return makeArgumentError("expected " + named.describe() +
                             " to be given, but got null");
  const char *dtype = fp8c_dtype_get_name(tensor->dtype);
  bool isSame =
      dtype && (StringRef(dtype) == info.dtype ||
                // Frameworks that lack it have bytes.
                (isSharedByte(info.dtype) && StringRef(dtype) == "U8"));
  if (!isSame)
    return makeArgumentError("expected " + named.describe() + " to be " +
                             info.dtype + ", but got " +
                             ::describe(tensor->dtype));
  int32_t rank = std::max(info.rank, 0);
  if (tensor->rank != rank)
    return makeArgumentError("expected " + named.describe() + " to have rank " +
                             Twine(rank) + ", but got " + Twine(tensor->rank));
  if (rank != 0 && !tensor->sizes)
    return makeArgumentError("expected " + named.describe() +
                             " to have sizes, but got null");
  // Other sizes than those that are known are refused by the runtime.
  ArrayRef<int64_t> sizes(tensor->sizes, rank), known(info.sizes, rank);
  bool mayBeCalled = llvm::all_of(llvm::zip_equal(sizes, known), [](auto pair) {
    auto [size, expected] = pair;
    return expected < 0 ? size != 0 : size == expected;
  });
  int64_t bytes = info.width;
  if (mayBeCalled && llvm::any_of(sizes, [&](int64_t size) {
        return llvm::MulOverflow(bytes, size, bytes);
      }))
    return makeArgumentError("expected " + named.describe() +
                             " to have less than 2^63 bytes, but got more");
  // Tensors without elements have none, which the runtime sees.
  if (info.rank < 0 && !tensor->data)
    return makeArgumentError("expected " + named.describe() +
                             " to have data, but got null");
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

static bool isOfHost(fp8c_device device) {
  return device.type == FP8C_CPU || device.type == FP8C_CUDA_HOST ||
         device.type == FP8C_CUDA_MANAGED;
}

static std::string describe(fp8c_device device) {
  switch (device.type) {
  case FP8C_CPU:
  case FP8C_CUDA_HOST:
    return "the host's";
  case FP8C_CUDA:
    return "CUDA device " + std::to_string(device.index) + "'s";
  default:
    return "that of a device of type " + std::to_string(device.type);
  }
}

llvm::Error Call::checkPlace(const NamedValue &named,
                             const fp8c_tensor &tensor) {
  std::string expected;
  if (!isOnGPU() || named.info.rank < 0) {
    if (isOfHost(tensor.device))
      return llvm::Error::success();
    expected = "the host";
  } else {
    if ((isOnHost && isOfHost(tensor.device)) ||
        tensor.device.type == FP8C_CUDA_MANAGED ||
        (tensor.device.type == FP8C_CUDA &&
         tensor.device.index == device.index))
      return llvm::Error::success();
    expected = "CUDA device " + std::to_string(device.index);
  }
  return llvm::make_error<RuntimeError>(
      FP8RT_ERROR_WRONG_DEVICE, "expected " + named.describe() +
                                    " in memory of " + expected +
                                    ", but it is " + ::describe(tensor.device));
}

/// That of the arguments, the first of which decides.
llvm::Error Call::chooseDevice(ArrayRef<const fp8c_tensor *> tensors) {
  if (!isOnGPU())
    return llvm::Error::success();
  device.type = FP8C_CUDA;
  for (auto [index, tensor] : llvm::enumerate(tensors))
    if (tensor && function->arguments[index].rank >= 0 &&
        tensor->device.type == FP8C_CUDA) {
      device.index = tensor->device.index;
      return llvm::Error::success();
    }
  if (llvm::Error error = makeError(fp8rt_device_get_current(&device.index)))
    return error;
  int32_t isEmulated = 0;
  if (llvm::Error error = makeError(fp8rt_device_is_emulated(&isEmulated)))
    return error;
  isOnHost = isEmulated;
  return llvm::Error::success();
}

llvm::Error Call::check(const NamedValue &info, const fp8c_tensor *tensor) {
  if (llvm::Error error = checkType(info, tensor))
    return error;
  return checkPlace(info, *tensor);
}

//===----------------------------------------------------------------------===//
// Tensors of the host on an emulated GPU
//===----------------------------------------------------------------------===//

llvm::Expected<StagedTensor> StagedTensor::create(const fp8c_tensor &tensor,
                                                  int32_t width) {
  size_t bytes = width;
  bool isRowMajor = true;
  for (int32_t i = tensor.rank - 1; i >= 0; --i) {
    if (tensor.strides && tensor.sizes[i] != 1)
      isRowMajor &= tensor.strides[i] == static_cast<int64_t>(bytes / width);
    bytes *= static_cast<size_t>(std::max<int64_t>(tensor.sizes[i], 0));
  }
  StagedTensor staged(tensor.data ? getData(tensor) : nullptr, bytes);
  // What the runtime is going to refuse is not copied.
  if (bytes == 0 || !staged.source || !isRowMajor)
    return staged;
  if (llvm::Error error =
          makeError(fp8rt_memory_alloc(0, bytes, &staged.memory)))
    return std::move(error);
  // By the driver, which knows then that the memory has been written.
  if (llvm::Error error = makeError(fp8rt_memory_copy(
          0, staged.memory, staged.source, bytes, /*stream=*/nullptr)))
    return std::move(error);
  return staged;
}

StagedTensor::~StagedTensor() { fp8rt_memory_free(0, memory); }

void StagedTensor::copyBack() const {
  // Others may be in memory that cannot be written.
  if (memory && std::memcmp(memory, source, bytes) != 0)
    std::memcpy(source, memory, bytes);
}

//===----------------------------------------------------------------------===//
// Calling
//===----------------------------------------------------------------------===//

static Descriptor makeDescriptor(const fp8c_tensor &tensor) {
  Descriptor descriptor(tensor.rank);
  descriptor.words[0] = descriptor.words[1] =
      reinterpret_cast<int64_t>(tensor.data ? getData(tensor) : nullptr);
  // Sizes that overflow are refused by the runtime.
  uint64_t stride = 1;
  for (int32_t i = tensor.rank - 1; i >= 0; --i) {
    descriptor.getSizes()[i] = tensor.sizes[i];
    descriptor.getStrides()[i] =
        tensor.strides ? tensor.strides[i] : static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(tensor.sizes[i]);
  }
  return descriptor;
}

llvm::Error Call::prepare(const char *name,
                          ArrayRef<const fp8c_tensor *> tensors,
                          size_t numResults) {
  if (llvm::Error error = findFunction(name))
    return error;
  if (llvm::Error error = checkCount(*function, "arguments",
                                     function->num_arguments, tensors.size()))
    return error;
  if (llvm::Error error =
          checkCount(*function, "results", function->num_results, numResults))
    return error;
  if (llvm::Error error = chooseDevice(tensors))
    return error;
  arguments.reserve(tensors.size());
  for (auto [index, tensor] : llvm::enumerate(tensors)) {
    const fp8rt_program_value &info = function->arguments[index];
    if (llvm::Error error = check({"argument", *function, info}, tensor))
      return error;
    if (info.rank < 0) {
      packed.push_back(getData(*tensor));
      continue;
    }
    arguments.push_back(makeDescriptor(*tensor));
    if (isOnHost && isOfHost(tensor->device)) {
      auto copy = StagedTensor::create(*tensor, info.width);
      if (!copy)
        return copy.takeError();
      staged.push_back(std::move(*copy));
      if (void *memory = staged.back().getMemory())
        arguments.back().setMemory(memory);
    }
    packed.push_back(arguments.back().words.data());
  }
  for (size_t i = 0; i < numResults; ++i)
    results.emplace_back(std::max(function->results[i].rank, 0));
  return llvm::Error::success();
}

llvm::Error Call::run(ArrayRef<void *> scalars) {
  SmallVector<void *> places;
  for (auto [index, result] : llvm::enumerate(results))
    places.push_back(function->results[index].rank >= 0 ? result.words.data()
                                                        : scalars[index]);
  if (llvm::Error error = program.call(*function, packed.data(), places.data(),
                                       state, device.index, stream))
    return error;
  for (const StagedTensor &tensor : staged)
    tensor.copyBack();
  return llvm::Error::success();
}

void capi::freeResult(void *memory, fp8c_device device, fp8rt_stream stream) {
  if (device.type == FP8C_CUDA)
    fp8rt_workspace_free(device.index, stream, memory);
  else
    std::free(memory);
}

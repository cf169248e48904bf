//===- Run.cpp - Results of calls -----------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Call.h"
#include "Program.h"
#include "Status.h"

#include "fp8/Runtime/Memory.h"
#include "fp8/Support/Runtime.h"
#include "llvm/ADT/STLExtras.h"

#include <cstring>
#include <memory>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::capi;

//===----------------------------------------------------------------------===//
// Results that the call makes
//===----------------------------------------------------------------------===//

namespace {
/// A result that the caller owns.
struct OwnedResult : fp8c_managed_tensor {
  OwnedResult(const Call &call, size_t index, fp8rt_stream stream);
  ~OwnedResult() { freeResult(descriptor.getAllocated(), memory, stream); }
  OwnedResult(const OwnedResult &) = delete;

  /// Takes what the call has allocated.
  void take(Descriptor &&result, int32_t width);

  Descriptor descriptor;
  /// Whose memory it is.
  fp8c_device memory;
  fp8rt_stream stream;
  uint64_t scalar = 0;
};
} // namespace

OwnedResult::OwnedResult(const Call &call, size_t index, fp8rt_stream stream)
    : fp8c_managed_tensor(), descriptor(0), memory(call.device),
      stream(stream) {
  const fp8rt_program_value &info = call.function->results[index];
  bool isScalar = info.rank < 0;
  fp8c_dtype_from_name(info.dtype, &tensor.dtype);
  tensor.device =
      isScalar ? fp8c_device{FP8C_CPU, 0} : call.getPlaceOfResults();
  tensor.rank = std::max(info.rank, 0);
  tensor.data = isScalar ? &scalar : nullptr;
  manager = this;
  deleter = [](fp8c_managed_tensor *self) {
    delete static_cast<OwnedResult *>(self);
  };
}

void OwnedResult::take(Descriptor &&result, int32_t width) {
  descriptor = std::move(result);
  tensor.data = descriptor.getData(width);
  tensor.sizes = descriptor.getSizes();
  tensor.strides = descriptor.getStrides();
}

fp8rt_status fp8c_program_run(fp8c_program *program, const char *function,
                              const fp8c_tensor *const *arguments,
                              size_t num_arguments,
                              fp8c_managed_tensor **results, size_t num_results,
                              fp8rt_state state, fp8rt_stream stream) {
  return guard([&]() -> fp8rt_status {
    if (!program || (num_arguments && !arguments) || (num_results && !results))
      return failNull();
    Call call(*program->program, state, stream);
    if (llvm::Error error = call.prepare(
            function, ArrayRef(arguments, num_arguments), num_results))
      return fail(std::move(error));
    // Before the call: nothing can fail after it.
    std::vector<std::unique_ptr<OwnedResult>> owned;
    SmallVector<void *> scalars;
    for (size_t i = 0; i < num_results; ++i) {
      owned.push_back(std::make_unique<OwnedResult>(call, i, stream));
      scalars.push_back(&owned.back()->scalar);
    }
    if (llvm::Error error = call.run(scalars))
      return fail(std::move(error));
    for (size_t i = 0; i < num_results; ++i) {
      const fp8rt_program_value &info = call.function->results[i];
      if (info.rank >= 0)
        owned[i]->take(std::move(call.results[i]), info.width);
      results[i] = owned[i].release();
    }
    return FP8RT_OK;
  });
}

//===----------------------------------------------------------------------===//
// Results that the caller has
//===----------------------------------------------------------------------===//

static llvm::Error makeSizeError(const NamedValue &info, int32_t dim,
                                 int64_t expected, int64_t got) {
  return makeArgumentError("expected " + info.describe() + " to have size " +
                           Twine(expected) + " in dimension " + Twine(dim) +
                           ", but got " + Twine(got));
}

/// Checks a tensor that a result is to be copied to, as far as sizes are known.
static llvm::Error checkDestination(Call &call, const NamedValue &named,
                                    const fp8c_tensor *tensor) {
  if (llvm::Error error = call.check(named, tensor))
    return error;
  const fp8rt_program_value &info = named.info;
  for (int32_t i = 0; i < info.rank; ++i)
    if (info.sizes[i] >= 0 && tensor->sizes[i] != info.sizes[i])
      return makeSizeError(named, i, info.sizes[i], tensor->sizes[i]);
  if (info.rank < 0 ||
      llvm::is_contained(ArrayRef(tensor->sizes, info.rank), 0))
    return llvm::Error::success();
  if (!tensor->data)
    return makeArgumentError("expected " + named.describe() +
                             " to have data, but got null");
  uint64_t stride = 1;
  for (int32_t i = info.rank - 1; i >= 0 && tensor->strides; --i) {
    if (tensor->sizes[i] != 1 &&
        static_cast<uint64_t>(tensor->strides[i]) != stride)
      return makeArgumentError("expected " + named.describe() +
                               " to be in row-major order, with stride " +
                               Twine(stride) + " in dimension " + Twine(i) +
                               ", but got " + Twine(tensor->strides[i]));
    stride *= static_cast<uint64_t>(tensor->sizes[i]);
  }
  return call.getPlaceOfResults().type == FP8C_CUDA
             ? makeError(fp8rt_memory_check(call.device.index, getData(*tensor),
                                            info.name))
             : llvm::Error::success();
}

/// Copies what the program allocated for a result.
static llvm::Error copyTensor(const Call &call, const NamedValue &named,
                              Descriptor &result, const fp8c_tensor &tensor,
                              fp8rt_stream stream) {
  const fp8rt_program_value &info = named.info;
  int64_t count = 1;
  for (int32_t i = info.rank - 1; i >= 0; --i) {
    int64_t size = result.getSizes()[i];
    if (size != tensor.sizes[i])
      return makeSizeError(named, i, size, tensor.sizes[i]);
    if (size > 1 && result.getStrides()[i] != count)
      return makeArgumentError("expected " + named.describe() +
                               " to be made by the call, since it is not in "
                               "row-major order");
    count *= size;
  }
  size_t bytes = count * info.width;
  if (bytes == 0)
    return llvm::Error::success();
  if (call.isOnGPU())
    return makeError(fp8rt_memory_copy(call.device.index, getData(tensor),
                                       result.getData(info.width), bytes,
                                       stream));
  std::memcpy(getData(tensor), result.getData(info.width), bytes);
  return llvm::Error::success();
}

fp8rt_status fp8c_program_run_into(fp8c_program *program, const char *function,
                                   const fp8c_tensor *const *arguments,
                                   size_t num_arguments,
                                   const fp8c_tensor *const *results,
                                   size_t num_results, fp8rt_state state,
                                   fp8rt_stream stream) {
  return guard([&]() -> fp8rt_status {
    if (!program || (num_arguments && !arguments) || (num_results && !results))
      return failNull();
    Call call(*program->program, state, stream);
    if (llvm::Error error = call.prepare(
            function, ArrayRef(arguments, num_arguments), num_results))
      return fail(std::move(error));
    SmallVector<void *> scalars;
    for (size_t i = 0; i < num_results; ++i) {
      if (llvm::Error error =
              checkDestination(call, call.getResult(i), results[i]))
        return fail(std::move(error));
      scalars.push_back(getData(*results[i]));
    }
    if (llvm::Error error = call.run(scalars))
      return fail(std::move(error));
    llvm::Error error = llvm::Error::success();
    for (size_t i = 0; i < num_results; ++i) {
      if (call.function->results[i].rank < 0)
        continue;
      if (!error)
        error = copyTensor(call, call.getResult(i), call.results[i],
                           *results[i], stream);
      freeResult(call.results[i].getAllocated(), call.device, stream);
    }
    return error ? fail(std::move(error)) : FP8RT_OK;
  });
}

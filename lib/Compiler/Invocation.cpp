//===- Invocation.cpp - Calling a compiled program ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Invocation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"

#include <chrono>
#include <cstring>

using namespace mlir;
using namespace mlir::fp8;

llvm::Expected<void *> Invocation::getArgumentData(const ValueInfo &info,
                                                   void *copy, size_t size) {
  if (!device || !info.isShaped())
    return copy;
  auto memory = device->upload(copy, size);
  if (memory && *memory)
    onDevice.push_back(*memory);
  return memory;
}

void Invocation::freeArguments() {
  for (void *memory : onDevice)
    device->free(memory);
  onDevice.clear();
}

llvm::Error Invocation::prepare(int64_t step) {
  freeArguments();
  copies.clear();
  descriptors.clear();
  for (auto [info, argument] :
       llvm::zip_equal(signature.arguments, arguments)) {
    size_t byteSize = argument.getStepByteSize();
    auto copy = allocateBuffer(byteSize);
    if (!copy)
      return copy.takeError();
    std::memcpy(copy->get(), argument.getStepData(step), byteSize);
    auto data = getArgumentData(info, copy->get(), byteSize);
    if (!data)
      return data.takeError();

    Descriptor descriptor;
    if (info.isShaped()) {
      ArrayRef<int64_t> shape = argument.getStepShape();
      int64_t rank = shape.size();
      int64_t address = reinterpret_cast<int64_t>(*data);
      descriptor.append({address, address, 0});
      llvm::append_range(descriptor, shape);
      descriptor.resize(3 + 2 * rank);
      int64_t stride = 1;
      for (int64_t i = rank - 1; i >= 0; --i) {
        descriptor[3 + rank + i] = stride;
        stride *= std::max<int64_t>(shape[i], 1);
      }
    }
    copies.push_back(std::move(*copy));
    descriptors.push_back(std::move(descriptor));
  }
  results.clear();
  for (const ValueInfo &info : signature.results)
    results.emplace_back(info.isShaped() ? 3 + 2 * info.shape.size() : 1);
  return llvm::Error::success();
}

/// Copies a strided array to a dense one, one row at a time.
static void gather(const char *source, char *&destination,
                   ArrayRef<int64_t> sizes, ArrayRef<int64_t> strides,
                   size_t width) {
  if (sizes.empty() || (sizes.size() == 1 && strides[0] == 1)) {
    size_t bytes = (sizes.empty() ? 1 : sizes[0]) * width;
    std::memcpy(destination, source, bytes);
    destination += bytes;
    return;
  }
  for (int64_t i = 0; i < sizes[0]; ++i)
    gather(source + i * strides[0] * static_cast<int64_t>(width), destination,
           sizes.drop_front(), strides.drop_front(), width);
}

llvm::Error Invocation::takeTensor(ArrayRef<int64_t> words, size_t width,
                                   char *destination) {
  size_t rank = (words.size() - 3) / 2;
  ArrayRef<int64_t> sizes = words.slice(3, rank),
                    strides = words.slice(3 + rank, rank);
  int64_t count = ShapedType::getNumElements(sizes);
  if (count == 0)
    return llvm::Error::success();
  const char *data = reinterpret_cast<const char *>(words[1]) +
                     words[2] * static_cast<int64_t>(width);
  // The compiler gives results of public functions identity layouts.
  if (device)
    return device->download(destination, data, count * width);
  gather(data, destination, sizes, strides, width);
  return llvm::Error::success();
}

llvm::Error Invocation::takeOutputs(int64_t step, Outputs &outputs) {
  llvm::scope_exit release([&] {
    for (auto [info, words] : llvm::zip_equal(signature.results, results))
      if (void *memory = reinterpret_cast<void *>(words[0]); info.isShaped())
        device ? device->free(memory) : std::free(memory);
  });
  for (auto [index, info] : llvm::enumerate(signature.results)) {
    size_t rank = info.shape.size(), width = fp8rt::getByteWidth(info.dtype);
    ArrayRef<int64_t> words = results[index], sizes;
    if (info.isShaped())
      sizes = words.slice(3, rank);
    auto destination = outputs.place(index, info, step, sizes);
    if (!destination)
      return destination.takeError();
    if (!info.isShaped())
      std::memcpy(*destination, words.data(), width);
    else if (llvm::Error error = takeTensor(words, width, *destination))
      return error;
  }
  if (!signature.results.empty())
    return llvm::Error::success();

  size_t index = 0;
  for (auto [info, argument, descriptor] :
       llvm::zip_equal(signature.arguments, arguments, descriptors)) {
    if (!info.isMemRef())
      continue;
    auto destination =
        outputs.place(index++, info, step, argument.getStepShape());
    if (!destination)
      return destination.takeError();
    if (llvm::Error error = takeTensor(
            descriptor, fp8rt::getByteWidth(info.dtype), *destination))
      return error;
  }
  return llvm::Error::success();
}

llvm::Expected<double> Invocation::run(int64_t step, Outputs &outputs) {
  if (llvm::Error error = prepare(step))
    return error;
  SmallVector<void *> packed, places;
  for (auto [info, copy, descriptor] :
       llvm::zip_equal(signature.arguments, copies, descriptors))
    packed.push_back(info.isShaped() ? descriptor.data() : copy.get());
  for (Descriptor &result : results)
    places.push_back(result.data());

  auto start = std::chrono::steady_clock::now();
  if (llvm::Error error =
          device ? program.call(function, packed.data(), places.data(), state,
                                device->getIndex(), device->getStream())
                 : program.call(function, packed.data(), places.data(), state))
    return error;
  if (device)
    if (llvm::Error error = device->synchronize())
      return error;
  std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  if (llvm::Error error = takeOutputs(step, outputs))
    return error;
  return elapsed.count();
}

//===- Invocation.cpp - Calling a compiled program --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Knows how MLIR's C interface lays out arguments and results in memory. A
// memref is its descriptor: allocated pointer, aligned pointer, offset, sizes
// and strides, each of 8 bytes.
//
//===----------------------------------------------------------------------===//

#include "Invocation.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/MathExtras.h"

#include <chrono>
#include <cstring>

using namespace mlir;
using namespace mlir::fp8;

static constexpr size_t kWord = 8;

/// Size and alignment of a port in the struct of results.
static std::pair<size_t, size_t> getLayout(const Port &port) {
  if (port.isShaped())
    return {kWord * (3 + 2 * port.shape.size()), kWord};
  size_t width = fp8rt::getByteWidth(port.dtype);
  return {width, width};
}

llvm::Error Invocation::prepare() {
  copies.clear();
  descriptors.clear();
  for (auto [port, argument] :
       llvm::zip_equal(signature.arguments, arguments)) {
    auto copy = allocateBuffer(argument.getByteSize());
    if (!copy)
      return copy.takeError();
    std::memcpy(copy->get(), argument.data.get(), argument.getByteSize());

    SmallVector<int64_t> descriptor;
    if (port.isShaped()) {
      int64_t rank = argument.shape.size();
      int64_t address = reinterpret_cast<int64_t>(copy->get());
      descriptor.append({address, address, 0});
      llvm::append_range(descriptor, argument.shape);
      descriptor.resize(3 + 2 * rank);
      int64_t stride = 1;
      for (int64_t i = rank - 1; i >= 0; --i) {
        descriptor[3 + rank + i] = stride;
        stride *= std::max<int64_t>(argument.shape[i], 1);
      }
    }
    copies.push_back(std::move(*copy));
    descriptors.push_back(std::move(descriptor));
  }

  size_t size = 0;
  for (const Port &port : signature.results) {
    auto [portSize, alignment] = getLayout(port);
    size = llvm::alignTo(size, alignment) + portSize;
  }
  auto storage = allocateBuffer(size);
  if (!storage)
    return storage.takeError();
  std::memset(storage->get(), 0, size);
  results = std::move(*storage);
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

llvm::Expected<HostTensor>
Invocation::takeMemRef(const Port &port, const char *bytes,
                       SmallVectorImpl<void *> &allocated) {
  size_t rank = port.shape.size(), width = fp8rt::getByteWidth(port.dtype);
  SmallVector<int64_t> words(3 + 2 * rank);
  std::memcpy(words.data(), bytes, words.size() * kWord);
  allocated.push_back(reinterpret_cast<void *>(words[0]));

  ArrayRef<int64_t> sizes = ArrayRef(words).slice(3, rank);
  ArrayRef<int64_t> strides = ArrayRef(words).slice(3 + rank, rank);
  HostTensor tensor{port.name, port.getElementType(), port.dtype,
                    SmallVector<int64_t>(sizes), nullptr};
  auto data = allocateBuffer(tensor.getByteSize());
  if (!data)
    return data.takeError();
  char *destination = static_cast<char *>(data->get());
  if (tensor.getNumElements() != 0)
    gather(reinterpret_cast<const char *>(words[1]) +
               words[2] * static_cast<int64_t>(width),
           destination, sizes, strides, width);
  tensor.data = std::move(*data);
  return tensor;
}

llvm::Expected<std::vector<HostTensor>> Invocation::takeOutputs() {
  std::vector<HostTensor> outputs;
  SmallVector<void *> allocated;
  // Whatever happens on the way, what the program allocated is freed, each
  // allocation once; a program may also return (a part of) its argument.
  llvm::scope_exit release([&] {
    llvm::sort(allocated);
    allocated.erase(llvm::unique(allocated), allocated.end());
    for (void *memory : allocated)
      if (llvm::none_of(
              copies, [&](const Buffer &copy) { return copy.get() == memory; }))
        std::free(memory);
  });

  const char *storage = static_cast<const char *>(results.get());
  size_t offset = 0;
  for (const Port &port : signature.results) {
    auto [size, alignment] = getLayout(port);
    offset = llvm::alignTo(offset, alignment);
    if (port.isShaped()) {
      auto tensor = takeMemRef(port, storage + offset, allocated);
      if (!tensor)
        return tensor.takeError();
      outputs.push_back(std::move(*tensor));
    } else {
      auto data = allocateBuffer(size);
      if (!data)
        return data.takeError();
      std::memcpy(data->get(), storage + offset, size);
      outputs.push_back(
          {port.name, port.type, port.dtype, {}, std::move(*data)});
    }
    offset += size;
  }
  if (!signature.results.empty())
    return outputs;

  for (auto [port, argument, copy] :
       llvm::zip_equal(signature.arguments, arguments, copies))
    if (port.isMemRef())
      outputs.push_back({port.name, argument.elementType, port.dtype,
                         argument.shape, std::move(copy)});
  return outputs;
}

llvm::Expected<std::vector<HostTensor>> Invocation::run(double *seconds) {
  if (llvm::Error error = prepare())
    return error;

  ArrayRef<Port> ports = signature.results;
  bool inStruct =
      ports.size() > 1 || (ports.size() == 1 && ports[0].isShaped());
  void *storage = results.get();
  // A descriptor is passed by pointer, and every argument through a pointer to
  // it: `descriptors` and `pointers` hold what those point to.
  SmallVector<void *> pointers;
  pointers.reserve(arguments.size());
  SmallVector<void *> packed;
  if (inStruct)
    packed.push_back(&storage);
  for (auto [port, copy, descriptor] :
       llvm::zip_equal(signature.arguments, copies, descriptors)) {
    pointers.push_back(descriptor.data());
    packed.push_back(port.isShaped() ? &pointers.back() : copy.get());
  }
  if (!inStruct && !ports.empty())
    packed.push_back(storage);

  auto start = std::chrono::steady_clock::now();
  function(packed.data());
  std::chrono::duration<double> elapsed =
      std::chrono::steady_clock::now() - start;
  if (seconds)
    *seconds = elapsed.count();
  return takeOutputs();
}

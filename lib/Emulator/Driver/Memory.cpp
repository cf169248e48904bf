//===- Memory.cpp - Memory of the device, which is the host's -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

#include <cstdlib>

using namespace fp8emu;

/// Between allocations, so that a step beyond one is not in the next.
static constexpr size_t kRedZone = 256;

static std::atomic<size_t> usedBytes[kMaxDevices];

uint64_t fp8emu::allocate(size_t bytes, const Pool *pool, bool managed) {
  int device = pool ? pool->device : getCurrent() ? getCurrent()->device : 0;
  if (bytes == 0 || bytes > getSettings().memory - usedBytes[device])
    return 0;
  size_t rounded = (bytes + kRedZone - 1) / kRedZone * kRedZone + kRedZone;
  void *memory = std::aligned_alloc(256, rounded);
  if (!memory)
    return 0;
  usedBytes[device] += bytes;
  // NaN of every type, and no likely index.
  std::memset(memory, 0xff, rounded);
  auto begin = reinterpret_cast<uint64_t>(memory);
  GlobalMemory::get().add({begin, begin + bytes, /*writable=*/true, pool,
                           managed, /*host=*/false, device});
  // The host writes managed memory where nobody sees it.
  if (!managed)
    markUnwritten(begin, bytes);
  return begin;
}

int fp8emu::release(uint64_t address) {
  if (address == 0)
    return kSuccess;
  Allocation removed;
  if (!GlobalMemory::get().find(address, removed) || removed.begin != address ||
      removed.host || !GlobalMemory::get().remove(address))
    return kInvalidValue;
  usedBytes[removed.device] -= removed.end - removed.begin;
  markWritten(removed.begin, removed.end - removed.begin);
  std::free(reinterpret_cast<void *>(address));
  return kSuccess;
}

/// Memory of the device must be known; what is not is the host's, and taken as
/// it is.
static bool isInBounds(uint64_t address, size_t bytes) {
  Allocation found;
  return !GlobalMemory::get().find(address, found) ||
         bytes <= found.end - address;
}

FP8EMU_API int cuMemAlloc_v2(uint64_t *address, size_t bytes) {
  if (int error = enter(/*unsafe=*/true))
    return error;
  if (bytes == 0)
    return kInvalidValue;
  *address = allocate(bytes, nullptr, /*managed=*/false);
  return *address ? kSuccess : kOutOfMemory;
}

FP8EMU_API int cuMemAllocManaged(uint64_t *address, size_t bytes, unsigned) {
  if (int error = enter(/*unsafe=*/true))
    return error;
  *address = allocate(bytes, nullptr, /*managed=*/true);
  return *address ? kSuccess : kOutOfMemory;
}

FP8EMU_API int cuMemFree_v2(uint64_t address) {
  if (int error = enter(/*unsafe=*/true))
    return error;
  return release(address);
}

FP8EMU_API int cuMemPoolCreate(Pool **pool, const PoolProps *props) {
  if (int error = enter())
    return error;
  constexpr int pinned = 1, onDevice = 1;
  if (!getSettings().pools)
    return kNotSupported;
  if (props->allocationType != pinned || props->locationType != onDevice ||
      !isDevice(props->device))
    return kInvalidValue;
  *pool = new Pool{props->device};
  return kSuccess;
}

FP8EMU_API int cuMemPoolDestroy(Pool *pool) {
  delete pool;
  return kSuccess;
}

FP8EMU_API int cuMemPoolSetAttribute(Pool *pool, int attribute, void *value) {
  constexpr int releaseThreshold = 4;
  if (attribute == releaseThreshold)
    std::memcpy(&pool->threshold, value, sizeof(pool->threshold));
  return kSuccess;
}

FP8EMU_API int cuMemPoolTrimTo(Pool *, size_t) { return kSuccess; }

FP8EMU_API int cuMemAllocFromPoolAsync(uint64_t *address, size_t bytes,
                                       Pool *pool, StreamState *stream) {
  if (int error = enter())
    return error;
  if (bytes == 0)
    return kInvalidValue;
  *address = allocate(bytes, pool, /*managed=*/false);
  if (!*address)
    return kOutOfMemory;
  if (Graph *graph = getCapture(stream))
    graph->memory.push_back(*address);
  return kSuccess;
}

FP8EMU_API int cuMemFreeAsync(uint64_t address, StreamState *stream) {
  if (int error = enter())
    return error;
  // What a graph has allocated lives as long as the graph, at one address.
  if (Graph *graph = getCapture(stream))
    for (uint64_t own : graph->memory)
      if (own == address)
        return kSuccess;
  return submit(stream, [=] {
    endOverlap();
    return release(address);
  });
}

FP8EMU_API int cuMemcpyAsync(uint64_t to, uint64_t from, size_t bytes,
                             StreamState *stream) {
  if (int error = enter())
    return error;
  if (!isInBounds(to, bytes) || !isInBounds(from, bytes))
    return kInvalidValue;
  return submit(stream, [=] {
    endOverlap();
    getDeviceTime() += kLaunchTime;
    std::memmove(reinterpret_cast<void *>(to),
                 reinterpret_cast<const void *>(from), bytes);
    trackCopy(to, from, bytes);
    return kSuccess;
  });
}

template <class T>
static int fill(uint64_t to, T value, size_t count, StreamState *stream) {
  if (int error = enter())
    return error;
  if (!isInBounds(to, count * sizeof(T)) || to % sizeof(T) != 0)
    return kInvalidValue;
  return submit(stream, [=] {
    endOverlap();
    getDeviceTime() += kLaunchTime;
    std::fill_n(reinterpret_cast<T *>(to), count, value);
    markWritten(to, count * sizeof(T));
    return kSuccess;
  });
}

FP8EMU_API int cuMemsetD8Async(uint64_t to, unsigned char value, size_t count,
                               StreamState *stream) {
  return fill<uint8_t>(to, value, count, stream);
}
FP8EMU_API int cuMemsetD16Async(uint64_t to, unsigned short value, size_t count,
                                StreamState *stream) {
  return fill<uint16_t>(to, value, count, stream);
}
FP8EMU_API int cuMemsetD32Async(uint64_t to, unsigned value, size_t count,
                                StreamState *stream) {
  return fill<uint32_t>(to, value, count, stream);
}

FP8EMU_API int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned) {
  if (int error = enter(/*unsafe=*/true))
    return error;
  auto begin = reinterpret_cast<uint64_t>(memory);
  Allocation allocation{begin, begin + bytes};
  allocation.host = true;
  allocation.device = getCurrent()->device;
  GlobalMemory::get().add(allocation);
  return kSuccess;
}

FP8EMU_API int cuMemHostUnregister(void *memory) {
  if (int error = enter(/*unsafe=*/true))
    return error;
  return GlobalMemory::get().remove(reinterpret_cast<uint64_t>(memory))
             ? kSuccess
             : kInvalidValue;
}

FP8EMU_API int cuPointerGetAttributes(unsigned count, const int *attributes,
                                      void **values, uint64_t address) {
  Allocation found;
  bool known = GlobalMemory::get().find(address, found);
  for (unsigned i = 0; i < count; ++i)
    switch (attributes[i]) {
    case 2: // memory type: 1 is the host's, 2 the device's
      *static_cast<unsigned *>(values[i]) = !known ? 0 : found.host ? 1 : 2;
      break;
    case 8:
      *static_cast<unsigned *>(values[i]) = known && found.managed;
      break;
    case 9:
      *static_cast<int *>(values[i]) = known ? found.device : 0;
      break;
    case 17:
      *static_cast<const void **>(values[i]) = known ? found.owner : nullptr;
      break;
    default:
      return kInvalidValue;
    }
  return kSuccess;
}

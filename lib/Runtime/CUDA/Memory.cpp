//===- Memory.cpp - Memory of CUDA devices --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Memory.h"

#include "Memory.h"

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <unordered_map>

using namespace fp8rt;
using namespace fp8rt::cuda;

/// What a pool keeps when its memory is not used. CUDA's default of 0 gives it
/// all back to the system at every synchronization, and then an allocation
/// takes a hundred microseconds.
static constexpr uint64_t kPoolKeepsBytes = 256 << 20;

static std::string describeAllocation(size_t bytes, int32_t device) {
  return "allocate " + std::to_string(bytes) + " bytes on device " +
         std::to_string(device);
}

//===----------------------------------------------------------------------===//
// Pools
//===----------------------------------------------------------------------===//

/// The pool of the device; null if the device has no pools. Not the device's
/// default pool, whose settings are the business of others.
static fp8rt_status getPool(const Driver &driver, int32_t device,
                            MemPool &pool) {
  const fp8rt_device_info *info;
  if (fp8rt_status status = getDeviceInfo(device, info))
    return status;
  pool = nullptr;
  if (!info->supports_memory_pools)
    return FP8RT_OK;
  DeviceState *state;
  if (fp8rt_status status = getDeviceState(device, state))
    return status;
  std::lock_guard<std::mutex> lock(state->mutex);
  if (!state->pool) {
    RelaxedCapture relaxed(driver);
    MemPoolProps props = {};
    props.allocType = MEM_ALLOCATION_TYPE_PINNED;
    props.location = {MEM_LOCATION_TYPE_DEVICE, device};
    MemPool made = nullptr;
    if (Result result = driver.cuMemPoolCreate(&made, &props))
      return cuda::fail(result, "make a memory pool on device " +
                                    std::to_string(device));
    uint64_t threshold = kPoolKeepsBytes;
    driver.cuMemPoolSetAttribute(made, MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                 &threshold);
    state->pool = made;
  }
  pool = state->pool;
  return FP8RT_OK;
}

/// Allocates where there are no pools. That waits for the device, which a
/// stream that is being captured must not.
static fp8rt_status allocateAtOnce(const Driver &driver, int32_t device,
                                   Stream stream, size_t bytes,
                                   DevicePtr &ptr) {
  CaptureStatus capture = STREAM_CAPTURE_STATUS_NONE;
  Result result = driver.cuStreamIsCapturing(stream, &capture);
  if (result == SUCCESS && capture != STREAM_CAPTURE_STATUS_NONE)
    return detail::fail(FP8RT_ERROR_CUDA,
                        "expected memory pools, to allocate workspace while a "
                        "stream is captured, but got " +
                            describeDevice(device) + " without them");
  RelaxedCapture relaxed(driver);
  return check(driver.cuMemAlloc(&ptr, bytes),
               [&] { return describeAllocation(bytes, device); });
}

fp8rt_status cuda::allocateInStream(const Driver &driver, int32_t device,
                                    Stream stream, size_t bytes,
                                    DevicePtr &ptr) {
  MemPool pool;
  if (fp8rt_status status = getPool(driver, device, pool))
    return status;
  if (!pool)
    return allocateAtOnce(driver, device, stream, bytes, ptr);
  Result result = driver.cuMemAllocFromPoolAsync(&ptr, bytes, pool, stream);
  if (result == ERROR_OUT_OF_MEMORY) {
    // What the pool keeps may lie in pieces that are too small.
    driver.cuMemPoolTrimTo(pool, 0);
    result = driver.cuMemAllocFromPoolAsync(&ptr, bytes, pool, stream);
  }
  return check(result, [&] { return describeAllocation(bytes, device); });
}

/// Whether FP8_POISON asks for it. An emulator that looks for memory which
/// nobody writes must not see it written.
static bool poisonsMemory(const Driver &driver) {
  static const bool isAsked = [] {
    const char *value = std::getenv("FP8_POISON");
    return value && *value && std::string_view(value) != "0";
  }();
  return isAsked && !driver.beginResult;
}

Result cuda::poison(const Driver &driver, Stream stream, DevicePtr ptr,
                    size_t bytes) {
  // NaN of every type that has one, and no likely index.
  constexpr unsigned char kPoison = 0xff;
  return bytes == 0 || !poisonsMemory(driver)
             ? SUCCESS
             : driver.cuMemsetD8Async(ptr, kPoison, bytes, stream);
}

fp8rt_status cuda::freeInStream(const Driver &driver, int32_t device,
                                Stream stream, DevicePtr ptr) {
  const fp8rt_device_info *info;
  if (fp8rt_status status = getDeviceInfo(device, info))
    return status;
  Result result;
  if (info->supports_memory_pools) {
    result = driver.cuMemFreeAsync(ptr, stream);
  } else {
    RelaxedCapture relaxed(driver);
    result = driver.cuMemFree(ptr);
  }
  return check(result, [&] {
    return "free workspace on device " + std::to_string(device);
  });
}

//===----------------------------------------------------------------------===//
// Workspace
//===----------------------------------------------------------------------===//

namespace {
/// Somebody else's memory, while it is used.
struct Allocator {
  using Alloc = fp8rt_status (*)(int32_t device, fp8rt_stream stream,
                                 size_t bytes, void **ptr, void **owner,
                                 void *data);
  using Free = void (*)(void *owner, void *data);
  struct Allocation {
    Free free;
    void *owner, *data;
  };

  std::mutex mutex;
  Alloc alloc = nullptr;
  Free free = nullptr;
  void *data = nullptr;
  /// By address: all that was not given back.
  std::unordered_map<DevicePtr, Allocation> used;

  /// `ptr` stays 0 where the request is left to us.
  fp8rt_status allocate(int32_t device, fp8rt_stream stream, size_t bytes,
                        DevicePtr &ptr);
  /// Whether the memory was this one's.
  bool release(DevicePtr ptr);
};
} // namespace

fp8rt_status Allocator::allocate(int32_t device, fp8rt_stream stream,
                                 size_t bytes, DevicePtr &ptr) {
  std::unique_lock<std::mutex> lock(mutex);
  if (!alloc)
    return FP8RT_OK;
  auto call = alloc;
  Allocation made = {free, nullptr, data};
  // It may wait for a thread that frees.
  lock.unlock();
  void *address = nullptr;
  if (fp8rt_status status =
          call(device, stream, bytes, &address, &made.owner, made.data))
    return status;
  ptr = asDevicePtr(address);
  if (ptr) {
    lock.lock();
    used[ptr] = made;
  }
  return FP8RT_OK;
}

bool Allocator::release(DevicePtr ptr) {
  std::unique_lock<std::mutex> lock(mutex);
  auto found = used.find(ptr);
  if (found == used.end())
    return false;
  Allocation made = found->second;
  used.erase(found);
  lock.unlock();
  made.free(made.owner, made.data);
  return true;
}

/// Never destroyed: results of programs may outlive everything.
static Allocator &getAllocator() {
  static auto &allocator = *new Allocator;
  return allocator;
}

void fp8rt_workspace_set_allocator(void *alloc, void *free, void *data) {
  Allocator &allocator = getAllocator();
  std::lock_guard<std::mutex> lock(allocator.mutex);
  allocator.alloc = reinterpret_cast<Allocator::Alloc>(alloc);
  allocator.free = reinterpret_cast<Allocator::Free>(free);
  allocator.data = data;
}

fp8rt_status fp8rt_workspace_alloc(int32_t device, fp8rt_stream stream,
                                   size_t bytes, uint32_t flags, void **ptr) {
  if (!ptr)
    return failNull("ptr");
  return inContext(device, [&](const Driver &driver) -> fp8rt_status {
    if (flags & ~uint32_t{FP8RT_WORKSPACE_ZERO})
      return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                          "expected flags to be FP8RT_WORKSPACE_ZERO or 0, but "
                          "got " +
                              std::to_string(flags));
    DevicePtr made = 0;
    if (bytes != 0) {
      fp8rt_status status =
          getAllocator().allocate(device, stream, bytes, made);
      if (status == FP8RT_OK && !made)
        status =
            allocateInStream(driver, device, asStream(stream), bytes, made);
      if (status != FP8RT_OK)
        return status;
      bool isZero = flags & FP8RT_WORKSPACE_ZERO;
      Result result =
          isZero ? driver.cuMemsetD8Async(made, 0, bytes, asStream(stream))
                 : poison(driver, asStream(stream), made, bytes);
      if (result != SUCCESS) {
        fp8rt_workspace_free(device, stream, asPointer(made));
        return cuda::fail(result, "fill workspace with " +
                                      std::string(isZero ? "zeros" : "NaN") +
                                      " on device " + std::to_string(device));
      }
    }
    *ptr = asPointer(made);
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_workspace_free(int32_t device, fp8rt_stream stream,
                                  void *ptr) {
  if (fp8rt_status status = checkProcess())
    return status;
  if (ptr && getAllocator().release(asDevicePtr(ptr)))
    return FP8RT_OK;
  return inContext(device, [&](const Driver &driver) {
    return ptr ? freeInStream(driver, device, asStream(stream),
                              asDevicePtr(ptr))
               : FP8RT_OK;
  });
}

//===----------------------------------------------------------------------===//
// Long-lived memory
//===----------------------------------------------------------------------===//

fp8rt_status fp8rt_memory_alloc(int32_t device, size_t bytes, void **ptr) {
  if (!ptr)
    return failNull("ptr");
  return inContext(device, [&](const Driver &driver) {
    DevicePtr made = 0;
    RelaxedCapture relaxed(driver);
    fp8rt_status status =
        bytes == 0 ? FP8RT_OK : check(driver.cuMemAlloc(&made, bytes), [&] {
          return describeAllocation(bytes, device);
        });
    if (status == FP8RT_OK)
      *ptr = asPointer(made);
    return status;
  });
}

fp8rt_status fp8rt_memory_free(int32_t device, void *ptr) {
  return inContext(device, [&](const Driver &driver) {
    RelaxedCapture relaxed(driver);
    return !ptr ? FP8RT_OK : check(driver.cuMemFree(asDevicePtr(ptr)), [&] {
      return "free memory on device " + std::to_string(device);
    });
  });
}

fp8rt_status fp8rt_memory_copy(int32_t device, void *dst, const void *src,
                               size_t bytes, fp8rt_stream stream) {
  return inContext(device, [&](const Driver &driver) -> fp8rt_status {
    if (bytes == 0)
      return FP8RT_OK;
    if (!dst || !src)
      return failNull(dst ? "src" : "dst");
    return check(driver.cuMemcpyAsync(asDevicePtr(dst), asDevicePtr(src), bytes,
                                      asStream(stream)),
                 [&] {
                   return "copy " + std::to_string(bytes) +
                          " bytes on device " + std::to_string(device);
                 });
  });
}

fp8rt_status fp8rt_memory_set(int32_t device, void *ptr, uint8_t value,
                              size_t bytes, fp8rt_stream stream) {
  return inContext(device, [&](const Driver &driver) -> fp8rt_status {
    if (bytes == 0)
      return FP8RT_OK;
    if (!ptr)
      return failNull("ptr");
    return check(driver.cuMemsetD8Async(asDevicePtr(ptr), value, bytes,
                                        asStream(stream)),
                 [&] {
                   return "set " + std::to_string(bytes) + " bytes on device " +
                          std::to_string(device);
                 });
  });
}

//===----------------------------------------------------------------------===//
// Whose memory it is
//===----------------------------------------------------------------------===//

fp8rt_status cuda::getOwner(const Driver &driver, const void *ptr,
                            PointerOwner &owner) {
  // Asked for together, the attributes of memory that CUDA does not know are
  // zeros; asked for one by one, they are errors.
  unsigned memoryType = 0, isManaged = 0;
  int device = -1;
  MemPool pool = nullptr;
  PointerAttribute attributes[] = {
      POINTER_ATTRIBUTE_MEMORY_TYPE, POINTER_ATTRIBUTE_IS_MANAGED,
      POINTER_ATTRIBUTE_DEVICE_ORDINAL, POINTER_ATTRIBUTE_MEMPOOL_HANDLE};
  void *values[] = {&memoryType, &isManaged, &device, &pool};
  if (Result result = driver.cuPointerGetAttributes(4, attributes, values,
                                                    asDevicePtr(ptr)))
    return cuda::fail(result, "find the device of a pointer");
  owner.isDevice = memoryType == MEMORYTYPE_DEVICE;
  owner.isManaged = isManaged != 0;
  owner.isPooled = pool != nullptr;
  owner.device = owner.isDevice ? device : -1;
  return FP8RT_OK;
}

fp8rt_status fp8rt_memory_get_device(const void *ptr, int32_t *device) {
  return detail::guard([&]() -> fp8rt_status {
    if (!ptr || !device)
      return failNull(ptr ? "device" : "ptr");
    const Driver *driver;
    if (fp8rt_status status = getDriver(driver))
      return status;
    PointerOwner owner;
    if (fp8rt_status status = getOwner(*driver, ptr, owner))
      return status;
    *device = owner.device;
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_memory_check(int32_t device, const void *ptr,
                                const char *name) {
  return detail::guard([&]() -> fp8rt_status {
    if (!name)
      return failNull("name");
    if (!ptr)
      return failNull(name);
    DeviceState *state;
    if (fp8rt_status status = getDeviceState(device, state))
      return status;
    PointerOwner owner;
    if (fp8rt_status status = getOwner(getDriver(), ptr, owner))
      return status;
    if (owner.isManaged || (owner.isDevice && owner.device == device))
      return FP8RT_OK;
    return detail::fail(
        FP8RT_ERROR_WRONG_DEVICE,
        "expected " + std::string(name) + " on device " +
            std::to_string(device) + ", but got " +
            (owner.isDevice ? "one on device " + std::to_string(owner.device)
                            : "one in host memory"));
  });
}

//===- GpuMemoryWrappers.cpp - Memory, by upstream's names ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/GpuWrappers.h"

#include "Memory.h"
#include "WrapperErrors.h"

using namespace fp8rt;
using namespace fp8rt::cuda;

namespace {
/// A ranked memref as MLIR's C interface passes it.
struct MemRef {
  void *allocated;
  char *data;
  int64_t offset;
  int64_t sizesAndStrides[1]; /* rank sizes, then as many strides */

  const int64_t *getSizes() const { return sizesAndStrides; }
  const int64_t *getStrides(int64_t rank) const {
    return sizesAndStrides + rank;
  }
  char *getStart(int64_t elementBytes) const {
    return data + offset * elementBytes;
  }
};
} // namespace

static fp8rt_status check(Result result, const char *action) {
  return result == SUCCESS ? FP8RT_OK : cuda::fail(result, action);
}

//===----------------------------------------------------------------------===//
// Device memory
//===----------------------------------------------------------------------===//

void *mgpuMemAlloc(uint64_t bytes, void *stream, bool is_host_shared) {
  DevicePtr ptr = 0;
  if (bytes == 0)
    return nullptr;
  inWrapper("mgpuMemAlloc",
            [&](const Driver &driver, int32_t device) -> fp8rt_status {
              if (stream && !is_host_shared) {
                if (fp8rt_status status = allocateInStream(
                        driver, device, asStream(stream), bytes, ptr))
                  return status;
                return check(poison(driver, asStream(stream), ptr, bytes),
                             "fill memory");
              }
              RelaxedCapture relaxed(driver);
              Result result =
                  is_host_shared
                      ? driver.cuMemAllocManaged(&ptr, bytes, MEM_ATTACH_GLOBAL)
                      : driver.cuMemAlloc(&ptr, bytes);
              return cuda::check(result, [&] {
                return "allocate " + std::to_string(bytes) +
                       " bytes on device " + std::to_string(device);
              });
            });
  return asPointer(ptr);
}

/// Whether `ptr` is to be freed in the order of `stream`: pool memory is, and
/// so is what a graph owns.
static fp8rt_status isInStream(const Driver &driver, Stream stream, void *ptr,
                               bool &result) {
  result = false;
  if (!stream)
    return FP8RT_OK;
  CaptureStatus capture = STREAM_CAPTURE_STATUS_NONE;
  driver.cuStreamIsCapturing(stream, &capture);
  PointerOwner owner;
  if (fp8rt_status status = getOwner(driver, ptr, owner))
    return status;
  result = owner.isPooled || capture != STREAM_CAPTURE_STATUS_NONE;
  return FP8RT_OK;
}

void mgpuMemFree(void *ptr, void *stream) {
  if (!ptr)
    return;
  inWrapper("mgpuMemFree", [&](const Driver &driver, int32_t) -> fp8rt_status {
    bool inStream;
    if (fp8rt_status status =
            isInStream(driver, asStream(stream), ptr, inStream))
      return status;
    if (inStream)
      return check(driver.cuMemFreeAsync(asDevicePtr(ptr), asStream(stream)),
                   "free memory");
    RelaxedCapture relaxed(driver);
    return check(driver.cuMemFree(asDevicePtr(ptr)), "free memory");
  });
}

void mgpuMemcpy(void *dst, void *src, size_t bytes, void *stream) {
  inHealthyWrapper("mgpuMemcpy", [&](const Driver &driver, int32_t) {
    return bytes == 0
               ? FP8RT_OK
               : check(driver.cuMemcpyAsync(asDevicePtr(dst), asDevicePtr(src),
                                            bytes, asStream(stream)),
                       "copy memory");
  });
}

void mgpuMemset16(void *dst, unsigned short value, size_t count, void *stream) {
  inHealthyWrapper("mgpuMemset16", [&](const Driver &driver, int32_t) {
    return count == 0 ? FP8RT_OK
                      : check(driver.cuMemsetD16Async(asDevicePtr(dst), value,
                                                      count, asStream(stream)),
                              "fill memory");
  });
}

void mgpuMemset32(void *dst, unsigned int value, size_t count, void *stream) {
  inHealthyWrapper("mgpuMemset32", [&](const Driver &driver, int32_t) {
    return count == 0 ? FP8RT_OK
                      : check(driver.cuMemsetD32Async(asDevicePtr(dst), value,
                                                      count, asStream(stream)),
                              "fill memory");
  });
}

//===----------------------------------------------------------------------===//
// Host memory
//===----------------------------------------------------------------------===//

void mgpuMemHostRegister(void *ptr, uint64_t bytes) {
  if (bytes == 0)
    return;
  inWrapper("mgpuMemHostRegister", [&](const Driver &driver, int32_t) {
    RelaxedCapture relaxed(driver);
    return check(driver.cuMemHostRegister(ptr, bytes, /*flags=*/0),
                 "register host memory");
  });
}

void mgpuMemHostUnregister(void *ptr) {
  inWrapper("mgpuMemHostUnregister", [&](const Driver &driver, int32_t) {
    RelaxedCapture relaxed(driver);
    return check(driver.cuMemHostUnregister(ptr), "unregister host memory");
  });
}

/// The bytes of a dense memref; -1 if it is not dense.
static int64_t getDenseBytes(const MemRef &memref, int64_t rank,
                             int64_t elementBytes) {
  int64_t elements = 1;
  for (int64_t i = rank - 1; i >= 0; --i) {
    if (memref.getSizes()[i] != 1 && memref.getStrides(rank)[i] != elements)
      return -1;
    elements *= memref.getSizes()[i];
    if (elements == 0)
      return 0;
  }
  return elements * elementBytes;
}

void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                               int64_t element_bytes) {
  auto &memref = *static_cast<const MemRef *>(descriptor);
  int64_t bytes = getDenseBytes(memref, rank, element_bytes);
  if (bytes >= 0)
    return mgpuMemHostRegister(memref.getStart(element_bytes),
                               static_cast<uint64_t>(bytes));
  keepWrapperError(
      "mgpuMemHostRegisterMemRef",
      detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                   "expected a dense memref, but got one with strides"));
}

void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                 int64_t element_bytes) {
  auto &memref = *static_cast<const MemRef *>(descriptor);
  if (getDenseBytes(memref, rank, element_bytes) != 0)
    mgpuMemHostUnregister(memref.getStart(element_bytes));
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

void mgpuTensorMapEncodeTiled(void *map, int32_t type, uint32_t rank,
                              void *address, const uint64_t *sizes,
                              const uint64_t *strides, const uint32_t *box,
                              const uint32_t *element_strides,
                              int32_t interleave, int32_t swizzle,
                              int32_t l2_promotion, int32_t oob_fill) {
  inWrapper("mgpuTensorMapEncodeTiled", [&](const Driver &driver, int32_t) {
    return check(driver.cuTensorMapEncodeTiled(
                     static_cast<TensorMap *>(map), type, rank, address, sizes,
                     strides, box, element_strides, interleave, swizzle,
                     l2_promotion, oob_fill),
                 "make a tensor map");
  });
}

void *mgpuTensorMapEncodeTiledMemref(int64_t rank, void *descriptor,
                                     int32_t type, int32_t interleave,
                                     int32_t swizzle, int32_t l2_promotion,
                                     int32_t oob_fill, int64_t *box) {
  static constexpr uint64_t elementBytes[] = {1, 2, 4, 4, 8, 8, 2,
                                              4, 8, 2, 4, 4, 4};
  constexpr const char *name = "mgpuTensorMapEncodeTiledMemref";
  if (rank < 1 || rank > 5 || type < 0 ||
      type >= static_cast<int32_t>(std::size(elementBytes))) {
    keepWrapperError(
        name, detail::fail(FP8RT_ERROR_INVALID_ARGUMENT,
                           "expected rank from 1 to 5 and type from 0 to 12, "
                           "but got others"));
    return nullptr;
  }
  // MLIR counts dimensions from the outermost, the driver from the innermost;
  // its strides are those of all but the innermost, in bytes.
  auto &memref = *static_cast<const MemRef *>(descriptor);
  uint64_t sizes[5], strides[5];
  uint32_t boxSizes[5], elementStrides[5];
  for (int64_t i = 0; i < rank; ++i) {
    int64_t from = rank - 1 - i;
    sizes[i] = static_cast<uint64_t>(memref.getSizes()[from]);
    strides[i] = static_cast<uint64_t>(memref.getStrides(rank)[from]) *
                 elementBytes[type];
    boxSizes[i] = static_cast<uint32_t>(box[from]);
    elementStrides[i] = 1;
  }
  TensorMap map = {};
  mgpuTensorMapEncodeTiled(
      &map, type, static_cast<uint32_t>(rank),
      memref.getStart(static_cast<int64_t>(elementBytes[type])), sizes,
      strides + 1, boxSizes, elementStrides, interleave, swizzle, l2_promotion,
      oob_fill);
  void *onDevice = mgpuMemAlloc(sizeof(map), /*stream=*/nullptr,
                                /*is_host_shared=*/false);
  mgpuMemcpy(onDevice, &map, sizeof(map), /*stream=*/nullptr);
  // Kernels may run in streams that do not wait for the default one.
  mgpuStreamSynchronize(nullptr);
  return onDevice;
}

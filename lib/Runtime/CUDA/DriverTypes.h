//===- DriverTypes.h - What we use of the CUDA driver's types ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Declared here so that building needs no CUDA. Names are those of cuda.h less
// the prefix, values and layouts are part of the driver's ABI ("CUDA Driver
// API", modules 6.1 and following); test/Runtime/cuda-abi.test compares them
// with a cuda.h where there is one.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_DRIVERTYPES_H
#define FP8_LIB_RUNTIME_CUDA_DRIVERTYPES_H

#include <cstddef>
#include <cstdint>

namespace fp8rt::cuda {

using Device = int;
using DevicePtr = unsigned long long;
using Context = struct ContextOpaque *;
using Module = struct ModuleOpaque *;
using Function = struct FunctionOpaque *;
using Stream = struct StreamOpaque *;
using Event = struct EventOpaque *;
using MemPool = struct MemPoolOpaque *;

enum Result : int {
  SUCCESS = 0,
  ERROR_INVALID_VALUE = 1,
  ERROR_OUT_OF_MEMORY = 2,
  ERROR_CALL_REQUIRES_NEWER_DRIVER = 36,
  ERROR_NO_DEVICE = 100,
  ERROR_INVALID_DEVICE = 101,
  ERROR_INVALID_IMAGE = 200,
  ERROR_INVALID_CONTEXT = 201,
  ERROR_NO_BINARY_FOR_GPU = 209,
  ERROR_ECC_UNCORRECTABLE = 214,
  ERROR_INVALID_PTX = 218,
  ERROR_NVLINK_UNCORRECTABLE = 220,
  ERROR_UNSUPPORTED_PTX_VERSION = 222,
  ERROR_CONTAINED = 226,
  ERROR_INVALID_SOURCE = 300,
  ERROR_INVALID_HANDLE = 400,
  ERROR_NOT_FOUND = 500,
  ERROR_ILLEGAL_ADDRESS = 700,
  ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  ERROR_LAUNCH_TIMEOUT = 702,
  ERROR_CONTEXT_IS_DESTROYED = 709,
  ERROR_ASSERT = 710,
  ERROR_HARDWARE_STACK_ERROR = 714,
  ERROR_ILLEGAL_INSTRUCTION = 715,
  ERROR_MISALIGNED_ADDRESS = 716,
  ERROR_INVALID_ADDRESS_SPACE = 717,
  ERROR_INVALID_PC = 718,
  ERROR_LAUNCH_FAILED = 719,
  ERROR_TENSOR_MEMORY_LEAK = 721,
  ERROR_NOT_SUPPORTED = 801,
};

enum DeviceAttribute : int {
  DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
  DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED = 115,
  DEVICE_ATTRIBUTE_CLUSTER_LAUNCH = 120,
};

enum FunctionAttribute : int {
  FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  FUNC_ATTRIBUTE_NUM_REGS = 4,
  FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
};

enum JitOption : int {
  JIT_ERROR_LOG_BUFFER = 5,
  JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  JIT_OPTIMIZATION_LEVEL = 7,
};

enum PointerAttribute : int {
  POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  POINTER_ATTRIBUTE_IS_MANAGED = 8,
  POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  POINTER_ATTRIBUTE_MEMPOOL_HANDLE = 17,
};

enum MemoryType : unsigned { MEMORYTYPE_HOST = 1, MEMORYTYPE_DEVICE = 2 };

enum CaptureMode : int { STREAM_CAPTURE_MODE_RELAXED = 2 };

enum CaptureStatus : int { STREAM_CAPTURE_STATUS_NONE = 0 };

constexpr uint64_t GET_PROC_ADDRESS_LEGACY_STREAM = 1;
constexpr unsigned STREAM_NON_BLOCKING = 1;
constexpr unsigned EVENT_DISABLE_TIMING = 2;
constexpr unsigned MEM_ATTACH_GLOBAL = 1;

enum LaunchAttributeID : int {
  LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};

union LaunchAttributeValue {
  char pad[64];
  struct {
    unsigned x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
};

struct LaunchAttribute {
  LaunchAttributeID id;
  char pad[8 - sizeof(LaunchAttributeID)];
  LaunchAttributeValue value;
};

struct LaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  Stream hStream;
  LaunchAttribute *attrs;
  unsigned numAttrs;
};

enum MemPoolAttribute : int { MEMPOOL_ATTR_RELEASE_THRESHOLD = 4 };
enum MemAllocationType : int { MEM_ALLOCATION_TYPE_PINNED = 1 };
enum MemLocationType : int { MEM_LOCATION_TYPE_DEVICE = 1 };

struct MemPoolProps {
  MemAllocationType allocType;
  int handleTypes;
  struct {
    MemLocationType type;
    int id;
  } location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
};

struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_DRIVERTYPES_H

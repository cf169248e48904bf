//===- cuda_abi.cpp - Our declarations against cuda.h ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles where the values, layouts and signatures are the same.
//
//===----------------------------------------------------------------------===//

#include "DriverTypes.h"

#include "fp8/Runtime/TensorMap.h"

// After ours: it makes some of the functions' names macros.
#include <cuda.h>
#include <cudaTypedefs.h>

#include <type_traits>

using namespace fp8rt;

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

#define SAME(ours, theirs)                                                     \
  static_assert(static_cast<long>(ours) == static_cast<long>(theirs))
#define SAME_RESULT(name) SAME(cuda::name, CUDA_##name)
#define SAME_VALUE(name) SAME(cuda::name, CU_##name)

SAME_RESULT(SUCCESS);
SAME_RESULT(ERROR_INVALID_VALUE);
SAME_RESULT(ERROR_OUT_OF_MEMORY);
SAME_RESULT(ERROR_CALL_REQUIRES_NEWER_DRIVER);
SAME_RESULT(ERROR_NO_DEVICE);
SAME_RESULT(ERROR_INVALID_DEVICE);
SAME_RESULT(ERROR_INVALID_IMAGE);
SAME_RESULT(ERROR_INVALID_CONTEXT);
SAME_RESULT(ERROR_NO_BINARY_FOR_GPU);
SAME_RESULT(ERROR_ECC_UNCORRECTABLE);
SAME_RESULT(ERROR_INVALID_PTX);
SAME_RESULT(ERROR_NVLINK_UNCORRECTABLE);
SAME_RESULT(ERROR_UNSUPPORTED_PTX_VERSION);
SAME_RESULT(ERROR_CONTAINED);
SAME_RESULT(ERROR_INVALID_SOURCE);
SAME_RESULT(ERROR_INVALID_HANDLE);
SAME_RESULT(ERROR_NOT_FOUND);
SAME_RESULT(ERROR_ILLEGAL_ADDRESS);
SAME_RESULT(ERROR_LAUNCH_OUT_OF_RESOURCES);
SAME_RESULT(ERROR_LAUNCH_TIMEOUT);
SAME_RESULT(ERROR_CONTEXT_IS_DESTROYED);
SAME_RESULT(ERROR_ASSERT);
SAME_RESULT(ERROR_HARDWARE_STACK_ERROR);
SAME_RESULT(ERROR_ILLEGAL_INSTRUCTION);
SAME_RESULT(ERROR_MISALIGNED_ADDRESS);
SAME_RESULT(ERROR_INVALID_ADDRESS_SPACE);
SAME_RESULT(ERROR_INVALID_PC);
SAME_RESULT(ERROR_LAUNCH_FAILED);
SAME_RESULT(ERROR_TENSOR_MEMORY_LEAK);
SAME_RESULT(ERROR_NOT_SUPPORTED);

SAME_VALUE(DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_VALUE(DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK);
SAME_VALUE(DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
SAME_VALUE(DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
SAME_VALUE(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME_VALUE(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME_VALUE(DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
SAME_VALUE(DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
SAME_VALUE(DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
SAME_VALUE(DEVICE_ATTRIBUTE_CLUSTER_LAUNCH);
SAME_VALUE(FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
SAME_VALUE(FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
SAME_VALUE(FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
SAME_VALUE(FUNC_ATTRIBUTE_NUM_REGS);
SAME_VALUE(FUNC_ATTRIBUTE_BINARY_VERSION);
SAME_VALUE(FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME_VALUE(JIT_ERROR_LOG_BUFFER);
SAME_VALUE(JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
SAME_VALUE(JIT_OPTIMIZATION_LEVEL);
SAME_VALUE(POINTER_ATTRIBUTE_MEMORY_TYPE);
SAME_VALUE(POINTER_ATTRIBUTE_IS_MANAGED);
SAME_VALUE(POINTER_ATTRIBUTE_DEVICE_ORDINAL);
SAME_VALUE(POINTER_ATTRIBUTE_MEMPOOL_HANDLE);
SAME_VALUE(MEMORYTYPE_HOST);
SAME_VALUE(MEMORYTYPE_DEVICE);
SAME_VALUE(STREAM_CAPTURE_MODE_RELAXED);
SAME_VALUE(STREAM_CAPTURE_STATUS_NONE);
SAME_VALUE(GET_PROC_ADDRESS_LEGACY_STREAM);
SAME_VALUE(STREAM_NON_BLOCKING);
SAME_VALUE(EVENT_DISABLE_TIMING);
SAME_VALUE(MEM_ATTACH_GLOBAL);
SAME_VALUE(LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
SAME_VALUE(LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
SAME_VALUE(MEMPOOL_ATTR_RELEASE_THRESHOLD);
SAME_VALUE(MEM_ALLOCATION_TYPE_PINNED);
SAME_VALUE(MEM_LOCATION_TYPE_DEVICE);

SAME(FP8RT_TENSOR_MAP_U8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
SAME(FP8RT_TENSOR_MAP_U16, CU_TENSOR_MAP_DATA_TYPE_UINT16);
SAME(FP8RT_TENSOR_MAP_U32, CU_TENSOR_MAP_DATA_TYPE_UINT32);
SAME(FP8RT_TENSOR_MAP_I32, CU_TENSOR_MAP_DATA_TYPE_INT32);
SAME(FP8RT_TENSOR_MAP_U64, CU_TENSOR_MAP_DATA_TYPE_UINT64);
SAME(FP8RT_TENSOR_MAP_I64, CU_TENSOR_MAP_DATA_TYPE_INT64);
SAME(FP8RT_TENSOR_MAP_F16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
SAME(FP8RT_TENSOR_MAP_F32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
SAME(FP8RT_TENSOR_MAP_F64, CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
SAME(FP8RT_TENSOR_MAP_BF16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
SAME(FP8RT_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE);
SAME(FP8RT_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_32B);
SAME(FP8RT_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_64B);
SAME(FP8RT_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_128B);
SAME(FP8RT_TENSOR_MAP_L2_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE);
SAME(FP8RT_TENSOR_MAP_L2_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
SAME(FP8RT_TENSOR_MAP_L2_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
SAME(FP8RT_TENSOR_MAP_L2_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

#define SAME_OFFSET(ours, theirs, field)                                       \
  SAME(offsetof(cuda::ours, field), offsetof(theirs, field))

SAME(sizeof(cuda::LaunchAttribute), sizeof(CUlaunchAttribute));
SAME_OFFSET(LaunchAttribute, CUlaunchAttribute, id);
SAME_OFFSET(LaunchAttribute, CUlaunchAttribute, value);
SAME_OFFSET(LaunchAttributeValue, CUlaunchAttributeValue, clusterDim.y);
SAME(sizeof(cuda::LaunchConfig), sizeof(CUlaunchConfig));
SAME_OFFSET(LaunchConfig, CUlaunchConfig, blockDimX);
SAME_OFFSET(LaunchConfig, CUlaunchConfig, sharedMemBytes);
SAME_OFFSET(LaunchConfig, CUlaunchConfig, hStream);
SAME_OFFSET(LaunchConfig, CUlaunchConfig, attrs);
SAME_OFFSET(LaunchConfig, CUlaunchConfig, numAttrs);
SAME(sizeof(cuda::MemPoolProps), sizeof(CUmemPoolProps));
SAME_OFFSET(MemPoolProps, CUmemPoolProps, handleTypes);
SAME_OFFSET(MemPoolProps, CUmemPoolProps, location.type);
SAME_OFFSET(MemPoolProps, CUmemPoolProps, location.id);
SAME_OFFSET(MemPoolProps, CUmemPoolProps, win32SecurityAttributes);
SAME_OFFSET(MemPoolProps, CUmemPoolProps, maxSize);
SAME_OFFSET(MemPoolProps, CUmemPoolProps, usage);
SAME(sizeof(cuda::TensorMap), sizeof(CUtensorMap));
// CUDA 13 aligns its type to 128 bytes; the driver asks for 64.
static_assert(alignof(cuda::TensorMap) == 64 && alignof(CUtensorMap) >= 64);

//===----------------------------------------------------------------------===//
// Signatures: the number of parameters, the size of each and whether it is a
// pointer. Ours are spelled with our own types.
//===----------------------------------------------------------------------===//

template <typename Ours, typename Theirs>
struct SameSignature : std::false_type {};

template <typename Ours, typename Theirs>
constexpr bool sameParameter =
    sizeof(Ours) == sizeof(Theirs) &&
    std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
    std::is_floating_point_v<Ours> == std::is_floating_point_v<Theirs>;

template <typename... Ours, typename... Theirs>
struct SameSignature<cuda::Result(Ours...), CUresult (*)(Theirs...)> {
  static constexpr bool get() {
    if constexpr (sizeof...(Ours) == sizeof...(Theirs))
      return (sameParameter<Ours, Theirs> && ...);
    return false;
  }
  static constexpr bool value = get();
};

// The version in the table names the driver's own type of that form.
namespace fp8rt::cuda {
#define FP8RT_CUDA_FUNCTION(name, version, parameters)                         \
  static_assert(                                                               \
      SameSignature<Result parameters, ::PFN_##name##_v##version>::value);
#include "DriverFunctions.def"
} // namespace fp8rt::cuda

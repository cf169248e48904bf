//===- GpuWrappers.h - The names that upstream's GPU code calls -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Code that MLIR 22's --gpu-to-llvm and --gpu-module-to-binary make calls these
// functions, in upstream in libmlir_cuda_runtime.so. Names and signatures are
// those of mlir/lib/ExecutionEngine/CudaRuntimeWrappers.cpp.
//
// They return no status, so errors are kept. The first error of a thread goes
// to stderr, unless the same function has failed in the same way before, and
// can be had from fp8rt_gpu_take_error. Until it is taken the thread launches,
// copies and fills nothing more: kernels that run on after a failed allocation
// would write to address 0, and that loses the device. What was allocated is
// still freed, and nothing aborts. Results are undefined, so a host asks after
// every call of compiled code.
//
// They use the device that mgpuSetDefaultDevice chose for the thread, or that
// of the thread's current context, or device 0. All may be called from any
// thread.
//
// Where upstream differs: mgpuMemAlloc with a stream allocates in stream order,
// from the pool of Memory.h, so that a program can be captured in a graph. A
// tensor map takes the memref's own strides and offset; and there are none of
// upstream's wrappers of cuSPARSE.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_GPUWRAPPERS_H
#define FP8_RUNTIME_GPUWRAPPERS_H

#include "fp8/Runtime/Status.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// FP8RT_OK if no function below has failed on this thread since the last call;
/// else the status of the first that did, with its message
/// (fp8rt_get_last_error), and the thread works again.
fp8rt_status fp8rt_gpu_take_error(void);

void mgpuSetDefaultDevice(int32_t device);

/// Modules, functions, streams and events are the driver's own.
void *mgpuModuleLoad(void *image, size_t size);
void *mgpuModuleLoadJIT(void *ptx, int opt_level);
void mgpuModuleUnload(void *module);
void *mgpuModuleGetFunction(void *module, const char *name);

void mgpuLaunchKernel(void *function, intptr_t grid_x, intptr_t grid_y,
                      intptr_t grid_z, intptr_t block_x, intptr_t block_y,
                      intptr_t block_z, int32_t dynamic_smem, void *stream,
                      void **params, void **extra, size_t num_params);
void mgpuLaunchClusterKernel(void *function, intptr_t cluster_x,
                             intptr_t cluster_y, intptr_t cluster_z,
                             intptr_t grid_x, intptr_t grid_y, intptr_t grid_z,
                             intptr_t block_x, intptr_t block_y,
                             intptr_t block_z, int32_t dynamic_smem,
                             void *stream, void **params, void **extra,
                             size_t num_params);

void *mgpuStreamCreate(void);
void mgpuStreamDestroy(void *stream);
void mgpuStreamSynchronize(void *stream);
void mgpuStreamWaitEvent(void *stream, void *event);

void *mgpuEventCreate(void);
void mgpuEventDestroy(void *event);
void mgpuEventSynchronize(void *event);
void mgpuEventRecord(void *event, void *stream);

void *mgpuMemAlloc(uint64_t bytes, void *stream, bool is_host_shared);
void mgpuMemFree(void *ptr, void *stream);
void mgpuMemcpy(void *dst, void *src, size_t bytes, void *stream);
void mgpuMemset16(void *dst, unsigned short value, size_t count, void *stream);
void mgpuMemset32(void *dst, unsigned int value, size_t count, void *stream);

/// `descriptor` is a ranked memref's; what it describes is dense.
void mgpuMemHostRegister(void *ptr, uint64_t bytes);
void mgpuMemHostUnregister(void *ptr);
void mgpuMemHostRegisterMemRef(int64_t rank, void *descriptor,
                               int64_t element_bytes);
void mgpuMemHostUnregisterMemRef(int64_t rank, void *descriptor,
                                 int64_t element_bytes);

/// Enumerations are those of cuda.h, as numbers. The second returns the map in
/// device memory of its own, which the caller frees.
void mgpuTensorMapEncodeTiled(void *map, int32_t type, uint32_t rank,
                              void *address, const uint64_t *sizes,
                              const uint64_t *strides, const uint32_t *box,
                              const uint32_t *element_strides,
                              int32_t interleave, int32_t swizzle,
                              int32_t l2_promotion, int32_t oob_fill);
void *mgpuTensorMapEncodeTiledMemref(int64_t rank, void *descriptor,
                                     int32_t type, int32_t interleave,
                                     int32_t swizzle, int32_t l2_promotion,
                                     int32_t oob_fill, int64_t *box);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_GPUWRAPPERS_H

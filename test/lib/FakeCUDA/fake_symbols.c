//===- fake_symbols.c - Finding functions of the fake driver --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fake_state.h"

#include <string.h>

// Only their addresses are wanted.
void cuCtxGetCurrent(void);
void cuCtxGetDevice(void);
void cuCtxPopCurrent_v2(void);
void cuCtxPushCurrent_v2(void);
void cuCtxSynchronize(void);
void cuDeviceGet(void);
void cuDeviceGetAttribute(void);
void cuDeviceGetCount(void);
void cuDeviceGetName(void);
void cuDevicePrimaryCtxRetain(void);
void cuDeviceTotalMem_v2(void);
void cuEventCreate(void);
void cuEventDestroy_v2(void);
void cuEventElapsedTime(void);
void cuEventRecord(void);
void cuEventSynchronize(void);
void cuFuncGetAttribute(void);
void cuFuncSetAttribute(void);
void cuGetErrorName(void);
void cuGetErrorString(void);
void cuInit(void);
void cuLaunchKernelEx(void);
void cuMemAllocFromPoolAsync(void);
void cuMemAllocManaged(void);
void cuMemAlloc_v2(void);
void cuMemFreeAsync(void);
void cuMemFree_v2(void);
void cuMemHostRegister_v2(void);
void cuMemHostUnregister(void);
void cuMemPoolCreate(void);
void cuMemPoolSetAttribute(void);
void cuMemPoolTrimTo(void);
void cuMemcpyAsync(void);
void cuMemsetD16Async(void);
void cuMemsetD32Async(void);
void cuMemsetD8Async(void);
void cuModuleGetFunction(void);
void cuModuleLoadDataEx(void);
void cuModuleUnload(void);
void cuOccupancyMaxActiveClusters(void);
void cuPointerGetAttributes(void);
void cuStreamCreate(void);
void cuStreamDestroy_v2(void);
void cuStreamGetCtx(void);
void cuStreamIsCapturing(void);
void cuStreamSynchronize(void);
void cuStreamWaitEvent(void);
void cuTensorMapEncodeTiled(void);
void cuThreadExchangeStreamCaptureMode(void);

/// Where a name has two forms, the first version of CUDA that has ours.
static const struct {
  const char *name;
  int version;
  void *address;
} functions[] = {
#define FUNCTION(name, version) {#name, version, (void *)name}
#define FUNCTION_V2(name, version) {#name, version, (void *)name##_v2}
    FUNCTION(cuInit, 2000),
    FUNCTION(cuGetErrorName, 6000),
    FUNCTION(cuGetErrorString, 6000),
    FUNCTION(cuDeviceGet, 2000),
    FUNCTION(cuDeviceGetCount, 2000),
    FUNCTION(cuDeviceGetName, 2000),
    FUNCTION(cuDeviceGetAttribute, 2000),
    FUNCTION(cuDevicePrimaryCtxRetain, 7000),
    FUNCTION(cuCtxGetCurrent, 4000),
    FUNCTION(cuCtxGetDevice, 2000),
    FUNCTION(cuCtxSynchronize, 2000),
    FUNCTION(cuModuleLoadDataEx, 2010),
    FUNCTION(cuModuleUnload, 2000),
    FUNCTION(cuModuleGetFunction, 2000),
    FUNCTION(cuFuncGetAttribute, 2020),
    FUNCTION(cuFuncSetAttribute, 9000),
    FUNCTION(cuLaunchKernelEx, 11060),
    FUNCTION(cuOccupancyMaxActiveClusters, 11070),
    FUNCTION(cuTensorMapEncodeTiled, 12000),
    FUNCTION(cuMemAllocManaged, 6000),
    FUNCTION(cuMemPoolCreate, 11020),
    FUNCTION(cuMemPoolSetAttribute, 11020),
    FUNCTION(cuMemPoolTrimTo, 11020),
    FUNCTION(cuMemAllocFromPoolAsync, 11020),
    FUNCTION(cuMemFreeAsync, 11020),
    FUNCTION(cuMemcpyAsync, 4000),
    FUNCTION(cuMemsetD8Async, 3020),
    FUNCTION(cuMemsetD16Async, 3020),
    FUNCTION(cuMemsetD32Async, 3020),
    FUNCTION(cuMemHostUnregister, 4000),
    FUNCTION(cuPointerGetAttributes, 7000),
    FUNCTION(cuStreamCreate, 2000),
    FUNCTION(cuStreamSynchronize, 2000),
    FUNCTION(cuStreamWaitEvent, 3020),
    FUNCTION(cuStreamIsCapturing, 10000),
    FUNCTION(cuStreamGetCtx, 9020),
    FUNCTION(cuThreadExchangeStreamCaptureMode, 10010),
    FUNCTION(cuEventCreate, 2000),
    FUNCTION(cuEventRecord, 2000),
    FUNCTION(cuEventSynchronize, 2000),
    FUNCTION(cuEventElapsedTime, 2000),
    FUNCTION_V2(cuDeviceTotalMem, 3020),
    FUNCTION_V2(cuCtxPushCurrent, 4000),
    FUNCTION_V2(cuCtxPopCurrent, 4000),
    FUNCTION_V2(cuMemAlloc, 3020),
    FUNCTION_V2(cuMemFree, 3020),
    FUNCTION_V2(cuMemHostRegister, 6050),
    FUNCTION_V2(cuStreamDestroy, 4000),
    FUNCTION_V2(cuEventDestroy, 4000),
};

CUresult cuGetProcAddress_v2(const char *name, void **result, int cuda_version,
                             uint64_t flags, int *status) {
  *result = NULL;
  *status = 1;
  if (flags != 1) /* legacy default stream */
    return 1;
  for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); ++i)
    if (strcmp(functions[i].name, name) == 0 &&
        functions[i].version <= cuda_version &&
        strcmp(fake_missing, name) != 0) {
      *result = functions[i].address;
      *status = 0;
    }
  return 0;
}

//===- Symbols.cpp - Finding functions by name and version ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

using namespace fp8emu;

// Only their addresses are wanted.
extern "C" {
void cuCtxGetCurrent();
void cuCtxGetDevice();
void cuCtxPopCurrent_v2();
void cuCtxPushCurrent_v2();
void cuCtxSetCurrent();
void cuCtxSynchronize();
void cuDeviceGet();
void cuDeviceGetAttribute();
void cuDeviceGetCount();
void cuDeviceGetName();
void cuDevicePrimaryCtxRelease_v2();
void cuDevicePrimaryCtxRetain();
void cuDeviceTotalMem_v2();
void cuDriverGetVersion();
void cuEventCreate();
void cuEventDestroy_v2();
void cuEventElapsedTime();
void cuEventQuery();
void cuEventRecord();
void cuEventSynchronize();
void cuFuncGetAttribute();
void cuFuncSetAttribute();
void cuGetErrorName();
void cuGetErrorString();
void cuGraphDestroy();
void cuGraphExecDestroy();
void cuGraphInstantiateWithFlags();
void cuGraphLaunch();
void cuInit();
void cuLaunchKernel();
void cuLaunchKernelEx();
void cuMemAlloc_v2();
void cuMemAllocFromPoolAsync();
void cuMemAllocManaged();
void cuMemFree_v2();
void cuMemFreeAsync();
void cuMemHostRegister_v2();
void cuMemHostUnregister();
void cuMemPoolCreate();
void cuMemPoolDestroy();
void cuMemPoolSetAttribute();
void cuMemPoolTrimTo();
void cuMemcpyAsync();
void cuMemsetD16Async();
void cuMemsetD32Async();
void cuMemsetD8Async();
void cuModuleGetFunction();
void cuModuleGetGlobal_v2();
void cuModuleLoadData();
void cuModuleLoadDataEx();
void cuModuleUnload();
void cuOccupancyMaxActiveClusters();
void cuPointerGetAttributes();
void cuStreamBeginCapture_v2();
void cuStreamCreate();
void cuStreamDestroy_v2();
void cuStreamEndCapture();
void cuStreamGetCtx();
void cuStreamIsCapturing();
void cuStreamQuery();
void cuStreamSynchronize();
void cuStreamWaitEvent();
void cuTensorMapEncodeTiled();
void cuThreadExchangeStreamCaptureMode();
}

namespace {
struct Symbol {
  const char *name;
  /// Of a name with two forms, the first version of CUDA that has ours.
  int version;
  void (*function)();
};
} // namespace

static constexpr Symbol symbols[] = {
    {"cuCtxGetCurrent", 4000, cuCtxGetCurrent},
    {"cuCtxGetDevice", 2000, cuCtxGetDevice},
    {"cuCtxPopCurrent", 4000, cuCtxPopCurrent_v2},
    {"cuCtxPushCurrent", 4000, cuCtxPushCurrent_v2},
    {"cuCtxSetCurrent", 4000, cuCtxSetCurrent},
    {"cuCtxSynchronize", 2000, cuCtxSynchronize},
    {"cuDeviceGet", 2000, cuDeviceGet},
    {"cuDeviceGetAttribute", 2000, cuDeviceGetAttribute},
    {"cuDeviceGetCount", 2000, cuDeviceGetCount},
    {"cuDeviceGetName", 2000, cuDeviceGetName},
    {"cuDevicePrimaryCtxRelease", 11000, cuDevicePrimaryCtxRelease_v2},
    {"cuDevicePrimaryCtxRetain", 7000, cuDevicePrimaryCtxRetain},
    {"cuDeviceTotalMem", 3020, cuDeviceTotalMem_v2},
    {"cuDriverGetVersion", 2020, cuDriverGetVersion},
    {"cuEventCreate", 2000, cuEventCreate},
    {"cuEventDestroy", 4000, cuEventDestroy_v2},
    {"cuEventElapsedTime", 2000, cuEventElapsedTime},
    {"cuEventQuery", 2000, cuEventQuery},
    {"cuEventRecord", 2000, cuEventRecord},
    {"cuEventSynchronize", 2000, cuEventSynchronize},
    {"cuFuncGetAttribute", 2020, cuFuncGetAttribute},
    {"cuFuncSetAttribute", 9000, cuFuncSetAttribute},
    {"cuGetErrorName", 6000, cuGetErrorName},
    {"cuGetErrorString", 6000, cuGetErrorString},
    {"cuGraphDestroy", 10000, cuGraphDestroy},
    {"cuGraphExecDestroy", 10000, cuGraphExecDestroy},
    {"cuGraphInstantiateWithFlags", 11040, cuGraphInstantiateWithFlags},
    {"cuGraphLaunch", 10000, cuGraphLaunch},
    {"cuInit", 2000, cuInit},
    {"cuLaunchKernel", 4000, cuLaunchKernel},
    {"cuLaunchKernelEx", 11060, cuLaunchKernelEx},
    {"cuMemAlloc", 3020, cuMemAlloc_v2},
    {"cuMemAllocFromPoolAsync", 11020, cuMemAllocFromPoolAsync},
    {"cuMemAllocManaged", 6000, cuMemAllocManaged},
    {"cuMemFree", 3020, cuMemFree_v2},
    {"cuMemFreeAsync", 11020, cuMemFreeAsync},
    {"cuMemHostRegister", 6050, cuMemHostRegister_v2},
    {"cuMemHostUnregister", 4000, cuMemHostUnregister},
    {"cuMemPoolCreate", 11020, cuMemPoolCreate},
    {"cuMemPoolDestroy", 11020, cuMemPoolDestroy},
    {"cuMemPoolSetAttribute", 11020, cuMemPoolSetAttribute},
    {"cuMemPoolTrimTo", 11020, cuMemPoolTrimTo},
    {"cuMemcpyAsync", 4000, cuMemcpyAsync},
    {"cuMemsetD16Async", 3020, cuMemsetD16Async},
    {"cuMemsetD32Async", 3020, cuMemsetD32Async},
    {"cuMemsetD8Async", 3020, cuMemsetD8Async},
    {"cuModuleGetFunction", 2000, cuModuleGetFunction},
    {"cuModuleGetGlobal", 3020, cuModuleGetGlobal_v2},
    {"cuModuleLoadData", 2000, cuModuleLoadData},
    {"cuModuleLoadDataEx", 2010, cuModuleLoadDataEx},
    {"cuModuleUnload", 2000, cuModuleUnload},
    {"cuOccupancyMaxActiveClusters", 11070, cuOccupancyMaxActiveClusters},
    {"cuPointerGetAttributes", 7000, cuPointerGetAttributes},
    {"cuStreamBeginCapture", 10010, cuStreamBeginCapture_v2},
    {"cuStreamCreate", 2000, cuStreamCreate},
    {"cuStreamDestroy", 4000, cuStreamDestroy_v2},
    {"cuStreamEndCapture", 10000, cuStreamEndCapture},
    {"cuStreamGetCtx", 9020, cuStreamGetCtx},
    {"cuStreamIsCapturing", 10000, cuStreamIsCapturing},
    {"cuStreamQuery", 2000, cuStreamQuery},
    {"cuStreamSynchronize", 2000, cuStreamSynchronize},
    {"cuStreamWaitEvent", 3020, cuStreamWaitEvent},
    {"cuTensorMapEncodeTiled", 12000, cuTensorMapEncodeTiled},
    {"cuThreadExchangeStreamCaptureMode", 10010,
     cuThreadExchangeStreamCaptureMode},
};

/// By which libfp8rt knows that the device's memory is the host's.
FP8EMU_API const int fp8emu_is_emulator = 1;

FP8EMU_API int cuGetProcAddress_v2(const char *name, void **function,
                                   int version, uint64_t, int *status) {
  constexpr int found = 0, unknown = 1, tooOld = 2;
  *function = nullptr;
  int result = unknown;
  for (const Symbol &symbol : symbols) {
    if (std::string_view(symbol.name) != name)
      continue;
    result = symbol.version <= version ? found : tooOld;
    if (result == found)
      *function = reinterpret_cast<void *>(symbol.function);
  }
  if (status)
    *status = result;
  return result == found ? kSuccess : kNotFound;
}

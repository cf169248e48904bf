//===- runtime.cpp - What nvcc's programs need of libcudart ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVIDIA's runtime asks the driver for tables that are nowhere described, so
// that it cannot run on another driver. This has as much as tests need, on the
// functions of the driver that are described.
//
//===----------------------------------------------------------------------===//

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <map>
#include <string>
#include <vector>

namespace {
struct FatBinary {
  int magic, version;
  const char *data;
  void *rest;
};

struct Kernel {
  const char *image;
  std::string name;
  CUfunction function = nullptr;
};

struct State {
  CUcontext context = nullptr;
  std::map<const void *, Kernel> kernels;
  std::map<const char *, CUmodule> modules;
  std::vector<cudaLaunchConfig_t> calls;
  cudaError_t last = cudaSuccess;
};
} // namespace

static State &getState() {
  static auto *state = new State;
  if (!state->context) {
    cuInit(0);
    cuDevicePrimaryCtxRetain(&state->context, 0);
    cuCtxSetCurrent(state->context);
  }
  return *state;
}

static cudaError_t note(int code) {
  if (code)
    getState().last = static_cast<cudaError_t>(code);
  return static_cast<cudaError_t>(code);
}

static CUfunction getFunction(const void *key) {
  State &state = getState();
  auto it = state.kernels.find(key);
  if (it == state.kernels.end())
    return nullptr;
  Kernel &kernel = it->second;
  if (kernel.function)
    return kernel.function;
  CUmodule &module = state.modules[kernel.image];
  if (!module) {
    static char log[8192];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER,
                              CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, reinterpret_cast<void *>(sizeof(log))};
    // Text, at some place behind the headers.
    const char *text = kernel.image;
    while (std::strncmp(text, ".version", 8) != 0)
      ++text;
    if (cuModuleLoadDataEx(&module, text, 2, options, values)) {
      std::fprintf(stderr, "%s\n", log);
      return nullptr;
    }
  }
  cuModuleGetFunction(&kernel.function, module, kernel.name.c_str());
  return kernel.function;
}

static int launch(const void *key, const cudaLaunchConfig_t &config,
                  void **arguments) {
  CUfunction function = getFunction(key);
  if (!function)
    return cudaErrorInvalidDeviceFunction;
  CUlaunchConfig given = {};
  given.gridDimX = config.gridDim.x;
  given.gridDimY = config.gridDim.y;
  given.gridDimZ = config.gridDim.z;
  given.blockDimX = config.blockDim.x;
  given.blockDimY = config.blockDim.y;
  given.blockDimZ = config.blockDim.z;
  given.sharedMemBytes = static_cast<unsigned>(config.dynamicSmemBytes);
  given.attrs = reinterpret_cast<CUlaunchAttribute *>(config.attrs);
  given.numAttrs = config.numAttrs;
  return cuLaunchKernelEx(&given, function, arguments, nullptr);
}

extern "C" {
void **__cudaRegisterFatBinary(void *wrapper) {
  return reinterpret_cast<void **>(
      const_cast<char *>(static_cast<FatBinary *>(wrapper)->data));
}
void __cudaRegisterFatBinaryEnd(void **) {}
void __cudaUnregisterFatBinary(void **) {}
void __cudaRegisterVar(void **, char *, char *, const char *, int, size_t, int,
                       int) {}
void __cudaRegisterFunction(void **binary, const char *host, char *,
                            const char *name, int, uint3 *, uint3 *, dim3 *,
                            dim3 *, int *) {
  getState().kernels[host] = {reinterpret_cast<const char *>(binary), name};
}
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                     cudaStream_t stream) {
  getState().calls.push_back({grid, block, shared, stream, nullptr, 0});
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                       void *stream) {
  cudaLaunchConfig_t call = getState().calls.back();
  getState().calls.pop_back();
  *grid = call.gridDim;
  *block = call.blockDim;
  *shared = call.dynamicSmemBytes;
  *static_cast<cudaStream_t *>(stream) = call.stream;
  return cudaSuccess;
}
cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *host) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void *>(host));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block,
                               void **arguments, size_t shared,
                               cudaStream_t stream) {
  return note(
      launch(kernel, {grid, block, shared, stream, nullptr, 0}, arguments));
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                const void *host, void **arguments) {
  return note(launch(host, *config, arguments));
}
cudaError_t cudaFuncSetAttribute(const void *host, cudaFuncAttribute attribute,
                                 int value) {
  return note(cuFuncSetAttribute(
      getFunction(host), static_cast<CUfunction_attribute>(attribute), value));
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *) {
  return note(cudaErrorNotSupported);
}
cudaError_t cudaMalloc(void **pointer, size_t bytes) {
  getState();
  *pointer = nullptr;
  if (bytes == 0)
    return cudaSuccess;
  return note(cuMemAlloc(reinterpret_cast<CUdeviceptr *>(pointer), bytes));
}
cudaError_t cudaFree(void *pointer) {
  if (!pointer)
    return cudaSuccess;
  return note(cuMemFree(reinterpret_cast<CUdeviceptr>(pointer)));
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                            cudaMemcpyKind, cudaStream_t) {
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                       cudaMemcpyKind) {
  if (cudaError_t error = cudaDeviceSynchronize())
    return error;
  std::memcpy(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaDeviceSynchronize() {
  getState();
  return note(cuCtxSynchronize());
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaDeviceSynchronize();
}
cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
  std::memset(properties, 0, sizeof(*properties));
  properties->major = 10;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
  return note(cuDriverGetVersion(version));
}
cudaError_t cudaGetLastError() {
  cudaError_t last = getState().last;
  getState().last = cudaSuccess;
  return last;
}
cudaError_t cudaPeekAtLastError() { return getState().last; }
cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return note(cuEventCreate(reinterpret_cast<CUevent *>(event), 0));
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return note(cuEventDestroy(event));
}
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t) {
  return note(cuEventRecord(event, nullptr));
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return note(cuEventSynchronize(event));
}
cudaError_t cudaEventElapsedTime(float *time, cudaEvent_t from,
                                 cudaEvent_t to) {
  return note(cuEventElapsedTime(time, from, to));
}
const char *cudaGetErrorName(cudaError_t code) {
  const char *name = "?";
  cuGetErrorName(static_cast<CUresult>(code), &name);
  return name;
}
const char *cudaGetErrorString(cudaError_t code) {
  return cudaGetErrorName(code);
}
cudaError_t
cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned,
                                 unsigned long long,
                                 cudaDriverEntryPointQueryResult *result) {
  *function = dlsym(RTLD_DEFAULT, name);
  if (result)
    *result = *function ? cudaDriverEntryPointSuccess
                        : cudaDriverEntryPointSymbolNotFound;
  return cudaSuccess;
}
}

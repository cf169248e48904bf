//===- Context.cpp - Devices, contexts, errors ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

#include <cstdio>
#include <cstdlib>

using namespace fp8emu;

static std::string problem;

const Settings &fp8emu::getSettings() {
  static const Settings settings = [] {
    Settings read = Settings::read(problem);
    checkFunctionNames(read, problem);
    return read;
  }();
  return settings;
}

ContextState &fp8emu::getContextState(int device) {
  static auto *states = [] {
    auto *made = new ContextState[kMaxDevices];
    for (int i = 0; i < kMaxDevices; ++i)
      made[i].device = i;
    return made;
  }();
  return states[device];
}

int fp8emu::getMaxShared() { return getMultiprocessorShared() - 1024; }

int fp8emu::getMultiprocessorShared() {
  unsigned arch = getSettings().arch;
  return arch == 89 || arch >= 120 ? 102400 : arch < 90 ? 167936 : 233472;
}

std::mutex &fp8emu::getDeviceMutex() {
  static auto *mutex = new std::mutex;
  return *mutex;
}

std::atomic<int> &fp8emu::getNumCaptures() {
  static std::atomic<int> captures{0};
  return captures;
}

std::atomic<uint64_t> &fp8emu::getDeviceTime() {
  static std::atomic<uint64_t> time{0};
  return time;
}

/// A thread's contexts. Nothing is destroyed: programs free memory when they
/// exit, after that.
static thread_local ContextState *stack[64];
static thread_local size_t depth = 0;
static thread_local int captureMode = 0;

ContextState *fp8emu::getCurrent() {
  return depth == 0 ? nullptr : stack[depth - 1];
}

int fp8emu::exchangeCaptureMode(int mode) {
  std::swap(mode, captureMode);
  return mode;
}

int fp8emu::enter(bool unsafe) {
  constexpr int relaxed = 2;
  if (unsafe && getNumCaptures() > 0 && captureMode != relaxed)
    return kCaptureUnsupported;
  if (!getCurrent())
    return kInvalidContext;
  return getCurrent()->lost;
}

void fp8emu::writeReport(const std::string &what) {
  std::string text = "fp8 emulator: " + what + "\n";
  std::fputs(text.c_str(), stderr);
  if (!getSettings().reportFile.empty())
    if (FILE *file = std::fopen(getSettings().reportFile.c_str(), "a")) {
      std::fputs(text.c_str(), file);
      std::fclose(file);
    }
}

int fp8emu::reportFault(const Fault &fault, ContextState &context) {
  writeReport(fault.text);
  context.lost = fault.code;
  return fault.code;
}

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

namespace {
struct ErrorText {
  int code;
  const char *name, *text;
};
} // namespace

static const ErrorText errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT",
     "the launch timed out and was terminated"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION",
     "an illegal instruction was encountered"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE",
     "operation not supported on global/shared address space"},
    {710, "CUDA_ERROR_ASSERT", "device-side assert triggered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has unsupported display driver / cuda driver combination"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

static const ErrorText *findError(int code) {
  for (const ErrorText &error : errors)
    if (error.code == code)
      return &error;
  return nullptr;
}

FP8EMU_API int cuGetErrorName(int code, const char **name) {
  const ErrorText *error = findError(code);
  *name = error ? error->name : nullptr;
  return error ? kSuccess : kInvalidValue;
}

FP8EMU_API int cuGetErrorString(int code, const char **text) {
  const ErrorText *error = findError(code);
  *text = error ? error->text : nullptr;
  return error ? kSuccess : kInvalidValue;
}

//===----------------------------------------------------------------------===//
// Devices
//===----------------------------------------------------------------------===//

/// What the library was compiled for is not what it runs on.
static bool hasInstructions() {
#ifdef __AVX2__
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c");
#else
  return true;
#endif
}

FP8EMU_API int cuInit(unsigned) {
  getSettings();
  if (!hasInstructions())
    problem = "expected a processor with AVX2, FMA and F16C";
  if (problem.empty())
    return getSettings().devices ? kSuccess : kNoDevice;
  std::fprintf(stderr, "fp8 emulator: %s\n", problem.c_str());
  return kNotInitialized;
}

FP8EMU_API int cuDriverGetVersion(int *version) {
  *version = static_cast<int>(getSettings().version);
  return kSuccess;
}

FP8EMU_API int cuDeviceGetCount(int *count) {
  *count = static_cast<int>(getSettings().devices);
  return kSuccess;
}

FP8EMU_API int cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  return isDevice(ordinal) ? kSuccess : kInvalidDevice;
}

FP8EMU_API int cuDeviceGetName(char *name, int size, int device) {
  if (!isDevice(device) || size <= 0)
    return !isDevice(device) ? kInvalidDevice : kInvalidValue;
  unsigned arch = getSettings().arch;
  std::snprintf(name, static_cast<size_t>(size), "Emulated %s",
                arch == 80    ? "A100"
                : arch == 89  ? "RTX 4090"
                : arch == 90  ? "H200"
                : arch == 100 ? "B200"
                : arch == 120 ? "RTX 5090"
                              : "GB10");
  return kSuccess;
}

FP8EMU_API int cuDeviceTotalMem_v2(size_t *bytes, int device) {
  *bytes = getSettings().memory;
  return isDevice(device) ? kSuccess : kInvalidDevice;
}

FP8EMU_API int cuDeviceGetAttribute(int *value, int attribute, int device) {
  if (!isDevice(device))
    return kInvalidDevice;
  auto arch = static_cast<int>(getSettings().arch);
  switch (attribute) {
  case 1:
    *value = kMaxThreads;
    break;
  case 2:
  case 3:
    *value = 1024;
    break; // extents of a block
  case 4:
    *value = 64;
    break;
  case 5:
    *value = INT32_MAX;
    break; // extents of a grid
  case 6:
  case 7:
    *value = 65535;
    break;
  case 8:
    *value = kDefaultShared;
    break;
  case 10:
    *value = kLanes;
    break;
  case 12:
    *value = 65536;
    break; // registers of a block
  case 16:
    *value = static_cast<int>(getSettings().multiprocessors);
    break;
  case 38:
    *value = 65536; // none is modelled: who measures need not fill one
    break;          // L2
  case 39:
    *value = kMultiprocessorThreads;
    break;
  case 75:
    *value = arch / 10;
    break;
  case 76:
    *value = arch % 10;
    break;
  case 81:
    *value = getMultiprocessorShared();
    break;
  case 97:
    *value = getMaxShared();
    break;
  case 115:
    *value = getSettings().pools;
    break; // memory pools
  case 120:
    *value = arch >= 90;
    break; // clusters
  default:
    return kInvalidValue;
  }
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

FP8EMU_API int cuDevicePrimaryCtxRetain(ContextState **context, int device) {
  if (!isDevice(device))
    return kInvalidDevice;
  *context = &getContextState(device);
  return kSuccess;
}

FP8EMU_API int cuDevicePrimaryCtxRelease_v2(int device) {
  return isDevice(device) ? kSuccess : kInvalidDevice;
}

FP8EMU_API int cuCtxGetCurrent(ContextState **context) {
  *context = getCurrent();
  return kSuccess;
}

FP8EMU_API int cuCtxSetCurrent(ContextState *context) {
  if (depth > 0)
    --depth;
  if (context)
    stack[depth++] = context;
  return kSuccess;
}

FP8EMU_API int cuCtxPushCurrent_v2(ContextState *context) {
  if (!context || depth == std::size(stack))
    return kInvalidContext;
  stack[depth++] = context;
  return kSuccess;
}

FP8EMU_API int cuCtxPopCurrent_v2(ContextState **context) {
  if (depth == 0)
    return kInvalidContext;
  --depth;
  if (context)
    *context = stack[depth];
  return kSuccess;
}

FP8EMU_API int cuCtxGetDevice(int *device) {
  if (!getCurrent())
    return kInvalidContext;
  *device = getCurrent()->device;
  return kSuccess;
}

FP8EMU_API int cuCtxSynchronize() {
  endOverlap();
  return enter(/*unsafe=*/true);
}

FP8EMU_API int cuThreadExchangeStreamCaptureMode(int *mode) {
  *mode = exchangeCaptureMode(*mode);
  return kSuccess;
}

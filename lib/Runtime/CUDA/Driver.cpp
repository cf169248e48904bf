//===- Driver.cpp - The CUDA driver, if there is one ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <pthread.h>
#include <string_view>
#include <sys/stat.h>

using namespace fp8rt;
using namespace fp8rt::cuda;

/// cuTensorMapEncodeTiled and sm_90a came with 12.0.
static constexpr int kMinVersion = 12000;

namespace {
/// What loading came to: a driver, or the status and message that say why not.
/// It is tried once, since libraries that disagree about the driver would be
/// worse than none.
struct Loading {
  Loading();

  Driver driver;
  fp8rt_status status = FP8RT_OK;
  std::string message;

private:
  void load();
  void resolve(void *library);
  void initialize();
  void give(fp8rt_status why, std::string what) {
    status = why;
    message = std::move(what);
  }
};
} // namespace

Loading::Loading() {
  load();
  if (status == FP8RT_OK)
    initialize();
}

void Loading::load() {
  const char *path = std::getenv("FP8_CUDA_DRIVER");
  if (!path || !*path)
    path = "libcuda.so.1";
  else if (std::string_view(path) == "emulator")
    path = "libfp8emu.so"; // beside this library
  // Loading a pipe that nobody writes to would wait.
  struct stat status;
  if (std::strchr(path, '/') && ::stat(path, &status) == 0 &&
      !S_ISREG(status.st_mode))
    return give(FP8RT_ERROR_NO_DRIVER,
                std::string("expected a CUDA driver, but got '") + path +
                    "', which is no regular file");
  // Never closed: the driver has threads and exit handlers of its own.
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *reason = dlerror();
    return give(FP8RT_ERROR_NO_DRIVER,
                std::string("expected a CUDA driver, but got none: ") +
                    (reason ? reason : path));
  }
  // Older than every driver that has anything else we need.
  auto getVersion =
      reinterpret_cast<Result (*)(int *)>(dlsym(library, "cuDriverGetVersion"));
  if (!getVersion || getVersion(&driver.version) != SUCCESS)
    return give(FP8RT_ERROR_NO_DRIVER,
                std::string("expected a CUDA driver, but got '") + path +
                    "', which does not tell its version");
  if (driver.version < kMinVersion)
    return give(FP8RT_ERROR_DRIVER_TOO_OLD,
                "expected a driver for CUDA " + formatVersion(kMinVersion) +
                    " or later, but got one for CUDA " +
                    formatVersion(driver.version));
  auto takesHostTensors =
      reinterpret_cast<int (*)()>(dlsym(library, "fp8emu_takes_host_tensors"));
  driver.isEmulator = takesHostTensors && takesHostTensors();
  auto tracksWrites =
      reinterpret_cast<int (*)()>(dlsym(library, "fp8emu_tracks_writes"));
  if (tracksWrites && tracksWrites()) {
    driver.beginResult = reinterpret_cast<decltype(driver.beginResult)>(
        dlsym(library, "fp8emu_begin_result"));
    driver.endResult = reinterpret_cast<decltype(driver.endResult)>(
        dlsym(library, "fp8emu_end_result"));
  }
  resolve(library);
}

void Loading::resolve(void *library) {
  using GetProcAddress =
      Result (*)(const char *, void **, int, uint64_t, int *);
  auto getAddress =
      reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  const char *missing = getAddress ? nullptr : "cuGetProcAddress_v2";
  auto find = [&](const char *name, int version) -> void * {
    void *function = nullptr;
    int symbolStatus = 0;
    if (missing ||
        getAddress(name, &function, version, GET_PROC_ADDRESS_LEGACY_STREAM,
                   &symbolStatus) != SUCCESS ||
        !function)
      missing = missing ? missing : name;
    return function;
  };
#define FP8RT_CUDA_FUNCTION(name, version, parameters)                         \
  driver.name = reinterpret_cast<decltype(driver.name)>(find(#name, version));
#include "DriverFunctions.def"
  if (missing)
    give(FP8RT_ERROR_DRIVER_TOO_OLD,
         std::string("expected a CUDA driver with ") + missing +
             ", but got one for CUDA " + formatVersion(driver.version) +
             " without it");
}

void Loading::initialize() {
  auto describeOf = [&](Result result) {
    const char *name = nullptr;
    driver.cuGetErrorName(result, &name);
    return std::string(name ? name : "an unknown error");
  };
  Result result = driver.cuInit(0);
  if (result == SUCCESS)
    result = driver.cuDeviceGetCount(&driver.numDevices);
  if (result == ERROR_NO_DEVICE ||
      (result == SUCCESS && driver.numDevices == 0))
    give(FP8RT_ERROR_NO_DRIVER, "expected a CUDA device, but the driver for "
                                "CUDA " +
                                    formatVersion(driver.version) +
                                    " knows none");
  else if (result != SUCCESS)
    give(FP8RT_ERROR_NO_DRIVER,
         "expected a CUDA driver, but it does not start: " +
             describeOf(result));
}

/// What a child of fork() has to know, which finds a driver that was started in
/// another process, maybe half loaded.
enum class Start { None, Begun, Failed, BeforeFork };
static std::atomic<Start> start{Start::None};

static const Loading *makeLoading() {
  pthread_atfork(nullptr, nullptr, [] {
    if (start == Start::Begun)
      start = Start::BeforeFork;
  });
  start = Start::Begun;
  auto *loading = new Loading;
  if (loading->status != FP8RT_OK)
    start = Start::Failed;
  return loading;
}

/// Never destroyed: threads may outlive main.
static const Loading &getLoading() {
  static const Loading *loading = makeLoading();
  return *loading;
}

fp8rt_status cuda::checkProcess() {
  if (start != Start::BeforeFork)
    return FP8RT_OK;
  return detail::fail(
      FP8RT_ERROR_DEVICE_LOST,
      "expected a process that used no GPU before it was forked, but got a "
      "child of one that did: CUDA does not work there; start the child with "
      "exec (\"spawn\"), or use no GPU before fork()");
}

fp8rt_status cuda::getDriver(const Driver *&driver) {
  if (fp8rt_status status = checkProcess())
    return status;
  const Loading &loading = getLoading();
  if (loading.status != FP8RT_OK)
    return detail::fail(loading.status, loading.message);
  driver = &loading.driver;
  return FP8RT_OK;
}

const Driver &cuda::getDriver() { return getLoading().driver; }

//===----------------------------------------------------------------------===//
// Errors
//===----------------------------------------------------------------------===//

std::string cuda::describe(Result result) {
  const char *name = nullptr, *text = nullptr;
  getDriver().cuGetErrorName(result, &name);
  getDriver().cuGetErrorString(result, &text);
  if (!name)
    return "error " + std::to_string(static_cast<int>(result));
  return text ? std::string(name) + ", " + text : name;
}

fp8rt_status cuda::getStatus(Result result) {
  switch (result) {
  case SUCCESS:
    return FP8RT_OK;
  case ERROR_OUT_OF_MEMORY:
    return FP8RT_ERROR_OUT_OF_MEMORY;
  case ERROR_CALL_REQUIRES_NEWER_DRIVER:
  case ERROR_UNSUPPORTED_PTX_VERSION:
    return FP8RT_ERROR_DRIVER_TOO_OLD;
  case ERROR_INVALID_VALUE:
  case ERROR_INVALID_DEVICE:
    return FP8RT_ERROR_INVALID_ARGUMENT;
  case ERROR_INVALID_IMAGE:
  case ERROR_INVALID_PTX:
  case ERROR_INVALID_SOURCE:
    return FP8RT_ERROR_INVALID_IMAGE;
  case ERROR_NO_BINARY_FOR_GPU:
    return FP8RT_ERROR_UNSUPPORTED_ARCH;
  case ERROR_NOT_FOUND:
    return FP8RT_ERROR_NOT_FOUND;
  // Those of which cuda.h says that the process must be relaunched.
  case ERROR_ECC_UNCORRECTABLE:
  case ERROR_NVLINK_UNCORRECTABLE:
  case ERROR_CONTAINED:
  case ERROR_ILLEGAL_ADDRESS:
  case ERROR_LAUNCH_TIMEOUT:
  case ERROR_CONTEXT_IS_DESTROYED:
  case ERROR_ASSERT:
  case ERROR_HARDWARE_STACK_ERROR:
  case ERROR_ILLEGAL_INSTRUCTION:
  case ERROR_MISALIGNED_ADDRESS:
  case ERROR_INVALID_ADDRESS_SPACE:
  case ERROR_INVALID_PC:
  case ERROR_LAUNCH_FAILED:
  case ERROR_TENSOR_MEMORY_LEAK:
    return FP8RT_ERROR_DEVICE_LOST;
  default:
    return FP8RT_ERROR_CUDA;
  }
}

fp8rt_status cuda::fail(Result result, const std::string &action) {
  return detail::fail(getStatus(result),
                      "cannot " + action + ": " + describe(result));
}

std::string cuda::formatVersion(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

fp8rt_status cuda::failNull(const char *argument) noexcept {
  // Without a string: it is called outside of guard().
  char message[128];
  std::snprintf(message, sizeof(message), "expected %s, but got null",
                argument);
  return detail::fail(FP8RT_ERROR_INVALID_ARGUMENT, message);
}

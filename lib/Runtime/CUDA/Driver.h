//===- Driver.h - The CUDA driver, if there is one --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_DRIVER_H
#define FP8_LIB_RUNTIME_CUDA_DRIVER_H

#include "DriverTypes.h"

#include "StatusDetail.h"

#include <string>

namespace fp8rt::cuda {

/// The functions of an initialized driver.
struct Driver {
#define FP8RT_CUDA_FUNCTION(name, version, parameters)                         \
  Result(*name) parameters = nullptr;
#include "DriverFunctions.def"

  int version = 0;
  int numDevices = 0;
  bool isEmulator = false;
  /// An emulator that looks for memory that nobody writes has it: it is told of
  /// a result before a launch, and after it by name. Null of other drivers.
  Result (*beginResult)(Stream stream, DevicePtr address, int rank,
                        const int64_t *sizes, const int64_t *strides,
                        int64_t elementBytes) = nullptr;
  Result (*endResult)(Stream stream, DevicePtr address, int rank,
                      const int64_t *sizes, const int64_t *strides,
                      int64_t elementBytes, const char *name) = nullptr;
};

/// FP8RT_OK, or that this is a child of a process that used the driver; that
/// has been reported. To be asked before a lock that a thread of the parent may
/// have held.
fp8rt_status checkProcess();

/// Loads and initializes the driver at the first call. FP8RT_OK, or why there
/// is none: that has been reported.
fp8rt_status getDriver(const Driver *&driver);

/// The driver, where one is known to be: whoever has a device or a handle.
const Driver &getDriver();

/// Reports that the driver returned `result` when we wanted to `action`, e.g.
/// "load a module on device 0": "cannot " + action + ": " + what it says.
fp8rt_status fail(Result result, const std::string &action);

/// FP8RT_OK on success, else the above; `action` is only called for that.
template <typename Action>
fp8rt_status check(Result result, Action &&action) {
  return result == SUCCESS ? FP8RT_OK : fail(result, action());
}

/// The driver's name and words for a result.
std::string describe(Result result);

/// The status that stands for a result.
fp8rt_status getStatus(Result result);

/// 12080 -> "12.8".
std::string formatVersion(int version);

fp8rt_status failNull(const char *argument) noexcept;

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_DRIVER_H

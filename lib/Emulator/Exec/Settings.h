//===- Settings.h - What the environment says -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_EXEC_SETTINGS_H
#define FP8_LIB_EMULATOR_EXEC_SETTINGS_H

#include <cstdint>
#include <string>
#include <vector>

namespace fp8emu {

/// When asynchronous work takes place.
enum class Order : uint8_t {
  Eager,  /* when it is issued */
  Lazy,   /* when nothing else can run */
  Random, /* somewhere between */
};

/// What is looked for besides what stops a kernel; bits of Settings::checks.
enum Check : uint32_t {
  kCheckRaces = 1,
  kCheckProxies = 2,
  kCheckUninitialized = 4,
  kCheckRegisters = 8,
  kCheckLaunches = 16,
  kCheckGlobal = 32,
  kCheckUnwritten = 64,
  kCheckSums = 128,
};

/// A call that is to fail.
struct Failure {
  std::string function;
  uint64_t call = 0; /* which, from 1; 0: each */
  int error = 0;
};

/// FP8_EMULATOR_<NAME>; docs/Emulator.md describes each.
struct Settings {
  unsigned version = 13000; /* of CUDA */
  unsigned devices = 1;
  unsigned arch = 90;
  uint64_t memory = uint64_t{8} << 30; /* bytes of a device */
  bool pools = true;
  std::vector<std::string> missing; /* functions that the driver lacks */
  std::vector<Failure> failures;
  bool runKernels = true;
  bool hostTensors = true; /* of programs, beside those of the device */
  unsigned multiprocessors = 4;
  uint64_t seed = 1;
  Order order = Order::Random;
  bool shuffled = false; /* blocks begin, and take turns, as the seed says */
  uint64_t maxSteps = 10'000'000'000; /* instructions of a launch's warps */
  uint32_t checks = 0;
  bool strict = true; /* as PTX has it, and not as chips do it */
  bool exact = true;  /* sums of tensor cores to the bit, or of f32 */
  std::string reportFile;
  std::string traceFile;
  std::string countsFile;

  /// Reads the environment; what it does not understand goes to `problem`.
  static Settings read(std::string &problem);
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_EXEC_SETTINGS_H

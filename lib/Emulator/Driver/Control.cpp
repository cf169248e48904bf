//===- Control.cpp - Counted calls, and failures that were asked for ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Control.h"
#include "Driver.h"

#include <cstdarg>
#include <cstdio>

using namespace fp8emu;

namespace {
struct CallState {
  int calls = 0;
  int error = 0, times = 0; /* -1: always */
};

struct ControlState {
  std::mutex mutex;
  CallState functions[kNumFunctions];
  fp8emu_launch last = {};
};
} // namespace

static constexpr const char *functionNames[] = {
#define FP8EMU_FUNCTION(name, symbol, version, parameters) #name,
#include "Functions.def"
};

/// Never destroyed: programs free memory when they exit.
static ControlState &getState() {
  static auto *state = new ControlState;
  return *state;
}

static int findFunction(std::string_view name) {
  for (int i = 0; i < kNumFunctions; ++i)
    if (name == functionNames[i])
      return i;
  return -1;
}

void fp8emu::checkFunctionNames(const Settings &settings,
                                std::string &problem) {
  auto check = [&](const char *variable, const std::string &name) {
    if (findFunction(name) < 0)
      problem += std::string(problem.empty() ? "" : "; ") + "expected " +
                 variable + " to name functions of the driver, but got '" +
                 name + "'";
  };
  for (const Failure &failure : settings.failures)
    check("FP8_EMULATOR_FAIL", failure.function);
  for (const std::string &name : settings.missing)
    check("FP8_EMULATOR_WITHOUT", name);
}

void fp8emu::trace(const char *format, ...) {
  const std::string &path = getSettings().traceFile;
  if (path.empty())
    return;
  // Others may write to it between two calls.
  if (FILE *file = std::fopen(path.c_str(), "a")) {
    va_list arguments;
    va_start(arguments, format);
    std::vfprintf(file, format, arguments);
    va_end(arguments);
    std::fputc('\n', file);
    std::fclose(file);
  }
}

int fp8emu::beginCall(int function) {
  const Settings &settings = getSettings();
  ControlState &state = getState();
  std::lock_guard<std::mutex> lock(state.mutex);
  CallState &call = state.functions[function];
  ++call.calls;
  trace("%s", functionNames[function]);
  for (const Failure &failure : settings.failures)
    if (failure.function == functionNames[function] &&
        (failure.call == 0 ||
         failure.call == static_cast<unsigned>(call.calls)))
      return failure.error;
  if (call.times == 0)
    return kSuccess;
  call.times -= call.times > 0;
  return call.error;
}

void fp8emu::recordLaunch(const Program &program, const LaunchConfig &config,
                          const std::vector<uint8_t> &params) {
  fp8emu_launch last = {};
  std::copy_n(config.grid, 3, last.grid);
  std::copy_n(config.block, 3, last.block);
  for (uint32_t i = 0; i < config.numAttributes; ++i) {
    const LaunchAttribute &attribute = config.attributes[i];
    if (attribute.id == kClusterDimension)
      std::copy_n(attribute.value.cluster, 3, last.cluster);
    else if (attribute.id == kProgrammaticSerialization)
      last.overlap = attribute.value.flag;
  }
  last.dynamic_smem = config.dynamicShared;
  last.device = getCurrent()->device;
  last.stream = config.stream;
  last.num_params = static_cast<uint32_t>(
      std::min(std::size(last.params), program.params.size()));
  for (uint32_t i = 0; i < last.num_params; ++i) {
    last.param_bytes[i] = static_cast<uint32_t>(program.params[i].bytes);
    std::copy_n(
        params.data() + program.params[i].offset,
        std::min<size_t>(sizeof(last.params[i]), program.params[i].bytes),
        last.params[i]);
  }
  std::lock_guard<std::mutex> lock(getState().mutex);
  getState().last = last;
}

//===----------------------------------------------------------------------===//
// What tests call
//===----------------------------------------------------------------------===//

FP8EMU_API void fp8emu_reset() {
  std::lock_guard<std::mutex> lock(getState().mutex);
  for (CallState &call : getState().functions)
    call = {};
  for (int device = 0; device < kMaxDevices; ++device)
    getContextState(device).lost = 0;
}

FP8EMU_API void fp8emu_fail(const char *function, int error, int times) {
  int index = findFunction(function);
  std::lock_guard<std::mutex> lock(getState().mutex);
  if (index >= 0) {
    getState().functions[index].error = error;
    getState().functions[index].times = times;
  }
}

FP8EMU_API int fp8emu_count_calls(const char *function) {
  int index = findFunction(function);
  std::lock_guard<std::mutex> lock(getState().mutex);
  return index < 0 ? -1 : getState().functions[index].calls;
}

FP8EMU_API void fp8emu_lose(int device) {
  getContextState(device).lost = kIllegalAddress;
}

FP8EMU_API int fp8emu_count_allocations() {
  return static_cast<int>(GlobalMemory::get().countOfDevices());
}

FP8EMU_API void fp8emu_get_last_launch(fp8emu_launch *launch) {
  std::lock_guard<std::mutex> lock(getState().mutex);
  *launch = getState().last;
}

//===- Symbols.cpp - Finding functions by name and version ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Driver.h"

using namespace fp8emu;

/// The function as a program gets it: counted, and refused where that was asked
/// for.
template <int Index, auto Function>
struct Counted;
template <int Index, class... Args, int (*Function)(Args...)>
struct Counted<Index, Function> {
  static int call(Args... args) {
    if (int error = beginCall(Index))
      return error;
    return Function(args...);
  }
};

namespace {
struct Symbol {
  const char *name;
  int version;
  void *function;
};
} // namespace

static const Symbol symbols[] = {
#define FP8EMU_FUNCTION(name, symbol, version, parameters)                     \
  {#name, version, reinterpret_cast<void *>(&Counted<k_##name, symbol>::call)},
#include "Functions.def"
};

/// By which libfp8rt knows that the device's memory is the host's; 0 if it is
/// to take the device for a GPU.
FP8EMU_API int fp8emu_takes_host_tensors() { return getSettings().hostTensors; }

FP8EMU_API int cuGetProcAddress_v2(const char *name, void **function,
                                   int version, uint64_t, int *status) {
  constexpr int found = 0, unknown = 1, tooOld = 2;
  *function = nullptr;
  int result = unknown;
  const std::vector<std::string> &missing = getSettings().missing;
  for (const Symbol &symbol : symbols) {
    if (std::string_view(symbol.name) != name ||
        std::find(missing.begin(), missing.end(), name) != missing.end())
      continue;
    result = symbol.version <= version ? found : tooOld;
    if (result == found)
      *function = symbol.function;
  }
  if (status)
    *status = result;
  return result == found ? kSuccess : kNotFound;
}

//===- ScalingStateFuzzer.cpp - Any bytes as a saved state ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/ScalingState.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

static constexpr char kManifest[] = R"({"version": 1, "amax_history_len": 3,
  "slots": [{"name": "a", "format": "e4m3"}, {"name": "b", "format": "e5m2"}]})";
/// The manifest of a recipe that the runtime does not know.
static constexpr char kOtherManifest[] = R"({"version": 1,
  "recipe": "acme.ema", "words": 2, "decay": 0.5,
  "slots": [{"name": "a", "format": "e4m3"}, {"name": "b", "format": "e5m2"}]})";

static void require(bool condition) {
  if (!condition)
    std::abort();
}

/// Steps a state that was accepted, so that the sanitizers see all of it used.
static void use(fp8rt_state state) {
  fp8rt_state_info info;
  fp8rt_state_rows rows;
  require(fp8rt_state_get_info(state, &info) == FP8RT_OK);
  require(fp8rt_state_get_rows(state, &rows) == FP8RT_OK);
  for (int64_t i = 0; i < rows.num_slots; ++i)
    rows.amax[i] = 1;
  for (int64_t i = 0; i < rows.num_slots * rows.num_words; ++i)
    rows.words[i] += 0;
  if (info.amax_history_len == 0) {
    require(fp8rt_state_update(state) == FP8RT_ERROR_INVALID_ARGUMENT);
    return;
  }
  require(fp8rt_state_update(state) == FP8RT_OK);
  std::vector<float> histories(info.num_slots * info.amax_history_len + 1);
  require(fp8rt_state_get_histories(state, histories.data(),
                                    info.num_slots * info.amax_history_len) ==
          FP8RT_OK);
  for (int64_t i = 0; i < rows.num_slots; ++i)
    require(rows.scale[i] >= 0 && rows.scale_inv[i] >= 0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // A file of its own: the loader reads files only.
  static int file = ::memfd_create("state", MFD_CLOEXEC);
  static std::string path = "/proc/self/fd/" + std::to_string(file);
  require(file >= 0 && ::ftruncate(file, 0) == 0 &&
          ::pwrite(file, data, size, 0) == static_cast<ssize_t>(size));

  fp8rt_state state;
  for (const char *manifest : {kManifest, kOtherManifest}) {
    require(fp8rt_state_create(manifest, std::strlen(manifest), &state) ==
            FP8RT_OK);
    fp8rt_load_report report;
    if (fp8rt_state_load(state, path.c_str(), 0, &report) == FP8RT_OK)
      require(report.matched + report.missing == 2 && report.matched > 0);
    else
      require(*fp8rt_get_last_error() != '\0');
    use(state);
    require(fp8rt_state_destroy(state) == FP8RT_OK);
  }

  if (fp8rt_state_create_from_file(path.c_str(), &state) == FP8RT_OK) {
    use(state);
    require(fp8rt_state_destroy(state) == FP8RT_OK);
  }
  return 0;
}

//===- Profile.cpp - Times of a program's kernels -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Profile.h"

#include "fp8/Runtime/Memory.h"
#include "fp8/Runtime/Profile.h"
#include "fp8/Support/Runtime.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/JSON.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::fp8;

static StringRef getCategory(int32_t kind) {
  switch (kind) {
  case FP8RT_PROFILE_COPY:
    return "copy";
  case FP8RT_PROFILE_READ:
    return "read";
  case FP8RT_PROFILE_FILL:
    return "fill";
  default:
    return "kernel";
  }
}

std::string fp8::getTrace(ArrayRef<ProfileEntry> entries) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os, /*IndentSize=*/1);
  json.object([&] {
    json.attribute("displayTimeUnit", "ms");
    json.attributeArray("traceEvents", [&] {
      for (const ProfileEntry &entry : entries)
        json.object([&] {
          json.attribute("name", entry.name);
          json.attribute("cat", getCategory(entry.kind));
          json.attribute("ph", "X");
          json.attribute("ts", entry.startMs * 1e3);
          json.attribute("dur", entry.durationMs * 1e3);
          json.attribute("pid", 0);
          json.attribute("tid", 0);
          json.attributeObject("args", [&] {
            if (entry.bytes != 0)
              json.attribute("bytes", entry.bytes);
            if (entry.flops != 0)
              json.attribute("flops", entry.flops);
          });
        });
    });
  });
  os << '\n';
  return text;
}

/// The shortest of a few copies, in milliseconds.
static fp8rt_status timeCopies(Device &device, void *to, void *from,
                               size_t bytes, float &best) {
  constexpr int numCopies = 5;
  int32_t index = device.getIndex();
  fp8rt_event events[2] = {};
  llvm::scope_exit destroy([&] {
    for (fp8rt_event event : events)
      if (event)
        fp8rt_event_destroy(index, event);
  });
  for (fp8rt_event &event : events)
    if (fp8rt_status status = fp8rt_event_create(index, &event))
      return status;
  for (int i = 0; i < numCopies; ++i) {
    fp8rt_status status =
        fp8rt_event_record(index, events[0], device.getStream());
    if (status == FP8RT_OK)
      status = fp8rt_memory_copy(index, to, from, bytes, device.getStream());
    if (status == FP8RT_OK)
      status = fp8rt_event_record(index, events[1], device.getStream());
    if (status == FP8RT_OK)
      status = fp8rt_event_synchronize(index, events[1]);
    float elapsed = 0;
    if (status == FP8RT_OK)
      status =
          fp8rt_event_get_elapsed_ms(index, events[0], events[1], &elapsed);
    if (status != FP8RT_OK)
      return status;
    best = i == 0 ? elapsed : std::min(best, elapsed);
  }
  return FP8RT_OK;
}

llvm::Expected<double> fp8::measureCopyRate(Device &device) {
  constexpr size_t bytes = size_t(256) << 20;
  void *memory[2] = {};
  llvm::scope_exit release([&] {
    for (void *part : memory)
      if (part)
        device.free(part);
  });
  for (void *&part : memory)
    if (auto error = makeError(fp8rt_workspace_alloc(device.getIndex(),
                                                     device.getStream(), bytes,
                                                     /*flags=*/0, &part)))
      return error;
  float milliseconds;
  if (auto error = makeError(
          timeCopies(device, memory[1], memory[0], bytes, milliseconds)))
    return error;
  return 2.0 * bytes / (milliseconds * 1e-3);
}

//===- Results.cpp - Results of launches, and what reaches the host -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A driver is not told what a kernel promises to write. libfp8rt, which is,
// tells this one around each launch, by functions that no driver has.
//
//===----------------------------------------------------------------------===//

#include "Check/Unwritten.h"
#include "Driver.h"

using namespace fp8emu;

bool fp8emu::tracksWrites() {
  return (getSettings().checks & kCheckUnwritten) && getSettings().runKernels;
}

/// By which libfp8rt knows whether to tell of results, and that memory which
/// nobody writes is noticed here.
FP8EMU_API int fp8emu_tracks_writes() { return tracksWrites(); }

void fp8emu::markUnwritten(uint64_t address, size_t bytes) {
  if (!tracksWrites())
    return;
  std::lock_guard<std::mutex> lock(getDeviceMutex());
  Unwritten::get().memory.insert(address, bytes);
}

void fp8emu::markWritten(uint64_t address, size_t bytes) {
  if (!tracksWrites())
    return;
  std::lock_guard<std::mutex> lock(getDeviceMutex());
  Unwritten::get().memory.erase(address, bytes);
}

/// As a finding of a kernel: a note in lax mode.
static void reportUnwritten(const std::string &text, ContextState &context) {
  if (getSettings().strict)
    reportFault({kLaunchFailed, text}, context);
  else
    writeReport("note: " + text);
}

void fp8emu::trackCopy(uint64_t to, uint64_t from, size_t bytes) {
  if (!tracksWrites())
    return;
  std::lock_guard<std::mutex> lock(getDeviceMutex());
  ByteSet &memory = Unwritten::get().memory;
  uint64_t first = 0, count = memory.count(from, bytes, &first);
  memory.erase(to, bytes);
  if (count == 0)
    return;
  Allocation found;
  ContextState *context = getCurrent();
  if (!GlobalMemory::get().find(to, found) || found.host) {
    if (context && !context->lost)
      reportUnwritten("a copy to the host: nobody has written " +
                          std::to_string(count) + " of " +
                          std::to_string(bytes) + " bytes, the first is " +
                          describeByte(first),
                      *context);
    return;
  }
  if (count == bytes)
    return memory.insert(to, bytes);
  for (uint64_t at = 0; at < bytes; ++at)
    if (memory.count(from + at, 1, &first))
      memory.insert(to + at, 1);
}

namespace {
/// A result of a launch: its elements, and what it is called.
struct LaunchResult {
  uint64_t address;
  std::vector<int64_t> sizes, strides;
  uint64_t elementBytes;

  /// Calls `visit` with the address and the bytes of each run of elements that
  /// lie together, and the number of elements before it, until it says false.
  template <class F>
  void forEachRun(F visit) const;
  std::string describeElement(int64_t number) const;
};
} // namespace

template <class F>
void LaunchResult::forEachRun(F visit) const {
  size_t outer = sizes.size();
  int64_t run = 1, count = 1;
  for (; outer > 0 && (sizes[outer - 1] == 1 || strides[outer - 1] == run);
       --outer)
    run *= sizes[outer - 1];
  for (size_t dim = 0; dim < outer; ++dim)
    count *= sizes[dim];
  for (int64_t number = 0; run > 0 && number < count; ++number) {
    int64_t rest = number, index = 0;
    for (size_t dim = outer; dim-- > 0; rest /= sizes[dim])
      index += rest % sizes[dim] * strides[dim];
    if (!visit(address + static_cast<uint64_t>(index) * elementBytes,
               static_cast<uint64_t>(run) * elementBytes, number * run))
      return;
  }
}

std::string LaunchResult::describeElement(int64_t number) const {
  std::string text;
  for (size_t dim = sizes.size(); dim-- > 0; number /= sizes[dim])
    text =
        std::to_string(number % sizes[dim]) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

static LaunchResult makeResult(uint64_t address, int rank, const int64_t *sizes,
                               const int64_t *strides, int64_t elementBytes) {
  return {address,
          {sizes, sizes + rank},
          {strides, strides + rank},
          static_cast<uint64_t>(elementBytes)};
}

/// Before a launch that is to write all of a result.
FP8EMU_API int fp8emu_begin_result(StreamState *stream, uint64_t address,
                                   int rank, const int64_t *sizes,
                                   const int64_t *strides,
                                   int64_t elementBytes) {
  if (!tracksWrites())
    return kSuccess;
  LaunchResult result = makeResult(address, rank, sizes, strides, elementBytes);
  return submit(stream, [=] {
    std::lock_guard<std::mutex> lock(getDeviceMutex());
    result.forEachRun([](uint64_t run, uint64_t bytes, int64_t) {
      Unwritten::get().results.insert(run, bytes);
      return true;
    });
    return int{kSuccess};
  });
}

/// After the launch. What was begun must have been written; all of it counts
/// as written from now on, so that what nobody looks at is told of once.
FP8EMU_API int fp8emu_end_result(StreamState *stream, uint64_t address,
                                 int rank, const int64_t *sizes,
                                 const int64_t *strides, int64_t elementBytes,
                                 const char *name) {
  if (!tracksWrites())
    return kSuccess;
  LaunchResult result = makeResult(address, rank, sizes, strides, elementBytes);
  // The thread need have no context any more.
  ContextState *context = stream         ? stream->context
                          : getCurrent() ? getCurrent()
                                         : &getContextState(0);
  return submit(stream, [=, name = std::string(name)] {
    std::lock_guard<std::mutex> lock(getDeviceMutex());
    Unwritten &unwritten = Unwritten::get();
    uint64_t missing = 0, all = 0, first = 0;
    int64_t element = 0;
    result.forEachRun([&](uint64_t run, uint64_t bytes, int64_t number) {
      uint64_t here = 0, count = unwritten.results.count(run, bytes, &here);
      if (count && !missing) {
        first = here;
        element =
            number + static_cast<int64_t>((here - run) / result.elementBytes);
      }
      missing += count;
      all += bytes;
      unwritten.results.erase(run, bytes);
      unwritten.memory.erase(run, bytes);
      return true;
    });
    if (missing && !context->lost)
      reportUnwritten(
          "kernel " + unwritten.kernel + " has not written " +
              std::to_string(missing) + " of the " + std::to_string(all) +
              " bytes of its result '" + name + "', the first in element " +
              result.describeElement(element) + ", " + describeByte(first),
          *context);
    return int{kSuccess};
  });
}

//===- Profiler.h - Times of what a context does ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_PROFILER_H
#define FP8_LIB_RUNTIME_CUDA_PROFILER_H

#include "fp8/Runtime/Profile.h"

#include <string>
#include <vector>

namespace fp8rt {

/// What there is to say of work before its time is known.
struct ProfiledWork {
  std::string name;
  int32_t kind;
  double bytes = 0, flops = 0;
};

/// The work of one device between the start of a profile and its end.
class Profiler {
public:
  explicit Profiler(int32_t device) : device(device) {}
  Profiler(const Profiler &) = delete;
  ~Profiler() { destroyEvents(); }

  /// Calls `run`, which puts `work` into `stream` and returns a status.
  template <typename Run>
  fp8rt_status time(ProfiledWork work, fp8rt_stream stream, Run &&run) {
    bool isTimed = false;
    if (fp8rt_status status = begin(std::move(work), stream, isTimed))
      return status;
    if (fp8rt_status status = run())
      return status;
    return isTimed ? end(stream) : FP8RT_OK;
  }

  /// Waits for everything that was timed.
  fp8rt_status stop();

  size_t getSize() const { return isStopped ? entries.size() : 0; }
  fp8rt_profile_entry getEntry(size_t index) const;

private:
  struct Entry {
    ProfiledWork work;
    fp8rt_event start = nullptr, end = nullptr;
    double startMs = 0, durationMs = 0;
  };

  fp8rt_status begin(ProfiledWork work, fp8rt_stream stream, bool &isTimed);
  fp8rt_status end(fp8rt_stream stream);
  fp8rt_status readTimes();
  /// Work that failed has no end, and no time.
  void dropFailed();
  void destroyEvents();

  int32_t device;
  std::vector<Entry> entries;
  bool isStopped = false;
};

} // namespace fp8rt

#endif // FP8_LIB_RUNTIME_CUDA_PROFILER_H

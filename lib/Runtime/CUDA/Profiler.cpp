//===- Profiler.cpp - Times of what a context does ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Profiler.h"

#include "Context.h"

using namespace fp8rt;

/// Events that are recorded in a capture belong to the graph.
static fp8rt_status getCapture(int32_t device, fp8rt_stream stream,
                               bool &isCaptured) {
  return cuda::inContext(device, [&](const cuda::Driver &driver) {
    cuda::CaptureStatus capture = cuda::STREAM_CAPTURE_STATUS_NONE;
    fp8rt_status status = cuda::check(
        driver.cuStreamIsCapturing(cuda::asStream(stream), &capture),
        [] { return std::string("ask if a stream is captured"); });
    isCaptured = capture != cuda::STREAM_CAPTURE_STATUS_NONE;
    return status;
  });
}

fp8rt_status Profiler::begin(ProfiledWork work, fp8rt_stream stream,
                             bool &isTimed) {
  bool isCaptured;
  if (fp8rt_status status = getCapture(device, stream, isCaptured))
    return status;
  if (isCaptured)
    return FP8RT_OK;
  dropFailed();
  Entry &entry = entries.emplace_back();
  entry.work = std::move(work);
  fp8rt_status status = fp8rt_event_create(device, &entry.start);
  if (status == FP8RT_OK)
    status = fp8rt_event_record(device, entry.start, stream);
  isTimed = status == FP8RT_OK;
  return status;
}

fp8rt_status Profiler::end(fp8rt_stream stream) {
  fp8rt_event event = nullptr;
  if (fp8rt_status status = fp8rt_event_create(device, &event))
    return status;
  entries.back().end = event;
  return fp8rt_event_record(device, event, stream);
}

fp8rt_status Profiler::readTimes() {
  for (Entry &entry : entries) {
    float start = 0, duration = 0;
    fp8rt_status status = fp8rt_event_synchronize(device, entry.end);
    if (status == FP8RT_OK && &entry != &entries.front())
      status = fp8rt_event_get_elapsed_ms(device, entries.front().start,
                                          entry.start, &start);
    if (status == FP8RT_OK)
      status =
          fp8rt_event_get_elapsed_ms(device, entry.start, entry.end, &duration);
    if (status != FP8RT_OK)
      return status;
    entry.startMs = static_cast<double>(start);
    entry.durationMs = static_cast<double>(duration);
  }
  return FP8RT_OK;
}

fp8rt_status Profiler::stop() {
  if (isStopped)
    return FP8RT_OK;
  dropFailed();
  fp8rt_status status = readTimes();
  std::string message = fp8rt_get_last_error();
  destroyEvents();
  isStopped = true;
  if (status == FP8RT_OK)
    return status;
  entries.clear();
  return detail::fail(status, message);
}

void Profiler::dropFailed() {
  if (entries.empty() || entries.back().end)
    return;
  if (entries.back().start)
    fp8rt_event_destroy(device, entries.back().start);
  entries.pop_back();
}

void Profiler::destroyEvents() {
  for (Entry &entry : entries)
    for (fp8rt_event *event : {&entry.start, &entry.end})
      if (*event) {
        fp8rt_event_destroy(device, *event);
        *event = nullptr;
      }
}

fp8rt_profile_entry Profiler::getEntry(size_t index) const {
  const Entry &entry = entries[index];
  fp8rt_profile_entry result = {};
  result.name = entry.work.name.c_str();
  result.kind = entry.work.kind;
  result.start_ms = entry.startMs;
  result.duration_ms = entry.durationMs;
  result.bytes = entry.work.bytes;
  result.flops = entry.work.flops;
  return result;
}

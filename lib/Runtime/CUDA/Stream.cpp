//===- Stream.cpp - CUDA streams and events -------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Stream.h"

#include "Capture.h"
#include "Context.h"

using namespace fp8rt;
using namespace fp8rt::cuda;

static std::string on(int32_t device) {
  return " on device " + std::to_string(device);
}

static Event asEvent(fp8rt_event event) { return static_cast<Event>(event); }

fp8rt_status fp8rt_stream_create(int32_t device, fp8rt_stream *stream) {
  if (!stream)
    return failNull("stream");
  return inContext(device, [&](const Driver &driver) {
    RelaxedCapture relaxed(driver);
    Stream made = nullptr;
    fp8rt_status status =
        check(driver.cuStreamCreate(&made, STREAM_NON_BLOCKING),
              [&] { return "make a stream" + on(device); });
    if (status == FP8RT_OK)
      *stream = made;
    return status;
  });
}

fp8rt_status fp8rt_stream_destroy(int32_t device, fp8rt_stream stream) {
  if (!stream)
    return failNull("stream");
  return inContext(device, [&](const Driver &driver) {
    return check(driver.cuStreamDestroy(asStream(stream)),
                 [&] { return "destroy a stream" + on(device); });
  });
}

fp8rt_status fp8rt_stream_synchronize(int32_t device, fp8rt_stream stream) {
  return inContext(device, [&](const Driver &driver) {
    return check(driver.cuStreamSynchronize(asStream(stream)),
                 [&] { return "synchronize a stream" + on(device); });
  });
}

bool cuda::isCapturing(int32_t device, fp8rt_stream stream) {
  CaptureStatus capture = STREAM_CAPTURE_STATUS_NONE;
  fp8rt_status status = inContext(device, [&](const Driver &driver) {
    return check(driver.cuStreamIsCapturing(asStream(stream), &capture), [] {
      return std::string("ask whether a stream is captured");
    });
  });
  return status != FP8RT_OK || capture != STREAM_CAPTURE_STATUS_NONE;
}

fp8rt_status fp8rt_stream_wait_event(int32_t device, fp8rt_stream stream,
                                     fp8rt_event event) {
  if (!event)
    return failNull("event");
  return inContext(device, [&](const Driver &driver) {
    return check(
        driver.cuStreamWaitEvent(asStream(stream), asEvent(event), /*flags=*/0),
        [&] { return "let a stream wait for an event" + on(device); });
  });
}

fp8rt_status fp8rt_event_create(int32_t device, fp8rt_event *event) {
  if (!event)
    return failNull("event");
  return inContext(device, [&](const Driver &driver) {
    RelaxedCapture relaxed(driver);
    Event made = nullptr;
    fp8rt_status status = check(driver.cuEventCreate(&made, /*flags=*/0),
                                [&] { return "make an event" + on(device); });
    if (status == FP8RT_OK)
      *event = made;
    return status;
  });
}

fp8rt_status fp8rt_event_destroy(int32_t device, fp8rt_event event) {
  if (!event)
    return failNull("event");
  return inContext(device, [&](const Driver &driver) {
    return check(driver.cuEventDestroy(asEvent(event)),
                 [&] { return "destroy an event" + on(device); });
  });
}

fp8rt_status fp8rt_event_record(int32_t device, fp8rt_event event,
                                fp8rt_stream stream) {
  if (!event)
    return failNull("event");
  return inContext(device, [&](const Driver &driver) {
    return check(driver.cuEventRecord(asEvent(event), asStream(stream)),
                 [&] { return "record an event" + on(device); });
  });
}

fp8rt_status fp8rt_event_synchronize(int32_t device, fp8rt_event event) {
  if (!event)
    return failNull("event");
  return inContext(device, [&](const Driver &driver) {
    return check(driver.cuEventSynchronize(asEvent(event)),
                 [&] { return "wait for an event" + on(device); });
  });
}

fp8rt_status fp8rt_event_get_elapsed_ms(int32_t device, fp8rt_event start,
                                        fp8rt_event end, float *milliseconds) {
  if (!start || !end || !milliseconds)
    return failNull(!start ? "start" : !end ? "end" : "milliseconds");
  return inContext(device, [&](const Driver &driver) {
    float elapsed = 0;
    fp8rt_status status =
        check(driver.cuEventElapsedTime(&elapsed, asEvent(start), asEvent(end)),
              [&] { return "take the time between two events" + on(device); });
    if (status == FP8RT_OK)
      *milliseconds = elapsed;
    return status;
  });
}

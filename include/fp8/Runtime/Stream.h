//===- Stream.h - CUDA streams and events -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface; Device.h says what holds for all functions.
//
// Streams and events are the driver's own (CUstream, CUevent; the CUDA
// runtime's are the same), so a stream of PyTorch or JAX can be used wherever
// one is expected. Null is the legacy default stream of the device. They are
// not checked: one that was destroyed is undefined behaviour.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_STREAM_H
#define FP8_RUNTIME_STREAM_H

#include "fp8/Runtime/Device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef void *fp8rt_stream;
typedef void *fp8rt_event;

/// Makes a stream that does not wait for the default stream; the caller
/// destroys it. Destroying does not wait: work in the stream is completed.
fp8rt_status fp8rt_stream_create(int32_t device, fp8rt_stream *stream);
fp8rt_status fp8rt_stream_destroy(int32_t device, fp8rt_stream stream);

/// Waits until the work in the stream has ended. Not for use during capture.
fp8rt_status fp8rt_stream_synchronize(int32_t device, fp8rt_stream stream);

/// Later work in `stream` starts after what `event` recorded has ended.
fp8rt_status fp8rt_stream_wait_event(int32_t device, fp8rt_stream stream,
                                     fp8rt_event event);

/// Makes an event that takes the time; the caller destroys it.
fp8rt_status fp8rt_event_create(int32_t device, fp8rt_event *event);
fp8rt_status fp8rt_event_destroy(int32_t device, fp8rt_event event);

fp8rt_status fp8rt_event_record(int32_t device, fp8rt_event event,
                                fp8rt_stream stream);

/// Waits until what the event recorded has ended.
fp8rt_status fp8rt_event_synchronize(int32_t device, fp8rt_event event);

/// The time between two recorded events whose work has ended.
fp8rt_status fp8rt_event_get_elapsed_ms(int32_t device, fp8rt_event start,
                                        fp8rt_event end, float *milliseconds);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_STREAM_H

//===- DeviceState.h - Scaling states of programs on a GPU ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program on a GPU works on a state in the device's memory, which stays there
// from step to step. A step is:
//
//   fp8rt_program_call(function, ..., state, context);   any number of times
//   ... with several ranks: one all-reduce MAX over rows.amax, in the stream
//   ... fp8rt_program_update_state(info, state, context);
//
// Each is work in the context's stream. Nothing waits, so that a step can be
// captured in a CUDA graph, once its functions have been called, and replayed;
// but for calls that find slots of delayed scaling without a scale.
//
// Either the host or the device has the values of a state. The first call gives
// them to the device; from then on functions of the host that read or change
// values fail with FP8RT_ERROR_ON_DEVICE, until fp8rt_state_download takes them
// back. The next call gives them to the device again, and copies nothing unless
// the host has changed them. A graph that is replayed does not, so that after a
// change fp8rt_state_upload has to be called first.
//
// Both functions count as writers of the state (fp8/Runtime/ScalingState.h).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_DEVICESTATE_H
#define FP8_RUNTIME_DEVICESTATE_H

#include "fp8/Runtime/ScalingState.h"
#include "fp8/Runtime/Stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Gives the values of a state to the device, in stream order, and says where
/// its rows are: in the device's memory, but for `rows->cache`, an array on the
/// host of pointers to it. They are made at the first call, and stay where they
/// are until the state is destroyed; a clone has none. In a capture only if
/// there is nothing to copy.
///
/// Errors:
///  - FP8RT_ERROR_OUT_OF_MEMORY;
///  - FP8RT_ERROR_WRONG_DEVICE: the state has its rows on another device.
fp8rt_status fp8rt_state_upload(fp8rt_state state, int32_t device,
                                fp8rt_stream stream, fp8rt_state_rows *rows);

/// Waits for `stream` and takes the values of the state back, to look at them,
/// change or save them. Not for a capture. Errors: FP8RT_ERROR_INVALID_ARGUMENT
/// without an upload before, or if the host has changed the state since the
/// last download and not uploaded it.
fp8rt_status fp8rt_state_download(fp8rt_state state, fp8rt_stream stream);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_DEVICESTATE_H

//===- DeviceState.h - Scaling states of programs on a GPU ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program on a GPU reads scales from rows in the device's memory, and writes
// amaxes there. Histories and the update stay the host's. A step is:
//
//   fp8rt_state_upload(state, device, stream, &rows);
//   ... the program with &rows, any number of times; launched or captured and
//   replayed, in work that follows the upload and precedes the download ...
//   fp8rt_state_download(state, stream);
//   fp8rt_state_update(state);
//
// fp8rt_program_call uploads by itself; a graph that is replayed does not.
// Both count as writers of the state (fp8/Runtime/ScalingState.h).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_DEVICESTATE_H
#define FP8_RUNTIME_DEVICESTATE_H

#include "fp8/Runtime/ScalingState.h"
#include "fp8/Runtime/Stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Copies the scales to the device, in stream order, unless it has them
/// already, and says where the rows are: `rows->amax` and the others point to
/// the device's memory, `rows->cache` to an array on the host of pointers to
/// it. The rows are made at the first call, with amaxes and counts of 0 and no
/// cached tensor, and stay where they are until the state is destroyed; a clone
/// has none. `rows->amax` is contiguous, so that ranks take its maximum in one
/// collective before the download. In a capture only if there is nothing to
/// copy.
///
/// Errors:
///  - FP8RT_ERROR_OUT_OF_MEMORY;
///  - FP8RT_ERROR_WRONG_DEVICE: the state has its rows on another device.
fp8rt_status fp8rt_state_upload(fp8rt_state state, int32_t device,
                                fp8rt_stream stream, fp8rt_state_rows *rows);

/// Waits for `stream`, raises the amaxes of the state to those of the device's
/// rows, adds their counts, and clears them there. Not for a capture. Errors:
/// FP8RT_ERROR_INVALID_ARGUMENT without an upload before.
fp8rt_status fp8rt_state_download(fp8rt_state state, fp8rt_stream stream);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_DEVICESTATE_H

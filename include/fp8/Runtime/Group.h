//===- Group.h - Ranks that share amaxes ------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface; Device.h says what holds for all functions.
//
// A program that has `fp8.all_reduce_amax` names groups of ranks. What reduces
// over one is the host's to say, before it calls the program: a function of its
// own, or NCCL, which is looked for when it is first asked for. Names are the
// process's, whatever program asks.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_GROUP_H
#define FP8_RUNTIME_GROUP_H

#include "fp8/Runtime/Context.h"

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// A function of the host
//===----------------------------------------------------------------------===//

/// Replaces each of `count` amaxes by the largest that a rank of the group has
/// in its place. They are not negative; compared as integers NaN is the
/// largest, as programs want it. `device` is -1 where they are the host's;
/// else they are that device's, and to be reduced in the order of `stream`.
/// Returns FP8RT_OK, or what fp8rt_set_last_error has returned: then the call
/// of the program fails with it.
typedef fp8rt_status (*fp8rt_reduce_function)(void *data, float *amaxes,
                                              int64_t count, int32_t device,
                                              fp8rt_stream stream);

/// Makes `reduce`, a fp8rt_reduce_function, what reduces over the group of that
/// name, in place of what did; null removes it. Threads that run programs of
/// the group may call it at the same time. `data` has to outlive all calls of
/// programs that began before it was replaced.
fp8rt_status fp8rt_group_set(const char *name, void *reduce, void *data);

/// Reduces over a group, as programs do. Errors: FP8RT_ERROR_NOT_FOUND of a
/// name that has nothing, and those of what reduces.
fp8rt_status fp8rt_group_all_reduce(const char *name, float *amaxes,
                                    int64_t count, int32_t device,
                                    fp8rt_stream stream);

//===----------------------------------------------------------------------===//
// NCCL
//===----------------------------------------------------------------------===//
//
// libnccl.so.2, or what FP8_NCCL names, is loaded by the first of these.
// Without it they are FP8RT_ERROR_NOT_FOUND. Amaxes are a device's then.

enum { FP8RT_NCCL_ID_SIZE = 128 };

/// Makes the FP8RT_NCCL_ID_SIZE bytes that ranks of a new group share: one of
/// them does, and sends them to the others.
fp8rt_status fp8rt_nccl_create_id(char *id);

/// Makes a communicator of `size` ranks, of which this process is `rank` on
/// `device`, and has it reduce over the group. Waits for the others. It is
/// destroyed when something else is set.
fp8rt_status fp8rt_group_create_nccl(const char *name, const char *id,
                                     int32_t size, int32_t rank,
                                     int32_t device);

/// The same with a communicator (ncclComm_t) that the host has, and keeps.
fp8rt_status fp8rt_group_set_nccl(const char *name, void *communicator);

//===----------------------------------------------------------------------===//
// For compiled programs
//===----------------------------------------------------------------------===//

enum {
  /// Only in calls that look for the first scales of a state.
  FP8RT_REDUCE_FIRST_CALL = 1
};

/// As fp8rt_group_all_reduce of the host's memory; a program gives up if it
/// fails.
void fp8rt_program_all_reduce(const char *name, float *amaxes, int64_t count,
                              int32_t flags);

/// The same of the memory of a context's device, in its stream; an error is the
/// context's.
void fp8rt_context_all_reduce(fp8rt_context *context, const char *name,
                              float *amaxes, int64_t count, int32_t flags);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_GROUP_H

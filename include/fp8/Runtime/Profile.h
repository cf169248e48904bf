//===- Profile.h - Times of kernels and copies ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface; Device.h says what holds for all functions.
//
// What a context launches and copies can be timed, with an event before and one
// after each. Events keep kernels from overlapping, so that the program as a
// whole takes longer than without; and where the device waits for the host, a
// time includes that of a launch, some microseconds. Work that is captured in a
// graph is not timed: a graph is replayed, and its events have no times.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_PROFILE_H
#define FP8_RUNTIME_PROFILE_H

#include "fp8/Runtime/Context.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  FP8RT_PROFILE_KERNEL = 0, /* with its workspaces */
  FP8RT_PROFILE_COPY = 1,   /* within the device */
  FP8RT_PROFILE_READ = 2,   /* to the host */
  FP8RT_PROFILE_FILL = 3    /* of new memory, with zeros */
};

typedef struct fp8rt_profile_entry {
  FP8RT_STRUCT_SIZE(uint64_t, fp8rt_profile_entry)
  const char *name; /* the kernel's; copy, read or fill */
  int32_t kind;     /* FP8RT_PROFILE_KERNEL, ... */
  int32_t reserved;
  double start_ms; /* since the first entry's start */
  double duration_ms;
  double bytes; /* as of fp8rt_kernel_get_work; 0 if it is not known */
  double flops;
} fp8rt_profile_entry;

/// From now on everything is timed that the context puts into its stream.
/// Entries of an earlier profile are forgotten.
fp8rt_status fp8rt_context_start_profile(fp8rt_context *context);

/// Waits for what was timed, and times no more. Nothing to do without a
/// profile. Errors: what that work failed with; then there are no entries.
fp8rt_status fp8rt_context_stop_profile(fp8rt_context *context);

/// The entries of the profile that was stopped, in order. The entry's name
/// lives until the next one is started or the context is destroyed. Errors:
/// FP8RT_ERROR_INVALID_ARGUMENT for an index that there is not.
int64_t fp8rt_context_get_profile_size(const fp8rt_context *context);
fp8rt_status fp8rt_context_get_profile_entry(const fp8rt_context *context,
                                             int64_t index,
                                             fp8rt_profile_entry *entry);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_PROFILE_H

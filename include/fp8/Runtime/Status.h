//===- Status.h - How libfp8rt's functions end ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_STATUS_H
#define FP8_RUNTIME_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// The version of the interface in these headers. A library answers for
/// programs and hosts compiled with the same major and the same or a smaller
/// minor: what these know keeps its meaning and its place. CHANGELOG.md says
/// what each version changed.
#define FP8RT_VERSION_MAJOR 1
#define FP8RT_VERSION_MINOR 1
#define FP8RT_VERSION (FP8RT_VERSION_MAJOR * 1000 + FP8RT_VERSION_MINOR)

/// The FP8RT_VERSION that the library was compiled with.
uint32_t fp8rt_get_version(void);

/// What a struct begins with that callers give: how many bytes of it they know,
/// sizeof(TYPE). A later version's library, whose struct has more fields behind
/// those, leaves the rest alone. In C++ it is there from the beginning; in C it
/// is for the caller to set, in Python fp8.abi does. Another number is
/// FP8RT_ERROR_INVALID_ARGUMENT.
#ifdef __cplusplus
#define FP8RT_STRUCT_SIZE(INTEGER, TYPE) INTEGER struct_size = sizeof(TYPE);
#else
#define FP8RT_STRUCT_SIZE(INTEGER, TYPE) INTEGER struct_size;
#endif

/// A function that does not return FP8RT_OK has changed nothing, unless it says
/// otherwise.
typedef int32_t fp8rt_status;
enum {
  FP8RT_OK = 0,
  FP8RT_ERROR_INVALID_ARGUMENT = 1, /* null, or out of range */
  FP8RT_ERROR_INVALID_HANDLE = 2,   /* never given out, or destroyed */
  FP8RT_ERROR_BUSY = 3,             /* another thread is using the object */
  FP8RT_ERROR_NOT_FOUND = 4,        /* no slot of that name */
  FP8RT_ERROR_INVALID_MANIFEST = 5,
  FP8RT_ERROR_FILE = 6,     /* cannot be read or written, malformed */
  FP8RT_ERROR_VERSION = 7,  /* a file of another version */
  FP8RT_ERROR_MISMATCH = 8, /* a file of another program */
  FP8RT_ERROR_OUT_OF_MEMORY = 9,
  FP8RT_ERROR_INTERNAL = 10,  /* a bug in the library */
  FP8RT_ERROR_NO_DRIVER = 11, /* no CUDA driver, or no device for it */
  FP8RT_ERROR_DRIVER_TOO_OLD = 12,
  FP8RT_ERROR_UNSUPPORTED_ARCH = 13, /* code for another GPU or processor */
  FP8RT_ERROR_INVALID_IMAGE = 14,    /* neither a cubin nor PTX, malformed */
  FP8RT_ERROR_WRONG_DEVICE = 15,     /* memory or a stream of another device */
  FP8RT_ERROR_DEVICE_LOST = 16, /* this process cannot use the device again */
  FP8RT_ERROR_CUDA = 17,        /* any other error of the CUDA driver */
  FP8RT_ERROR_INVALID_PROGRAM = 18, /* a source with mistakes; compilers */
  FP8RT_ERROR_ON_DEVICE = 19,       /* a state whose values a device has */
  FP8RT_ERROR_STOPPED = 20 /* by the caller, before it was done; compilers */
};

/// The name of a status, e.g. "FP8RT_ERROR_BUSY"; a static string.
const char *fp8rt_stringify_status(fp8rt_status status);

/// One line about the last call of this thread that failed; empty before the
/// first. Owned by the thread, valid until its next call that fails.
const char *fp8rt_get_last_error(void);

/// Makes `message` what fp8rt_get_last_error returns, and returns `status`: for
/// libraries that tell their errors in this way. Null stands for "".
fp8rt_status fp8rt_set_last_error(fp8rt_status status, const char *message);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_STATUS_H

//===- Context.h - Where compiled programs for GPUs run ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface; Device.h says what holds for all functions.
//
// A function compiled for a GPU takes a context as its last argument: the
// device and the stream to work on, the kernels that were loaded, and the first
// error. It returns nothing that could fail: a call after which
// fp8rt_context_take_status is not FP8RT_OK has no results.
//
// One thread at a time uses a context. The first call of a function loads its
// kernels and copies its constants, and is not for a stream capture; later
// ones are.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_CONTEXT_H
#define FP8_RUNTIME_CONTEXT_H

#include "fp8/Runtime/Kernel.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fp8rt_context fp8rt_context;

//===----------------------------------------------------------------------===//
// For hosts
//===----------------------------------------------------------------------===//

/// Makes a context for work in `stream`, which stays the caller's. The caller
/// destroys it. Errors: FP8RT_ERROR_OUT_OF_MEMORY.
fp8rt_status fp8rt_context_create(int32_t device, fp8rt_stream stream,
                                  fp8rt_context **context);

/// Unloads the kernels and frees the constants; waits for the device. To be
/// called before the programs that used the context are unloaded. Null is
/// allowed.
fp8rt_status fp8rt_context_destroy(fp8rt_context *context);

/// Later work goes to `stream`, of the same device.
fp8rt_status fp8rt_context_set_stream(fp8rt_context *context,
                                      fp8rt_stream stream);

/// The device that it was made for; -1 for null.
int32_t fp8rt_context_get_device(const fp8rt_context *context);

/// The stream that work goes to; null, the default stream, for null.
fp8rt_stream fp8rt_context_get_stream(const fp8rt_context *context);

/// The first error since the context was made or last asked, with its message;
/// the context works again. After an error nothing more is launched or copied.
fp8rt_status fp8rt_context_take_status(fp8rt_context *context);

//===----------------------------------------------------------------------===//
// For compiled programs
//===----------------------------------------------------------------------===//
//
// None of these fails but through the context, and null is a context that has
// failed.

/// A cubin or PTX inside a program. Images and kernels are known by their
/// address: they stay where they are as long as the context lives.
typedef struct fp8rt_program_image {
  const void *data;
  uint64_t size;
} fp8rt_program_image;

typedef struct fp8rt_program_kernel {
  const fp8rt_program_image *image;
  const char *name;
  const char *launch; /* as in fp8/Runtime/Kernel.h; null without one */
} fp8rt_program_kernel;

/// As fp8rt_workspace_alloc and fp8rt_workspace_free; null after an error.
void *fp8rt_context_alloc(fp8rt_context *context, uint64_t bytes,
                          uint32_t flags);
void fp8rt_context_free(fp8rt_context *context, void *ptr);

/// Copies in stream order within the device.
void fp8rt_context_copy(fp8rt_context *context, void *dst, const void *src,
                        uint64_t bytes);

/// Copies to host memory and waits for it, hence is not for a capture. Zeros
/// after an error.
void fp8rt_context_read(fp8rt_context *context, void *dst, const void *src,
                        uint64_t bytes);

/// The device's copy of a constant of the program; the first call makes it, and
/// waits until it is there.
void *fp8rt_context_get_constant(fp8rt_context *context, const void *data,
                                 uint64_t bytes);

/// As fp8rt_memory_check of an argument `name` with `count` elements; with none
/// it may be null.
void fp8rt_context_check_memory(fp8rt_context *context, const void *ptr,
                                int64_t count, const char *name);

/// An error with that message if `condition` is 0.
void fp8rt_context_require(fp8rt_context *context, int32_t condition,
                           const char *message);

/// As fp8rt_launch. A grid without blocks is no launch.
void fp8rt_context_launch(fp8rt_context *context,
                          const fp8rt_program_kernel *kernel,
                          const fp8rt_launch_config *config, void **params);

/// As fp8rt_kernel_launch of a kernel whose launch is described.
void fp8rt_context_launch_kernel(fp8rt_context *context,
                                 const fp8rt_program_kernel *kernel,
                                 const fp8rt_kernel_argument *arguments,
                                 const void *const *captures);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_CONTEXT_H

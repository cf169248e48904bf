//===- Memory.h - Memory of CUDA devices ------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface; Device.h says what holds for all functions.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_MEMORY_H
#define FP8_RUNTIME_MEMORY_H

#include "fp8/Runtime/Stream.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

//===----------------------------------------------------------------------===//
// Long-lived memory
//===----------------------------------------------------------------------===//

/// Allocates device memory, aligned to 256 bytes; null for 0 bytes. The caller
/// frees it. May wait for the device. Errors: FP8RT_ERROR_OUT_OF_MEMORY.
fp8rt_status fp8rt_memory_alloc(int32_t device, size_t bytes, void **ptr);

/// Waits for the device. Null is allowed.
fp8rt_status fp8rt_memory_free(int32_t device, void *ptr);

/// Copies in stream order between any two of this host and its devices. Host
/// memory that CUDA does not know is copied before the call returns; to read
/// what is copied to it, synchronize first.
fp8rt_status fp8rt_memory_copy(int32_t device, void *dst, const void *src,
                               size_t bytes, fp8rt_stream stream);

/// Sets every byte to `value`, in stream order.
fp8rt_status fp8rt_memory_set(int32_t device, void *ptr, uint8_t value,
                              size_t bytes, fp8rt_stream stream);

//===----------------------------------------------------------------------===//
// Workspace: memory for the time of some work in a stream
//===----------------------------------------------------------------------===//

enum {
  FP8RT_WORKSPACE_ZERO = 1 /* filled with zeros, in stream order */
};

/// Allocates device memory for work that follows in `stream`, aligned to 256
/// bytes; null for 0 bytes. It comes from a pool of the library, which keeps up
/// to 256 MiB per device for later calls; a graph that captures this owns the
/// memory itself. A device without pools has its memory allocated and freed at
/// once, which waits, and refuses to do so in a capture. Errors:
/// FP8RT_ERROR_OUT_OF_MEMORY.
fp8rt_status fp8rt_workspace_alloc(int32_t device, fp8rt_stream stream,
                                   size_t bytes, uint32_t flags, void **ptr);

/// Gives the memory back once the work in `stream` so far has ended. Null is
/// allowed.
fp8rt_status fp8rt_workspace_free(int32_t device, fp8rt_stream stream,
                                  void *ptr);

/// Takes workspace from somebody else who has a cache of memory, as frameworks
/// have, so that there are not two.
///
/// `alloc` is a `fp8rt_status (*)(int32_t device, fp8rt_stream stream, size_t
/// bytes, void **ptr, void **owner, void *data)`: memory for work that follows
/// in the stream, aligned to 256 bytes, and what it is given back by. A null
/// `ptr` leaves the request to the library. An error is that of the call, and
/// its text is set by fp8rt_set_last_error.
///
/// `free` is a `void (*)(void *owner, void *data)`, called once all work on the
/// memory is in the stream.
///
/// Both may be called by any thread. What was allocated before is given back to
/// where it came from. Null for `alloc` and `free`: the library's own pool.
void fp8rt_workspace_set_allocator(void *alloc, void *free, void *data);

//===----------------------------------------------------------------------===//
// Whose memory it is
//===----------------------------------------------------------------------===//

/// The device that `ptr` is memory of, or -1 for any host memory.
fp8rt_status fp8rt_memory_get_device(const void *ptr, int32_t *device);

/// Succeeds if kernels of `device` may use `ptr`: its own memory, and managed
/// memory. Else FP8RT_ERROR_WRONG_DEVICE, with a message that says what was
/// expected of `name`.
fp8rt_status fp8rt_memory_check(int32_t device, const void *ptr,
                                const char *name);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_MEMORY_H

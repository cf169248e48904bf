//===- fake_state.h - What the parts of the fake driver share -----*- C -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_LIB_FAKECUDA_FAKE_STATE_H
#define FP8_TEST_LIB_FAKECUDA_FAKE_STATE_H

#include "fake_cuda.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef int CUresult;
typedef unsigned long long CUdeviceptr;

typedef struct context {
  int device;
  bool lost;
} context;

typedef struct stream {
  context *owner;
  int capturing;
} stream;

/// From the environment.
extern int fake_num_devices, fake_version, fake_arch, fake_pools;
extern size_t fake_memory;
extern const char *fake_missing;

/// Of all that changes.
extern pthread_mutex_t fake_mutex;

/// The thread's context; null if it has none.
context *current(void);

/// Exchanges the thread's capture mode.
void exchange_capture_mode(int *mode);

/// Adds a line to the trace, if there is one.
void trace(const char *format, ...);

/// Counts the call, and says if it is to fail.
CUresult enter(const char *name, bool unsafe_in_capture);
/// The same for functions that need a context which is not lost.
CUresult enter_context(const char *name, bool unsafe_in_capture);

#define ENTER(unsafe)                                                          \
  do {                                                                         \
    CUresult failed = enter(__func__, unsafe);                                 \
    if (failed)                                                                \
      return failed;                                                           \
  } while (0)
#define ENTER_CONTEXT(unsafe)                                                  \
  do {                                                                         \
    CUresult failed = enter_context(__func__, unsafe);                         \
    if (failed)                                                                \
      return failed;                                                           \
  } while (0)

#endif // FP8_TEST_LIB_FAKECUDA_FAKE_STATE_H

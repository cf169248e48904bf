//===- fake_cuda.c - A CUDA driver without a GPU --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See fake_cuda.h. Numbers are those of NVIDIA's cuda.h. Here: what tests call,
// devices and contexts.
//
//===----------------------------------------------------------------------===//

#include "fake_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 8, MAX_NAMES = 64, MAX_DEPTH = 16 };

typedef struct name_state {
  char name[48];
  int calls, result, times;
} name_state;

int fake_num_devices = 2, fake_version = 12080, fake_arch = 90, fake_pools = 1;
size_t fake_memory = (size_t)1 << 30;
const char *fake_missing = "";
static FILE *trace_file;
pthread_mutex_t fake_mutex = PTHREAD_MUTEX_INITIALIZER;
static context contexts[MAX_DEVICES];
static name_state names[MAX_NAMES];
static int captures;

static _Thread_local context *stack[MAX_DEPTH];
static _Thread_local int depth;
static _Thread_local int capture_mode; /* 2 is relaxed */

//===----------------------------------------------------------------------===//
// What tests call
//===----------------------------------------------------------------------===//

static name_state *get_name(const char *name) {
  int i = 0;
  while (names[i].name[0] && strcmp(names[i].name, name) != 0)
    ++i;
  snprintf(names[i].name, sizeof(names[i].name), "%s", name);
  return &names[i];
}

void fake_cuda_reset(void) {
  pthread_mutex_lock(&fake_mutex);
  memset(names, 0, sizeof(names));
  for (int i = 0; i < MAX_DEVICES; ++i)
    contexts[i].lost = false;
  captures = 0;
  pthread_mutex_unlock(&fake_mutex);
}

void fake_cuda_fail(const char *name, int result, int times) {
  pthread_mutex_lock(&fake_mutex);
  get_name(name)->result = result;
  get_name(name)->times = times;
  pthread_mutex_unlock(&fake_mutex);
}

int fake_cuda_calls(const char *name) {
  pthread_mutex_lock(&fake_mutex);
  int calls = get_name(name)->calls;
  pthread_mutex_unlock(&fake_mutex);
  return calls;
}

void fake_cuda_lose(int device) {
  pthread_mutex_lock(&fake_mutex);
  contexts[device].lost = true;
  pthread_mutex_unlock(&fake_mutex);
}

void fake_cuda_capture(void *handle, int capturing) {
  pthread_mutex_lock(&fake_mutex);
  ((stream *)handle)->capturing = capturing;
  captures += capturing ? 1 : -1;
  pthread_mutex_unlock(&fake_mutex);
}

static void set_number(const char *variable, int *number) {
  if (getenv(variable))
    *number = atoi(getenv(variable));
}

__attribute__((constructor)) static void read_environment(void) {
  set_number("FAKE_CUDA_VERSION", &fake_version);
  set_number("FAKE_CUDA_DEVICES", &fake_num_devices);
  set_number("FAKE_CUDA_ARCH", &fake_arch);
  set_number("FAKE_CUDA_POOLS", &fake_pools);
  if (getenv("FAKE_CUDA_MEMORY"))
    fake_memory = (size_t)atoll(getenv("FAKE_CUDA_MEMORY"));
  if (getenv("FAKE_CUDA_MISSING"))
    fake_missing = getenv("FAKE_CUDA_MISSING");
  if (getenv("FAKE_CUDA_TRACE"))
    trace_file = fopen(getenv("FAKE_CUDA_TRACE"), "a");
  for (int i = 0; i < MAX_DEVICES; ++i)
    contexts[i].device = i;
  char name[48];
  int result, length;
  const char *list = getenv("FAKE_CUDA_FAIL");
  while (list && sscanf(list, "%47[^=]=%d%n", name, &result, &length) == 2) {
    fake_cuda_fail(name, result, -1);
    list += length;
    list += *list == ',';
  }
}

//===----------------------------------------------------------------------===//
// What every function begins with
//===----------------------------------------------------------------------===//

context *current(void) { return depth ? stack[depth - 1] : NULL; }

void trace(const char *format, ...) {
  if (!trace_file)
    return;
  va_list arguments;
  va_start(arguments, format);
  vfprintf(trace_file, format, arguments);
  va_end(arguments);
  fputc('\n', trace_file);
  fflush(trace_file);
}

/// Counts the call, and says if it is to fail.
CUresult enter(const char *name, bool unsafe_in_capture) {
  pthread_mutex_lock(&fake_mutex);
  name_state *state = get_name(name);
  ++state->calls;
  trace("%s", name);
  CUresult result = 0;
  if (state->times != 0) {
    result = state->result;
    state->times -= state->times > 0;
  } else if (unsafe_in_capture && captures > 0 && capture_mode != 2) {
    result = 900;
  }
  pthread_mutex_unlock(&fake_mutex);
  return result;
}

/// The same for functions that need a context which is not lost.
CUresult enter_context(const char *name, bool unsafe_in_capture) {
  CUresult result = enter(name, unsafe_in_capture);
  if (result)
    return result;
  if (!current())
    return 201;
  pthread_mutex_lock(&fake_mutex);
  bool lost = current()->lost;
  pthread_mutex_unlock(&fake_mutex);
  return lost ? 700 : 0;
}

//===----------------------------------------------------------------------===//
// Devices and contexts
//===----------------------------------------------------------------------===//

CUresult cuInit(unsigned flags) {
  (void)flags;
  ENTER(false);
  return fake_num_devices ? 0 : 100;
}

CUresult cuDriverGetVersion(int *result) {
  *result = fake_version;
  return 0;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  switch (error) {
#define CASE(number, text)                                                     \
  case number:                                                                 \
    *name = "CUDA_ERROR_" text;                                                \
    return 0;
    CASE(1, "INVALID_VALUE")
    CASE(2, "OUT_OF_MEMORY")
    CASE(100, "NO_DEVICE")
    CASE(200, "INVALID_IMAGE")
    CASE(209, "NO_BINARY_FOR_GPU")
    CASE(218, "INVALID_PTX")
    CASE(222, "UNSUPPORTED_PTX_VERSION")
    CASE(400, "INVALID_HANDLE")
    CASE(500, "NOT_FOUND")
    CASE(700, "ILLEGAL_ADDRESS")
    CASE(701, "LAUNCH_OUT_OF_RESOURCES")
    CASE(803, "SYSTEM_DRIVER_MISMATCH")
    CASE(900, "STREAM_CAPTURE_UNSUPPORTED")
  }
  *name = NULL;
  return 1;
}

CUresult cuGetErrorString(CUresult error, const char **text) {
  *text = error == 700 ? "an illegal memory access was encountered"
                       : "in the words of the fake driver";
  return 0;
}

CUresult cuDeviceGetCount(int *count) {
  ENTER(false);
  *count = fake_num_devices;
  return 0;
}

CUresult cuDeviceGet(int *device, int ordinal) {
  ENTER(false);
  *device = ordinal;
  return ordinal >= 0 && ordinal < fake_num_devices ? 0 : 101;
}

CUresult cuDeviceGetName(char *name, int size, int device) {
  ENTER(false);
  snprintf(name, (size_t)size, "Fake GPU %d", device);
  return 0;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, int device) {
  (void)device;
  *bytes = fake_memory;
  return 0;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, int device) {
  (void)device;
  ENTER(false);
  switch (attribute) {
  case 1: /* threads of a block */
    *value = 1024;
    return 0;
  case 8: /* shared memory of a block */
    *value = 49152;
    return 0;
  case 16: /* SMs */
    *value = 132;
    return 0;
  case 38: /* L2 */
    *value = 62914560;
    return 0;
  case 75:
    *value = fake_arch / 10;
    return 0;
  case 76:
    *value = fake_arch % 10;
    return 0;
  case 81: /* shared memory of an SM */
    *value = 233472;
    return 0;
  case 97: /* shared memory of a block, with opt-in */
    *value = 232448;
    return 0;
  case 115:
    *value = fake_pools;
    return 0;
  case 120: /* clusters */
    *value = fake_arch >= 90;
    return 0;
  }
  return 1;
}

CUresult cuDevicePrimaryCtxRetain(context **result, int device) {
  ENTER(true);
  *result = &contexts[device];
  return 0;
}

CUresult cuCtxGetCurrent(context **result) {
  ENTER(false);
  *result = current();
  return 0;
}

CUresult cuCtxPushCurrent_v2(context *pushed) {
  if (depth == MAX_DEPTH)
    return 2;
  stack[depth++] = pushed;
  return 0;
}

CUresult cuCtxPopCurrent_v2(context **popped) {
  if (depth == 0)
    return 201;
  --depth;
  if (popped)
    *popped = stack[depth];
  return 0;
}

CUresult cuCtxGetDevice(int *device) {
  if (!current())
    return 201;
  *device = current()->device;
  return 0;
}

CUresult cuCtxSynchronize(void) {
  ENTER_CONTEXT(true);
  return 0;
}

void exchange_capture_mode(int *mode) {
  int old = capture_mode;
  capture_mode = *mode;
  *mode = old;
}

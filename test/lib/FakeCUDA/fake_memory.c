//===- fake_memory.c - Memory, streams and events -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fake_state.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_DEVICES = 8, MAX_BLOCKS = 4096 };

typedef struct block {
  char *ptr;
  size_t bytes;
  int device;
  bool managed, pooled;
} block;

static size_t used[MAX_DEVICES];
static block blocks[MAX_BLOCKS];

int fake_cuda_live_blocks(void) {
  pthread_mutex_lock(&fake_mutex);
  int count = 0;
  for (int i = 0; i < MAX_BLOCKS; ++i)
    count += blocks[i].ptr != NULL;
  pthread_mutex_unlock(&fake_mutex);
  return count;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

static CUresult allocate(CUdeviceptr *ptr, size_t bytes, bool managed,
                         bool pooled) {
  int device = current()->device;
  CUresult result = 2;
  pthread_mutex_lock(&fake_mutex);
  if (bytes <= fake_memory - used[device])
    for (int i = 0; i < MAX_BLOCKS && result; ++i)
      if (!blocks[i].ptr) {
        blocks[i] = (block){aligned_alloc(256, (bytes + 255) / 256 * 256),
                            bytes, device, managed, pooled};
        memset(blocks[i].ptr, 0xA5, bytes);
        used[device] += bytes;
        *ptr = (uintptr_t)blocks[i].ptr;
        result = 0;
      }
  pthread_mutex_unlock(&fake_mutex);
  return result;
}

/// The block that `ptr` points into; the caller locks.
static block *find_block(CUdeviceptr ptr) {
  for (int i = 0; i < MAX_BLOCKS; ++i)
    if (blocks[i].ptr && ptr - (uintptr_t)blocks[i].ptr < blocks[i].bytes)
      return &blocks[i];
  return NULL;
}

static CUresult release(CUdeviceptr ptr) {
  pthread_mutex_lock(&fake_mutex);
  block *found = find_block(ptr);
  bool known = found && (uintptr_t)found->ptr == ptr;
  if (known) {
    used[found->device] -= found->bytes;
    free(found->ptr);
    found->ptr = NULL;
  }
  pthread_mutex_unlock(&fake_mutex);
  return known ? 0 : 1;
}

CUresult cuMemAlloc_v2(CUdeviceptr *ptr, size_t bytes) {
  ENTER_CONTEXT(true);
  return allocate(ptr, bytes, false, false);
}

CUresult cuMemAllocManaged(CUdeviceptr *ptr, size_t bytes, unsigned flags) {
  (void)flags;
  ENTER_CONTEXT(true);
  return allocate(ptr, bytes, true, false);
}

CUresult cuMemFree_v2(CUdeviceptr ptr) {
  ENTER_CONTEXT(true);
  return release(ptr);
}

typedef struct pool_props {
  int alloc_type, handle_types, location_type, device;
  void *security;
  size_t max_size;
  unsigned short usage;
  unsigned char reserved[54];
} pool_props;

CUresult cuMemPoolCreate(pool_props **pool, const pool_props *props) {
  ENTER_CONTEXT(true);
  if (!fake_pools || props->alloc_type != 1 || props->location_type != 1 ||
      props->device != current()->device)
    return 1;
  *pool = malloc(sizeof(pool_props));
  **pool = *props;
  return 0;
}

CUresult cuMemPoolSetAttribute(pool_props *pool, int attribute, void *value) {
  (void)pool;
  ENTER(false);
  return attribute == 4 && *(uint64_t *)value > 0 ? 0 : 1;
}

CUresult cuMemPoolTrimTo(pool_props *pool, size_t bytes) {
  (void)pool, (void)bytes;
  ENTER(false);
  return 0;
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *ptr, size_t bytes,
                                 pool_props *pool, stream *s) {
  (void)pool, (void)s;
  ENTER_CONTEXT(false);
  return allocate(ptr, bytes, false, true);
}

CUresult cuMemFreeAsync(CUdeviceptr ptr, stream *s) {
  (void)s;
  ENTER_CONTEXT(false);
  return release(ptr);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                       stream *s) {
  (void)s;
  ENTER_CONTEXT(false);
  memcpy((void *)(uintptr_t)dst, (void *)(uintptr_t)src, bytes);
  return 0;
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count,
                         stream *s) {
  (void)s;
  ENTER_CONTEXT(false);
  memset((void *)(uintptr_t)dst, value, count);
  return 0;
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count,
                          stream *s) {
  (void)s;
  ENTER_CONTEXT(false);
  for (size_t i = 0; i < count; ++i)
    ((unsigned short *)(uintptr_t)dst)[i] = value;
  return 0;
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count,
                          stream *s) {
  (void)s;
  ENTER_CONTEXT(false);
  for (size_t i = 0; i < count; ++i)
    ((unsigned *)(uintptr_t)dst)[i] = value;
  return 0;
}

CUresult cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags) {
  (void)ptr, (void)bytes, (void)flags;
  ENTER_CONTEXT(true);
  return 0;
}

CUresult cuMemHostUnregister(void *ptr) {
  (void)ptr;
  ENTER_CONTEXT(true);
  return 0;
}

CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values,
                                CUdeviceptr ptr) {
  ENTER(false);
  pthread_mutex_lock(&fake_mutex);
  block *found = find_block(ptr);
  for (unsigned i = 0; i < count; ++i)
    switch (attributes[i]) {
    case 2: /* memory type */
      *(unsigned *)values[i] = found ? 2 : 0;
      break;
    case 8: /* managed */
      *(unsigned *)values[i] = found && found->managed;
      break;
    case 9: /* device */
      *(int *)values[i] = found ? found->device : 0;
      break;
    case 17: /* pool */
      *(void **)values[i] = found && found->pooled ? found : NULL;
      break;
    }
  pthread_mutex_unlock(&fake_mutex);
  return 0;
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

CUresult cuStreamCreate(stream **result, unsigned flags) {
  ENTER_CONTEXT(false);
  if (flags != 1)
    return 1;
  *result = calloc(1, sizeof(stream));
  (*result)->owner = current();
  return 0;
}

CUresult cuStreamDestroy_v2(stream *s) {
  ENTER_CONTEXT(false);
  free(s);
  return 0;
}

CUresult cuStreamSynchronize(stream *s) {
  (void)s;
  ENTER_CONTEXT(true);
  return 0;
}

CUresult cuStreamWaitEvent(stream *s, float *event, unsigned flags) {
  (void)s, (void)event, (void)flags;
  ENTER_CONTEXT(false);
  return 0;
}

CUresult cuStreamIsCapturing(stream *s, int *status) {
  ENTER_CONTEXT(false);
  pthread_mutex_lock(&fake_mutex);
  *status = s ? s->capturing : 0;
  pthread_mutex_unlock(&fake_mutex);
  return 0;
}

CUresult cuStreamGetCtx(stream *s, context **owner) {
  ENTER(false);
  *owner = s ? s->owner : current();
  return 0;
}

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
  ENTER(false);
  exchange_capture_mode(mode);
  return 0;
}

/// An event is the time it recorded; every recording is a millisecond later.
CUresult cuEventCreate(float **event, unsigned flags) {
  (void)flags;
  ENTER_CONTEXT(false);
  *event = calloc(1, sizeof(float));
  return 0;
}

CUresult cuEventDestroy_v2(float *event) {
  ENTER_CONTEXT(false);
  free(event);
  return 0;
}

CUresult cuEventRecord(float *event, stream *s) {
  (void)s;
  ENTER_CONTEXT(false);
  static float now;
  pthread_mutex_lock(&fake_mutex);
  *event = ++now;
  pthread_mutex_unlock(&fake_mutex);
  return 0;
}

CUresult cuEventSynchronize(float *event) {
  (void)event;
  ENTER_CONTEXT(true);
  return 0;
}

CUresult cuEventElapsedTime(float *milliseconds, float *start, float *end) {
  ENTER_CONTEXT(false);
  *milliseconds = *end - *start;
  return 0;
}

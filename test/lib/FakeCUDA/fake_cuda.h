//===- fake_cuda.h - What tests tell the fake CUDA driver -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A driver without a GPU: memory is the host's, kernels are recorded and not
// run. It has its own idea of the driver's ABI, so that a mistake in ours is
// not made twice. Tests dlopen the library that libfp8rt has loaded and look
// these functions up in it; programs use environment variables, read when the
// driver is loaded:
//
//   FAKE_CUDA_VERSION=12080       what cuDriverGetVersion says
//   FAKE_CUDA_DEVICES=2           the number of devices
//   FAKE_CUDA_ARCH=90             their compute capability
//   FAKE_CUDA_POOLS=1             whether they have memory pools
//   FAKE_CUDA_MEMORY=1073741824   bytes of each
//   FAKE_CUDA_MISSING=cuXyz       a function that cuGetProcAddress lacks
//   FAKE_CUDA_FAIL=cuXyz=2,...    functions that fail, and how
//   FAKE_CUDA_TRACE=FILE          where to write the calls that were made, a
//                                 line for each
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_LIB_FAKECUDA_FAKE_CUDA_H
#define FP8_TEST_LIB_FAKECUDA_FAKE_CUDA_H

#include <stdint.h>

/// What the last launch said.
typedef struct fake_launch {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3]; /* zeros without the attribute */
  uint32_t dynamic_smem;
  int32_t overlap; /* programmatic stream serialization */
  int32_t device;
  void *stream;
  void *first_param; /* the value of a parameter of pointer type */
  /* Of kernels in PTX, the parameters: their bytes, up to 128 of each. */
  uint32_t num_params;
  uint32_t param_bytes[64];
  unsigned char params[64][128];
} fake_launch;

/// Without failures, counts, lost devices and captures; memory stays.
typedef void (*fake_cuda_reset_fn)(void);
/// Lets the next `times` calls of a function fail; -1 for all.
typedef void (*fake_cuda_fail_fn)(const char *function, int result, int times);
/// How often a function was called since the reset.
typedef int (*fake_cuda_calls_fn)(const char *function);
/// A kernel did something illegal on the device.
typedef void (*fake_cuda_lose_fn)(int device);
/// Begins or ends a capture in global mode; while it lasts, what could break it
/// fails with 900, but for threads in relaxed mode.
typedef void (*fake_cuda_capture_fn)(void *stream, int capturing);
/// Allocations that have not been freed.
typedef int (*fake_cuda_live_blocks_fn)(void);
typedef void (*fake_cuda_last_launch_fn)(fake_launch *launch);

#endif // FP8_TEST_LIB_FAKECUDA_FAKE_CUDA_H

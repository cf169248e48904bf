//===- Device.h - CUDA devices ----------------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface. The CUDA driver is looked for at the first
// call that needs it: libcuda.so.1, or the library that the environment
// variable FP8_CUDA_DRIVER names ('emulator' is libfp8emu). Without one the
// library works all the same, and what needs a GPU returns
// FP8RT_ERROR_NO_DRIVER.
//
// For all functions on devices, streams, memory and modules:
//  - They may be called from any thread, at the same time.
//  - Work is done in the primary context of `device`, which PyTorch and
//    the CUDA runtime use too. The caller's current context stays the same.
//  - Nothing waits for a device unless it says so, and nothing but what says so
//    breaks a stream capture, of this thread or another.
//  - Beside those that they name, they return FP8RT_ERROR_INVALID_ARGUMENT
//    for a null pointer or a device that does not exist, FP8RT_ERROR_NO_DRIVER,
//    FP8RT_ERROR_DRIVER_TOO_OLD (CUDA 12.0 is needed), FP8RT_ERROR_CUDA, and
//    FP8RT_ERROR_DEVICE_LOST. The last comes from the first call after a kernel
//    has done something illegal, and from all later ones on that device:
//    nothing but a new process brings it back. Other devices and the CPU are
//    unharmed.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_DEVICE_H
#define FP8_RUNTIME_DEVICE_H

#include "fp8/Runtime/Status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct fp8rt_device_info {
  FP8RT_STRUCT_SIZE(uint64_t, fp8rt_device_info)
  char name[128];
  int32_t compute_capability_major;
  int32_t compute_capability_minor;
  int32_t num_sms;
  int32_t max_threads_per_block;
  int32_t smem_per_block;       /* bytes that need no opt-in */
  int32_t smem_per_block_optin; /* the most that a block can have */
  int32_t smem_per_sm;
  int32_t l2_cache_size;
  int32_t supports_clusters;     /* 1 or 0 */
  int32_t supports_memory_pools; /* 1 or 0 */
  int64_t total_memory;
} fp8rt_device_info;

/// The version of CUDA that the driver supports, e.g. 12080 for 12.8.
fp8rt_status fp8rt_device_get_driver_version(int32_t *version);

fp8rt_status fp8rt_device_get_count(int32_t *count);

fp8rt_status fp8rt_device_get_info(int32_t device, fp8rt_device_info *info);

/// The device of the thread's current context; 0 if there is none.
fp8rt_status fp8rt_device_get_current(int32_t *device);

/// 1 where the driver is libfp8emu, whose device has its memory on the host and
/// does its work before a call returns; 0 for a GPU, and where
/// FP8_EMULATOR_HOST_TENSORS=0 has it taken for one.
fp8rt_status fp8rt_device_is_emulated(int32_t *is_emulated);

/// Waits until all work on the device has ended. Not for use during capture.
fp8rt_status fp8rt_device_synchronize(int32_t device);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_DEVICE_H

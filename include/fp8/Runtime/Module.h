//===- Module.h - Kernels: loading and launching ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Part of libfp8rt's C interface; Device.h says what holds for all functions.
//
// Modules and functions are handles: 0, a made-up number, and one whose module
// was unloaded give FP8RT_ERROR_INVALID_HANDLE.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_MODULE_H
#define FP8_RUNTIME_MODULE_H

#include "fp8/Runtime/Stream.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t fp8rt_module;
typedef uint64_t fp8rt_function;

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

/// Loads a cubin, a fatbin, or PTX (text, which need not end in 0), `size`
/// bytes that are not needed after the call. The caller unloads it. Errors:
///  - FP8RT_ERROR_INVALID_IMAGE: of no known kind, shorter than it says it is,
///    or refused by the driver's compiler, whose words are in the message.
///  - FP8RT_ERROR_UNSUPPORTED_ARCH: compiled for other GPUs than the device;
///    the message names both.
///  - FP8RT_ERROR_DRIVER_TOO_OLD: PTX of a later version than the driver's.
///  - FP8RT_ERROR_OUT_OF_MEMORY.
fp8rt_status fp8rt_module_load(int32_t device, const void *image, size_t size,
                               fp8rt_module *module);

/// Takes effect for all threads: launches that have begun are completed, and
/// all functions of the module become invalid. Kernels that the device has not
/// yet run are the caller's to wait for.
fp8rt_status fp8rt_module_unload(fp8rt_module module);

/// The kernel of that name, the same handle for the same name; it lives as long
/// as the module. Errors: FP8RT_ERROR_NOT_FOUND.
fp8rt_status fp8rt_module_get_function(fp8rt_module module, const char *name,
                                       fp8rt_function *function);

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

typedef struct fp8rt_function_info {
  FP8RT_STRUCT_SIZE(uint32_t, fp8rt_function_info)
  int32_t device;
  int32_t num_registers;         /* per thread */
  int32_t local_bytes;           /* per thread; spills are among them */
  int32_t static_smem;           /* per block */
  int32_t max_dynamic_smem;      /* what launches may ask for */
  int32_t max_threads_per_block; /* with so many registers */
  int32_t binary_version;        /* of the code, e.g. 90 */
} fp8rt_function_info;

fp8rt_status fp8rt_function_get_info(fp8rt_function function,
                                     fp8rt_function_info *info);

/// Lets launches ask for up to `bytes` of dynamic shared memory. Needed above
/// 48 KiB, once. Errors: FP8RT_ERROR_INVALID_ARGUMENT if the device has less.
fp8rt_status fp8rt_function_set_max_dynamic_smem(fp8rt_function function,
                                                 int32_t bytes);

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

enum {
  /* The kernel may start before its predecessor in the stream has ended; it
     waits for the predecessor's results by itself (PTX griddepcontrol.wait). */
  FP8RT_LAUNCH_OVERLAP = 1
};

/// x, y, z. A cluster of zeros is the one that the kernel was compiled with, or
/// none; otherwise its sizes divide those of the grid.
typedef struct fp8rt_launch_config {
  FP8RT_STRUCT_SIZE(uint32_t, fp8rt_launch_config)
  uint32_t grid[3];    /* in blocks */
  uint32_t block[3];   /* in threads */
  uint32_t cluster[3]; /* in blocks */
  uint32_t dynamic_smem;
  uint32_t flags;
} fp8rt_launch_config;

/// How many clusters of a kernel run at once on its device with launches like
/// this: fewer than its multiprocessors would hold one by one, for those of a
/// cluster are neighbours. The grid does not matter.
fp8rt_status
fp8rt_function_get_max_active_clusters(fp8rt_function function,
                                       const fp8rt_launch_config *config,
                                       int32_t *clusters);

/// Launches a kernel in `stream`, a stream of the function's device, and
/// returns at once. `params[i]` points to the value of the i-th parameter,
/// which is copied by the call. Can be captured in a graph. Errors:
///  - FP8RT_ERROR_INVALID_ARGUMENT: an impossible configuration; the message
///    names the field.
///  - FP8RT_ERROR_WRONG_DEVICE: a stream of another device.
fp8rt_status fp8rt_launch(fp8rt_function function,
                          const fp8rt_launch_config *config, void **params,
                          fp8rt_stream stream);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_MODULE_H

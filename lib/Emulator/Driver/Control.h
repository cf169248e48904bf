//===- Control.h - What tests tell the emulator -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Functions that libfp8emu exports besides the driver's, for tests of a host
// program: they dlopen the library that libfp8rt has loaded and look them up.
// Functions of the driver go by the names that cuGetProcAddress knows, and only
// calls of what it gave out are counted.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_DRIVER_CONTROL_H
#define FP8_LIB_EMULATOR_DRIVER_CONTROL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What the last launch said, whether it was done or recorded.
typedef struct fp8emu_launch {
  uint32_t grid[3];
  uint32_t block[3];
  uint32_t cluster[3]; /* zeros without the attribute */
  uint32_t dynamic_smem;
  int32_t overlap; /* programmatic stream serialization */
  int32_t device;
  void *stream;
  uint32_t num_params;
  uint32_t param_bytes[64];
  unsigned char params[64][128]; /* of each the first 128 bytes */
} fp8emu_launch;

/// Forgets failures and counts, and gives lost devices back.
typedef void (*fp8emu_reset_fn)(void);
/// Lets the next `times` calls of a function fail, or all if it is -1.
typedef void (*fp8emu_fail_fn)(const char *function, int error, int times);
/// How often a function was called since the reset.
typedef int (*fp8emu_count_calls_fn)(const char *function);
/// As after an access of a kernel out of bounds.
typedef void (*fp8emu_lose_fn)(int device);
/// Counts of all devices, without memory of the host.
typedef int (*fp8emu_count_allocations_fn)(void);
typedef void (*fp8emu_get_last_launch_fn)(fp8emu_launch *launch);

#ifdef __cplusplus
}
#endif

#endif // FP8_LIB_EMULATOR_DRIVER_CONTROL_H

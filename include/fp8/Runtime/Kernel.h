//===- Kernel.h - Launches that are described -------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// Part of libfp8rt's C interface; Device.h says what holds for all functions.
//
// A kernel that the compiler generated comes with a description of its launch:
// which tensors it takes, where each of its parameters comes from, the grid, in
// JSON. Nothing else in the library, in tools or in benchmarks knows how a
// kernel is called. It is the text of a #fp8_gpu.launch, whose page in
// docs/generated says what each key means:
//
//   {
//     "version": 2,
//     "arguments": [{"name": "x", "type": "f32", "rank": 2, "access": "update",
//                    "alignment": 16}],
//     "extents": [{"name": "m", "argument": 0, "dim": 0}],
//     "params": [{"tensor_map": 0, "box": [32, 64], "swizzle": 128, "l2": 128},
//                {"pointer": 0}, {"stride": 0, "dim": 0},
//                {"value": "m 2 *", "bytes": 4}, {"capture": 0, "bytes": 4},
//                {"scratch": 0}],
//     "workspaces": [{"bytes": "m 4 *", "zero": true}],
//     "grid": ["m 64 ceildiv"], "block": 128, "cluster": 1,
//     "shared_bytes": 0, "resident": 0, "overlap": false,
//     "flops": "m 2 *"
//   }
//
// All keys are there, but for "tail" of a tensor_map: a dimension, counted from
// the innermost as those of "box" are, along which the box has what is left of
// the argument's extent after whole boxes (or a whole one if nothing is). It
// was "rest" before 1.1, which is still read. Types are u8, u16, u32, u64, f16,
// bf16 and f32. Access is read, write, update (both), or raise (to the greater
// of what is there and an amax). Expressions are in postfix order, of numbers,
// extents, +, *, floordiv, ceildiv and mod.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_KERNEL_H
#define FP8_RUNTIME_KERNEL_H

#include "fp8/Runtime/Module.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/// A kernel and the description of its launch. Any number of threads may launch
/// it at the same time.
typedef struct fp8rt_kernel fp8rt_kernel;

#define FP8RT_KERNEL_MAX_RANK 8

/// A tensor that a kernel is launched with: the address of its first element,
/// and of each dimension, the outermost first, the size and the elements from
/// one index to the next. Only as many as its rank are looked at.
typedef struct fp8rt_kernel_argument {
  void *data;
  int64_t sizes[FP8RT_KERNEL_MAX_RANK];
  int64_t strides[FP8RT_KERNEL_MAX_RANK];
} fp8rt_kernel_argument;

/// Makes a kernel of a function and the `size` bytes of its description, which
/// are not needed after the call, and allows it its shared memory. The caller
/// destroys it, before the function's module is unloaded. Errors:
/// FP8RT_ERROR_INVALID_MANIFEST, with a message that names the key;
/// FP8RT_ERROR_INVALID_ARGUMENT if the device has less shared memory.
fp8rt_status fp8rt_kernel_create(fp8rt_function function, const char *launch,
                                 size_t size, fp8rt_kernel **kernel);

/// Null is allowed.
fp8rt_status fp8rt_kernel_destroy(fp8rt_kernel *kernel);

/// Launches the kernel in `stream`, and returns at once. `arguments` are those
/// of the description, in order; `captures` point to the values of its scalars.
/// `workspaces` point to its workspaces, those that are to be zero filled with
/// zeros; if it is null they are allocated in stream order and freed after the
/// kernel. A grid without blocks is no launch. What a kernel reads of a tensor
/// without elements is zeros, which are allocated in the same way.
///
/// Errors: FP8RT_ERROR_INVALID_ARGUMENT for a tensor that is not aligned as it
/// should be, with its name in the message, and for extents that are too large
/// for the kernel; as fp8rt_launch, fp8rt_tensor_map_get and
/// fp8rt_workspace_alloc.
fp8rt_status fp8rt_kernel_launch(const fp8rt_kernel *kernel,
                                 const fp8rt_kernel_argument *arguments,
                                 const void *const *captures,
                                 void *const *workspaces, fp8rt_stream stream);

/// The number of workspaces, and the bytes of the one at `index` for a launch
/// with these arguments, for callers that bring their own.
int32_t fp8rt_kernel_get_num_workspaces(const fp8rt_kernel *kernel);
fp8rt_status
fp8rt_kernel_get_workspace_bytes(const fp8rt_kernel *kernel,
                                 const fp8rt_kernel_argument *arguments,
                                 int32_t index, uint64_t *bytes);

/// What a launch with these arguments is for: the bytes that it must move at
/// least, each argument being read or written once, and floating-point
/// operations; 0 for what is not known of it.
fp8rt_status fp8rt_kernel_get_work(const fp8rt_kernel *kernel,
                                   const fp8rt_kernel_argument *arguments,
                                   double *bytes, double *flops);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_KERNEL_H

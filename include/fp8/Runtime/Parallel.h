//===- Parallel.h - The parallel loop compiled code calls -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loop over threads that --fp8-convert-forall-to-runtime calls.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_PARALLEL_H
#define FP8_RUNTIME_PARALLEL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// Calls `body`, a `void (*)(int64_t begin, int64_t end, void *context)`, with
/// ranges that together are [0, count), each iteration once, in any order and
/// from several threads at a time. Returns when all are done, and sees what
/// they wrote. A count of 0 or less calls nothing; one of 1, or a call from
/// inside of such a loop, stays on the caller's thread.
///
/// The threads are those of fp8rt_gemm_f32, of the OpenMP runtime that oneDNN
/// brings along: OMP_NUM_THREADS and omp_set_num_threads say how many. Without
/// such a runtime in the process there is one.
/// A child of fork() has threads of its own.
/// Thread-safe. Cannot fail.
void fp8rt_parallel_for(int64_t count, void *body, void *context);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_PARALLEL_H

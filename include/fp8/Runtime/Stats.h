//===- Stats.h - Statistics of quantized tensors ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A program compiled with statistics reports every tensor that it quantizes to
// a table of the process, one slot per tensor. The compiler numbers the slots
// and names them in the module attribute `fp8.stats_slots`.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_RUNTIME_STATS_H
#define FP8_RUNTIME_STATS_H

#include "fp8/Runtime/Status.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/// What has been recorded for a slot since the last reset.
typedef struct fp8rt_stats {
  FP8RT_STRUCT_SIZE(uint64_t, fp8rt_stats)
  int64_t calls;    /* how often the tensor was quantized */
  double amax;      /* largest magnitude, of all calls; NaN if one was NaN */
  double count;     /* elements */
  double underflow; /* non-zero elements that became zero */
  double saturated; /* elements beyond the largest finite code */
  double signal;    /* sum of x^2 */
  double noise;     /* sum of (x - dequantized x)^2 */
} fp8rt_stats;

/// Called by compiled code, from any thread: adds one quantized tensor to
/// `slot`. Everything but `amax` is a sum over the tensor. Negative slots and
/// those above a million are ignored.
void fp8rt_stats_record(int64_t slot, double amax, double count,
                        double underflow, double saturated, double signal,
                        double noise);

/// One more than the largest slot recorded.
int64_t fp8rt_stats_get_num_slots(void);

/// Copies a slot to `*stats`; all zero if nothing was recorded for it.
void fp8rt_stats_get(int64_t slot, fp8rt_stats *stats);

/// Forgets everything.
void fp8rt_stats_reset(void);

#ifdef __cplusplus
}
#endif

#endif // FP8_RUNTIME_STATS_H

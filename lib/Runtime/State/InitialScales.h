//===- InitialScales.h - Scales of tensors that are new ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Until the first update a call under delayed scaling has the scales of its own
// tensors. It is made with those that there are, and again with those of the
// amaxes that it found, until these stay. An amax depends on scales of tensors
// that come before in the function alone. So each time settles one more of
// those that follow on each other, and what comes out is as if each scale had
// been computed right before its cast.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STATE_INITIALSCALES_H
#define FP8_LIB_RUNTIME_STATE_INITIALSCALES_H

#include "GroupDetail.h"
#include "ScalingStateHandles.h"
#include "StatsDetail.h"

#include "fp8/Runtime/Context.h"

namespace fp8rt::detail {

/// The scales of one call's empty slots. The host has the values of the state,
/// but for while the function runs.
class InitialScales {
public:
  /// Whether a call needs any. Not while its stream is captured: what a graph
  /// replays is the steady state, for which nothing waits. `context` is null on
  /// the host; with one `access` is a writer's, and the device has the values.
  static fp8rt_status find(const Access &access, const char *function,
                           fp8rt_context *context, bool &isNeeded);

  /// `access` is a writer's.
  InitialScales(const Access &access, const char *function,
                fp8rt_context *context)
      : access(access), state(*access), function(function), context(context) {}

  /// Makes the call: `call` any number of times, with `release` for the results
  /// of each but the last; with an error there are none.
  template <typename Call, typename Release>
  fp8rt_status run(Call &&call, Release &&release) {
    DeferredStats stats;
    FirstCall inFirstCall;
    fp8rt_status status = begin();
    for (bool again = status == FP8RT_OK; again;) {
      status = call();
      again = false;
      if (status != FP8RT_OK)
        return end(status);
      status = advance(again);
      if (!again)
        status = end(status);
      if (again || status != FP8RT_OK) {
        release();
        stats.drop();
      }
    }
    return status;
  }

private:
  /// Calls that look for a scale until the first update. Whoever makes more,
  /// and never ends a step, does not train: the largest amax so far does from
  /// there on, for which nobody has to wait.
  static constexpr int32_t kMaxFirstCalls = 16;

  /// Finds the empty slots.
  fp8rt_status begin();
  /// After a call: sets `again` if its scales were not those of its amaxes, and
  /// then gives them to the state and forgets what the call has recorded.
  fp8rt_status advance(bool &again);
  /// Adds what the last call has recorded to what was there before. Of a frozen
  /// state, and with an error, the slots are as they were.
  fp8rt_status end(fp8rt_status status);

  fp8rt_status download();
  fp8rt_status upload();
  /// Remembers which slots need nobody's attention any more.
  void fill();
  /// What becomes of the scales of the last call.
  void settle(bool asBefore);

  const Access &access;
  ScalingState &state;
  const char *function;
  fp8rt_context *context;
  std::vector<size_t> empty;
  /// The state before the call, and its empty slots.
  Staging before{0};
  std::vector<float> scalesBefore;
  size_t numCalls = 0;
};

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_STATE_INITIALSCALES_H

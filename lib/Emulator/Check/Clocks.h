//===- Clocks.h - What happened before what ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Vector clocks over the agents of a cluster: first its threads, a warp's 32
// beside each other, then what announces the end of asynchronous work: each
// mbarrier, whose time is a phase, and the groups of copies and products of
// those who issue them, whose time is a group.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_CHECK_CLOCKS_H
#define FP8_LIB_EMULATOR_CHECK_CLOCKS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

namespace fp8emu {

using Clock = std::vector<uint32_t>;

inline uint32_t getTime(const Clock &clock, size_t agent) {
  return agent < clock.size() ? clock[agent] : 0;
}

inline void raise(Clock &clock, size_t agent, uint32_t time) {
  if (agent >= clock.size())
    clock.resize(agent + 1);
  clock[agent] = std::max(clock[agent], time);
}

inline void join(Clock &into, const Clock &from) {
  if (into.size() < from.size())
    into.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i)
    into[i] = std::max(into[i], from[i]);
}

/// Whether `in` has all of it.
inline bool isKnown(const Clock &clock, const Clock &in) {
  for (size_t i = 0; i < clock.size(); ++i)
    if (clock[i] > getTime(in, i))
      return false;
  return true;
}

/// Clocks of other clusters, by number, each in its own agents; null is none.
using ClocksOfClusters = std::map<uint64_t, std::shared_ptr<const Clock>>;
using OtherClocks = std::shared_ptr<const ClocksOfClusters>;

void join(OtherClocks &into, const OtherClocks &from);
bool isKnown(const OtherClocks &clocks, const OtherClocks &in);

/// What somebody knows to have happened; what of it a proxy fence has shown to
/// the asynchronous proxy; and of tensor memory what a tcgen05.fence has put
/// before, which relaxed operations bring, too. What others' blocks have done,
/// where global memory is looked at.
struct View {
  Clock known, fenced, tensor;
  OtherClocks others;
};

inline void join(View &into, const View &from) {
  join(into.known, from.known);
  join(into.fenced, from.fenced);
  join(into.tensor, from.tensor);
  join(into.others, from.others);
}

/// What the lanes of a warp know: most often all the same.
struct WarpView {
  struct Part {
    uint32_t lanes;
    std::shared_ptr<View> view;
    /// At the last fence, for relaxed operations after it; and what relaxed
    /// operations have read, for the next fence. Null is nothing.
    std::shared_ptr<const View> released, pending;
    /// What was before the last tcgen05.fence::after_thread_sync.
    std::shared_ptr<const Clock> settled;
  };
  std::vector<Part> parts;
  /// Time of accesses from now on. Whatever publishes them makes it advance.
  uint32_t time = 1;
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_CHECK_CLOCKS_H

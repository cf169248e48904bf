//===- Barriers.h - State of barriers and of groups of copies ---*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_EXEC_BARRIERS_H
#define FP8_LIB_EMULATOR_EXEC_BARRIERS_H

#include "Check/Clocks.h"

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace fp8emu {

/// bar.sync and its like: one phase after the other.
struct NamedBarrier {
  uint32_t expected = 0; /* threads; 0 before the first has come */
  uint32_t arrived = 0;
  uint64_t phase = 0;
  View gathering; /* what those have published that have arrived */
  /// The phase that each warp's sync takes part in; it goes on when that ended.
  std::unordered_map<unsigned, uint64_t> waiting;
  unsigned lastLine = 0;
};

struct ClusterBarrier {
  uint32_t arrived = 0;
  uint64_t phase = 0;
  View gathering, released;
};

/// A warp's lanes that have arrived at the cluster's barrier, and when.
struct ClusterArrival {
  uint32_t lanes = 0;
  uint64_t phase = 0;
};

/// PTX ISA, "mbarrier": the phase that runs, with what it still lacks.
struct MBarrier {
  uint32_t expected = 0;
  int64_t pending = 0;
  int64_t bytes = 0; /* transactions: expected less completed */
  uint64_t phase = 0;
  /// The last arrival: of a thread of the block of such a rank, and its line.
  uint32_t lastRank = 0, lastThread = 0, lastLine = 0;
  /// The race checker's: what arrivals of all phases have published, and those
  /// of the phases that have ended; the thread that initialized it, and when.
  View gathering, released;
  uint32_t agent = 0, initAgent = 0, initTime = 0, initOp = 0;
  bool initShown = false; /* by a fence of that thread */
};

/// Barriers of a block, by offset in shared memory.
using MBarrierTable = std::unordered_map<uint32_t, MBarrier>;

/// Copies of one thread between two commits.
struct BulkGroup {
  uint32_t unread = 0, unwritten = 0;
};

/// A cp.async.
struct PlainCopy {
  bool done = false;
  uint64_t group = 0; /* 0 is none yet */
  std::vector<std::function<void()>> waiters;
};

/// cp.async.bulk.commit_group and wait_group. Queued copies hold a group by its
/// number.
struct BulkGroups {
  uint64_t first = 0;              /* the number of the front one */
  std::deque<BulkGroup> groups{1}; /* the last is not committed */
  std::deque<std::shared_ptr<PlainCopy>> plain;
  uint64_t plainCommits = 0;
  /// The race checker's: reads of groups, and one further all of them; plain
  /// copies, their time, and what it was at each commit.
  uint32_t agent = 0, plainAgent = 0, plainTime = 1;
  std::vector<uint32_t> commitTimes;
};

struct Accumulators;
struct TensorMove;

/// A warp's part in wgmma: groups that are committed, and one that is not; and
/// in tcgen05.
struct WarpTensorState {
  struct Group {
    uint32_t inFlight = 0;
  };
  uint64_t first = 0; /* the number of the front group */
  std::deque<Group> groups{1};
  std::vector<std::shared_ptr<Accumulators>> accumulators; /* in flight */
  /// The race checker's: an agent; of each register of 32 bits, after which
  /// wgmma.fence it was touched and until which group it is in use.
  struct Use {
    uint32_t touched = 1, accumulated = 0, read = 0;
  };
  uint32_t agent = 0, fences = 0, waited = 0;
  std::vector<Use> uses;
  /// Loads and stores of tensor memory in flight. Of the race checker: an agent
  /// of loads, the next one of stores, and how often each was waited for.
  std::vector<std::shared_ptr<TensorMove>> moves;
  uint32_t moveAgent = 0, waits[2] = {0, 0};
  /// A lane's instructions that a commit tracks, as issued so far; an agent of
  /// those that are done, the next one of those that are issued.
  struct Issuer {
    uint32_t agent = 0, issued = 0;
  };
  std::unordered_map<unsigned, Issuer> issuers;
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_EXEC_BARRIERS_H

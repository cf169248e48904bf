//===- Stats.cpp - Statistics of quantised tensors ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Stats.h"

#include "ForkDetail.h"
#include "StructSize.h"

#include <cmath>
#include <mutex>
#include <vector>

/// Slots are small consecutive numbers; anything above is a corrupted call.
static constexpr int64_t kMaxSlots = 1'000'000;

namespace {
struct Table {
  std::mutex mutex;
  std::vector<fp8rt_stats> slots;

  void enterChild() {}
};
} // namespace

static Table *const theStats = fp8rt::detail::makeTable<Table>();
static Table &getTable() { return *theStats; }

void fp8rt_stats_record(int64_t slot, double amax, double count,
                        double underflow, double saturated, double signal,
                        double noise) {
  if (slot < 0 || slot >= kMaxSlots)
    return;
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  if (static_cast<size_t>(slot) >= table.slots.size())
    table.slots.resize(static_cast<size_t>(slot) + 1);
  fp8rt_stats &stats = table.slots[static_cast<size_t>(slot)];
  ++stats.calls;
  // Written so that a NaN stays, whichever side it is on.
  if (!(amax <= stats.amax) && !std::isnan(stats.amax))
    stats.amax = amax;
  stats.count += count;
  stats.underflow += underflow;
  stats.saturated += saturated;
  stats.signal += signal;
  stats.noise += noise;
}

int64_t fp8rt_stats_get_num_slots(void) {
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  return static_cast<int64_t>(table.slots.size());
}

void fp8rt_stats_get(int64_t slot, fp8rt_stats *stats) {
  if (fp8rt::detail::checkStruct("stats", stats))
    return;
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  bool known = slot >= 0 && static_cast<size_t>(slot) < table.slots.size();
  fp8rt::detail::giveStruct(
      stats, known ? table.slots[static_cast<size_t>(slot)] : fp8rt_stats());
}

void fp8rt_stats_reset(void) {
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  table.slots.clear();
}

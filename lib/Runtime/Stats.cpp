//===- Stats.cpp - Statistics of quantized tensors ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Stats.h"

#include "ForkDetail.h"
#include "StatsDetail.h"
#include "StructSize.h"

#include <cmath>
#include <mutex>
#include <vector>

using namespace fp8rt::detail;

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

static void record(const StatsEntry &entry) {
  if (entry.slot < 0 || entry.slot >= kMaxSlots)
    return;
  auto slot = static_cast<size_t>(entry.slot);
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  if (slot >= table.slots.size())
    table.slots.resize(slot + 1);
  fp8rt_stats &stats = table.slots[slot];
  ++stats.calls;
  // Written so that a NaN stays, whichever side it is on.
  if (!(entry.amax <= stats.amax) && !std::isnan(stats.amax))
    stats.amax = entry.amax;
  stats.count += entry.count;
  stats.underflow += entry.underflow;
  stats.saturated += entry.saturated;
  stats.signal += entry.signal;
  stats.noise += entry.noise;
}

static thread_local DeferredStats *innermost = nullptr;

DeferredStats::DeferredStats() : outer(innermost) { innermost = this; }

DeferredStats::~DeferredStats() {
  innermost = outer;
  for (const StatsEntry &entry : entries)
    record(entry);
}

void fp8rt_stats_record(int64_t slot, double amax, double count,
                        double underflow, double saturated, double signal,
                        double noise) {
  StatsEntry entry{slot, amax, count, underflow, saturated, signal, noise};
  if (innermost)
    innermost->add(entry);
  else
    record(entry);
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

//===- StatsDetail.h - Statistics that may be taken back --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_STATSDETAIL_H
#define FP8_LIB_RUNTIME_STATSDETAIL_H

#include <cstdint>
#include <vector>

namespace fp8rt::detail {

/// The arguments of fp8rt_stats_record.
struct StatsEntry {
  int64_t slot;
  double amax, count, underflow, saturated, signal, noise;
};

/// Keeps what this thread records, until it is destroyed.
class DeferredStats {
public:
  DeferredStats();
  DeferredStats(const DeferredStats &) = delete;
  DeferredStats &operator=(const DeferredStats &) = delete;
  ~DeferredStats();

  void add(const StatsEntry &entry) { entries.push_back(entry); }
  /// Forgets it instead.
  void drop() { entries.clear(); }

private:
  std::vector<StatsEntry> entries;
  DeferredStats *outer;
};

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_STATSDETAIL_H

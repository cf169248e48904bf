//===- ScalingStateHandles.cpp - Who may use which state ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A handle is the number of an entry and the entry's generation, which goes up
// whenever a state is destroyed. A stale handle is known by its generation, and
// no memory is looked at that may be gone.
//
//===----------------------------------------------------------------------===//

#include "ScalingStateHandles.h"

#include "ForkDetail.h"

#include <algorithm>
#include <mutex>

using namespace fp8rt;
using namespace fp8rt::detail;

namespace {
/// With an address of its own: the table may grow while a state is in use.
struct OwnedState {
  std::unique_ptr<ScalingState> state;
  std::unique_ptr<DeviceRows> deviceRows;
};

struct Entry {
  std::unique_ptr<OwnedState> owned;
  /// From 1, so that no handle is 0.
  uint32_t generation = 1;
  /// The number of readers, or -1 for a writer.
  int64_t users = 0;
};

struct Table {
  std::mutex mutex;
  std::vector<Entry> entries;
  std::vector<uint32_t> unused;

  Entry *lookup(fp8rt_state handle) {
    size_t index = handle & UINT32_MAX;
    if (index >= entries.size() || !entries[index].owned ||
        entries[index].generation != handle >> 32)
      return nullptr;
    return &entries[index];
  }

  /// Readers of the parent's other threads are gone. What one of them was
  /// writing stays in use: it may be half done.
  void enterChild() {
    for (Entry &entry : entries)
      entry.users = std::min<int64_t>(entry.users, 0);
  }
};
} // namespace

static Table *const theStates = makeTable<Table>();
static Table &getTable() { return *theStates; }

static fp8rt_status failInvalid(fp8rt_state handle) {
  return fail(FP8RT_ERROR_INVALID_HANDLE,
              handle == 0
                  ? "expected a state, but got 0"
                  : "expected a state, but got " + std::to_string(handle) +
                        ", which was destroyed or never given out");
}

static fp8rt_status failBusy() {
  return fail(FP8RT_ERROR_BUSY,
              "expected the state to be idle, but another thread is using it");
}

fp8rt_state detail::addState(std::unique_ptr<ScalingState> state) {
  std::unique_ptr<OwnedState> owned(new OwnedState{std::move(state), nullptr});
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  if (table.unused.empty()) {
    // Room for its return, so that destroying cannot fail.
    table.unused.reserve(table.entries.size() + 1);
    table.entries.emplace_back();
    table.unused.push_back(static_cast<uint32_t>(table.entries.size() - 1));
  }
  uint32_t index = table.unused.back();
  table.unused.pop_back();
  Entry &entry = table.entries[index];
  entry.owned = std::move(owned);
  return static_cast<fp8rt_state>(entry.generation) << 32 | index;
}

fp8rt_status detail::removeState(fp8rt_state handle) {
  Table &table = getTable();
  std::unique_ptr<OwnedState> owned;
  std::lock_guard<std::mutex> lock(table.mutex);
  Entry *entry = table.lookup(handle);
  if (!entry)
    return failInvalid(handle);
  if (entry->users != 0)
    return failBusy();
  owned = std::move(entry->owned);
  // An entry whose generations are used up is not used again.
  if (entry->generation++ != UINT32_MAX)
    table.unused.push_back(static_cast<uint32_t>(handle & UINT32_MAX));
  return FP8RT_OK;
}

Access::Access(fp8rt_state handle, Kind kind) : handle(handle), kind(kind) {
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  Entry *entry = table.lookup(handle);
  if (!entry) {
    status = failInvalid(handle);
    return;
  }
  if (kind == Write ? entry->users != 0 : entry->users < 0) {
    status = failBusy();
    return;
  }
  entry->users = kind == Write ? -1 : entry->users + 1;
  status = FP8RT_OK;
  state = entry->owned->state.get();
  deviceRows = &entry->owned->deviceRows;
}

fp8rt_status Access::checkValues() const {
  if (!*deviceRows || !(*deviceRows)->isAhead())
    return FP8RT_OK;
  return fail(FP8RT_ERROR_ON_DEVICE,
              "expected the values of the state on the host, but device " +
                  std::to_string((*deviceRows)->getDevice()) +
                  " has them: call fp8rt_state_download first");
}

Access::~Access() {
  if (!state)
    return;
  Table &table = getTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  // The table may have grown, but a state in use is not removed.
  Entry *entry = table.lookup(handle);
  entry->users = kind == Write ? 0 : entry->users - 1;
}

//===- Memory.cpp - Global memory, and who owns it ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Memory.h"

#include <cstdio>

using namespace fp8emu;

/// Never destroyed: threads may outlive main.
GlobalMemory &GlobalMemory::get() {
  static auto *memory = new GlobalMemory;
  return *memory;
}

void GlobalMemory::add(const Allocation &allocation) {
  std::lock_guard<std::mutex> lock(mutex);
  allocations[allocation.begin] = allocation;
}

bool GlobalMemory::remove(uint64_t begin, Allocation *removed) {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = allocations.find(begin);
  if (it == allocations.end())
    return false;
  if (removed)
    *removed = it->second;
  if (freed.size() > 1000)
    freed.erase(freed.begin());
  freed[begin] = it->second.end;
  allocations.erase(it);
  return true;
}

bool GlobalMemory::find(uint64_t address, Allocation &found) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return false;
  --it;
  if (address >= it->second.end)
    return false;
  found = it->second;
  return true;
}

static std::string formatRange(uint64_t begin, uint64_t end) {
  char text[64];
  std::snprintf(text, sizeof(text), "%llu bytes at 0x%llx",
                static_cast<unsigned long long>(end - begin),
                static_cast<unsigned long long>(begin));
  return text;
}

std::string GlobalMemory::describe(uint64_t address) const {
  std::lock_guard<std::mutex> lock(mutex);
  auto after = allocations.upper_bound(address);
  auto old = freed.upper_bound(address);
  if (old != freed.begin() && address < std::prev(old)->second)
    return "in memory that was freed, " +
           formatRange(std::prev(old)->first, std::prev(old)->second);
  constexpr uint64_t kNear = 1 << 20;
  if (after != allocations.begin()) {
    const Allocation &before = std::prev(after)->second;
    if (address - before.end < kNear)
      return std::to_string(address - before.end) +
             " bytes behind the end of " +
             formatRange(before.begin, before.end);
  }
  if (after != allocations.end() && after->first - address < kNear)
    return std::to_string(after->first - address) + " bytes before " +
           formatRange(after->second.begin, after->second.end);
  return "in no allocation";
}

size_t GlobalMemory::countOfDevices() const {
  std::lock_guard<std::mutex> lock(mutex);
  size_t count = 0;
  for (const auto &[begin, allocation] : allocations)
    count += !allocation.host;
  return count;
}

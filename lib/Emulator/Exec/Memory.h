//===- Memory.h - Global memory, and who owns it ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_EXEC_MEMORY_H
#define FP8_LIB_EMULATOR_EXEC_MEMORY_H

#include <cstdint>
#include <map>
#include <mutex>
#include <string>

namespace fp8emu {

/// Memory that kernels may touch. Addresses are the host's.
struct Allocation {
  uint64_t begin = 0, end = 0;
  bool writable = true;
  const void *owner = nullptr; /* a pool, of memory in stream order */
  bool managed = false;
  bool host = false; /* registered: the host's own */
  int device = 0;
};

/// Memory of all devices, as addresses are one space.
class GlobalMemory {
public:
  static GlobalMemory &get();

  void add(const Allocation &allocation);
  /// False if no allocation begins there.
  bool remove(uint64_t begin, Allocation *removed = nullptr);
  /// The allocation that holds an address.
  bool find(uint64_t address, Allocation &found) const;
  /// Where the nearest allocations are, for reports.
  std::string describe(uint64_t address) const;
  /// Allocations, but for the host's own.
  size_t countOfDevices() const;

private:
  mutable std::mutex mutex;
  std::map<uint64_t, Allocation> allocations;
  /// What was freed of late, by its beginning, so that a report can say so.
  std::map<uint64_t, uint64_t> freed;
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_EXEC_MEMORY_H

//===- Unwritten.h - Global memory that nobody has written ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A bit for each byte, in pages, which are there while any bit is set: memory
// that has been written costs nothing.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_CHECK_UNWRITTEN_H
#define FP8_LIB_EMULATOR_CHECK_UNWRITTEN_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace fp8emu {

/// A set of bytes by their addresses.
class ByteSet {
public:
  void insert(uint64_t address, uint64_t bytes);
  void erase(uint64_t address, uint64_t bytes);
  /// How many of a range are in the set; `first` is the first of them.
  uint64_t count(uint64_t address, uint64_t bytes, uint64_t *first) const;
  bool empty() const { return pages.empty(); }

private:
  static constexpr uint64_t kPageBytes = 4096, kWordBytes = 64;
  struct Page {
    uint64_t words[kPageBytes / kWordBytes] = {};
    uint32_t set = 0;
  };

  Page *find(uint64_t number) const;

  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
  /// The pages that were looked for last; null where there is none.
  struct Recent {
    uint64_t number = UINT64_MAX;
    Page *page = nullptr;
  };
  mutable Recent recent[64];
};

/// What has not been written, of all devices, under the device's mutex.
struct Unwritten {
  static Unwritten &get();

  /// Since it was allocated.
  ByteSet memory;
  /// Results of the launch that is going on, by that launch.
  ByteSet results;
  /// The kernel that was launched last.
  std::string kernel;
};

/// "byte 12 of 64 bytes at 0x1000".
std::string describeByte(uint64_t address);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_CHECK_UNWRITTEN_H

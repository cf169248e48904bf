//===- Launches.h - Launches that overlap -----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// With programmatic serialization a grid may begin before the one before it has
// ended; griddepcontrol.wait waits for its end. Here grids run one after the
// other, so that what is touched too early is told from who touched it last.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_CHECK_LAUNCHES_H
#define FP8_LIB_EMULATOR_CHECK_LAUNCHES_H

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>

namespace fp8emu {

/// Which launch has touched each word of global memory last.
class LaunchHistory {
public:
  struct Word {
    uint32_t writer = 0, reader = 0;
  };

  /// The device's history.
  static LaunchHistory &get();

  Word &getWord(uint64_t address);
  std::unordered_map<uint32_t, std::string> names; /* of kernels */

private:
  static constexpr unsigned kPageBits = 12;
  struct Page {
    Word words[(1 << kPageBits) / 4];
  };
  std::unordered_map<uint64_t, std::unique_ptr<Page>> pages;
  uint64_t lastNumber = UINT64_MAX;
  Page *last = nullptr;
};

/// A launch among those of its stream.
struct LaunchOverlap {
  LaunchHistory *history = nullptr; /* null if nobody looks */
  uint32_t number = 0;
  /// The first launch that may not have ended; 0 is none.
  uint32_t first = 0;
  /// It lets the next one begin before it has ended, and even before it has
  /// waited for its own. PTX asks for a wait behind such launches alone.
  bool triggers = false, early = false;
};

/// The overlap of a stream's next launch, after `previous`.
LaunchOverlap beginLaunch(const LaunchOverlap &previous, bool programmatic,
                          std::string name);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_CHECK_LAUNCHES_H

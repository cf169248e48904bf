//===- Counts.h - What a launch has done ------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_EXEC_COUNTS_H
#define FP8_LIB_EMULATOR_EXEC_COUNTS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fp8emu {

/// For those who reckon times: docs/Emulator.md describes each.
struct Counts {
  std::map<std::string, uint64_t> products; /* by kind, M and N */
  uint64_t loaded = 0, stored = 0, copied = 0, fills = 0, taken = 0, waits = 0;
  /// Instructions of a block's warps, by number, over all blocks; without those
  /// that wait.
  std::vector<uint64_t> instructions;

  void countInstructions(unsigned warp, uint64_t count);
  /// A line of JSON.
  std::string str(const std::string &kernel) const;
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_EXEC_COUNTS_H

//===- GlobalAccesses.h - Global memory within a launch ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Clusters have clocks of their own. What one knows of another one it has from
// words of global memory that the other one has released: a view then holds the
// other's clock as it was (Clocks.h).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_CHECK_GLOBALACCESSES_H
#define FP8_LIB_EMULATOR_CHECK_GLOBALACCESSES_H

#include "Check/Clocks.h"
#include "Check/Shadow.h"

#include <map>
#include <set>
#include <unordered_map>

namespace fp8emu {

/// What a launch's threads do with global memory.
class GlobalAccesses {
public:
  /// What atomic and release operations have published at a word.
  struct Word {
    std::map<uint64_t, View> published; /* by each cluster, in its own clocks */
    std::set<uint64_t> observers;       /* clusters that have read it so */
  };

  Word *findWord(const uint8_t *host) {
    auto it = words.find(host);
    return it == words.end() ? nullptr : &it->second;
  }
  Word &getWord(const uint8_t *host) { return words[host]; }

  /// Calls `visit` with each cell of a range, its page, and the bytes in it.
  template <class F>
  void forEachCell(uint64_t address, uint64_t bytes, F visit) {
    for (uint64_t end = address + bytes; address < end;) {
      uint64_t next = std::min(end, (address | (kPageBytes - 1)) + 1);
      Shadow &page = getPage(address / kPageBytes);
      Shadow::forEachCell(static_cast<uint32_t>(address % kPageBytes),
                          static_cast<uint32_t>(next - address),
                          [&](uint32_t cell, uint16_t part) {
                            visit(page, cell, part,
                                  address / kPageBytes * kPageBytes +
                                      uint64_t{cell} * kCellBytes);
                          });
      address = next;
    }
  }

private:
  static constexpr uint64_t kPageBytes = 4096;
  /// Bounds of a cell: inputs are read by many blocks, and over and over.
  static constexpr unsigned kMaxAccesses = 64, kMaxReads = 2;

  Shadow &getPage(uint64_t number) {
    Recent &place = recent[number % std::size(recent)];
    if (place.number != number) {
      std::unique_ptr<Shadow> &page = pages[number];
      if (!page)
        page = std::make_unique<Shadow>(static_cast<uint32_t>(kPageBytes),
                                        kMaxAccesses, kMaxReads);
      place = {number, page.get()};
    }
    return *place.page;
  }

  struct Recent {
    uint64_t number = UINT64_MAX;
    Shadow *page = nullptr;
  };

  std::unordered_map<uint64_t, std::unique_ptr<Shadow>> pages;
  std::unordered_map<const uint8_t *, Word> words;
  Recent recent[256];
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_CHECK_GLOBALACCESSES_H

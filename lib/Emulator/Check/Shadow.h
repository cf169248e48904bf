//===- Shadow.h - Who touched a block's shared memory last ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each cell of 16 bytes has a list of the accesses that a later one may still
// be unordered to.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_CHECK_SHADOW_H
#define FP8_LIB_EMULATOR_CHECK_SHADOW_H

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fp8emu {

constexpr uint32_t kCellBytes = 16;
/// The agent of accesses that are done when they are issued.
constexpr uint32_t kNoAgent = 0;

enum AccessFlags : uint8_t {
  kWrites = 1,
  kAsyncProxy = 2,
  kStrong = 4,    /* two of them are never a race: atomic, volatile, relaxed */
  kPipelined = 8, /* tcgen05.mma and cp: a thread's take place in order */
  kProduct = 16,  /* tcgen05.mma, of D */
};

struct ShadowEntry {
  uint32_t next = 0;
  uint32_t agent = kNoAgent; /* who announces its end, if it is asynchronous */
  uint32_t time = 0;         /* of the agent, or of the warp */
  uint32_t lanes = 0;        /* of the warp that issued it */
  uint32_t op = 0;
  uint32_t cluster = 0; /* of global memory */
  uint16_t warp = 0;
  uint16_t bytes = 0; /* of the cell */
  uint8_t flags = 0;
};

class Shadow {
public:
  /// Bounds each cell: what many have read byte by byte is forgotten, the
  /// oldest first.
  explicit Shadow(uint32_t bytes, unsigned mostEntries = 512,
                  unsigned mostReads = 512)
      : heads(bytes / kCellBytes + 1), written(bytes / kCellBytes + 1), pool(1),
        mostEntries(mostEntries), mostReads(mostReads) {}

  /// Calls `test` with each access of these bytes, until it says false.
  template <class F>
  void forEach(uint32_t cell, uint16_t bytes, F test) const {
    for (uint32_t i = heads[cell]; i; i = pool[i].next)
      if ((pool[i].bytes & bytes) && !test(pool[i]))
        return;
  }

  /// Adds an access and drops those that it makes superfluous.
  void insert(uint32_t cell, const ShadowEntry &entry);

  /// As if nobody had ever touched them.
  void clear(uint32_t cell, uint16_t bytes);

  void markWritten(uint32_t cell, uint16_t bytes) { written[cell] |= bytes; }
  /// Those of the bytes that nobody has written.
  uint16_t getUnwritten(uint32_t cell, uint16_t bytes) const {
    return bytes & ~written[cell];
  }

  /// Calls `visit` with each cell of a range and the bytes in it.
  template <class F>
  static void forEachCell(uint32_t offset, uint32_t bytes, F visit) {
    for (uint32_t end = offset + bytes; offset < end;) {
      uint32_t cell = offset / kCellBytes, first = offset % kCellBytes;
      uint32_t count = std::min(kCellBytes - first, end - offset);
      visit(cell, static_cast<uint16_t>(((1u << count) - 1) << first));
      offset += count;
    }
  }

private:
  std::vector<uint32_t> heads;
  std::vector<uint16_t> written;
  std::vector<ShadowEntry> pool;
  uint32_t free = 0;
  unsigned mostEntries, mostReads;
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_CHECK_SHADOW_H

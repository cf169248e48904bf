//===- Unwritten.cpp - Global memory that nobody has written --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Unwritten.h"

#include "Checker.h"

using namespace fp8emu;

//===----------------------------------------------------------------------===//
// Sets of bytes
//===----------------------------------------------------------------------===//

ByteSet::Page *ByteSet::find(uint64_t number) const {
  Recent &place = recent[number % std::size(recent)];
  if (place.number != number) {
    auto it = pages.find(number);
    place = {number, it == pages.end() ? nullptr : it->second.get()};
  }
  return place.page;
}

/// Calls `visit` with the page of each part of a range, the word in it, its
/// bits and its first address.
template <uint64_t pageBytes, uint64_t wordBytes, class F>
static void forEachWord(uint64_t address, uint64_t bytes, F visit) {
  for (uint64_t end = address + bytes; address < end;) {
    uint64_t next = std::min(end, (address | (wordBytes - 1)) + 1);
    uint64_t count = next - address, shift = address % wordBytes;
    uint64_t bits = (count == 64 ? ~uint64_t{0} : (uint64_t{1} << count) - 1)
                    << shift;
    visit(address / pageBytes, address % pageBytes / wordBytes, bits,
          address - shift);
    address = next;
  }
}

void ByteSet::insert(uint64_t address, uint64_t bytes) {
  forEachWord<kPageBytes, kWordBytes>(
      address, bytes,
      [&](uint64_t number, uint64_t word, uint64_t bits, uint64_t) {
        Page *page = find(number);
        if (!page) {
          page = (pages[number] = std::make_unique<Page>()).get();
          recent[number % std::size(recent)] = {number, page};
        }
        page->set += static_cast<uint32_t>(
            __builtin_popcountll(bits & ~page->words[word]));
        page->words[word] |= bits;
      });
}

void ByteSet::erase(uint64_t address, uint64_t bytes) {
  if (pages.empty())
    return;
  forEachWord<kPageBytes, kWordBytes>(
      address, bytes,
      [&](uint64_t number, uint64_t word, uint64_t bits, uint64_t) {
        Page *page = find(number);
        if (!page)
          return;
        page->set -= static_cast<uint32_t>(
            __builtin_popcountll(bits & page->words[word]));
        page->words[word] &= ~bits;
        if (page->set)
          return;
        pages.erase(number);
        recent[number % std::size(recent)] = {number, nullptr};
      });
}

uint64_t ByteSet::count(uint64_t address, uint64_t bytes,
                        uint64_t *first) const {
  uint64_t total = 0;
  if (pages.empty())
    return total;
  forEachWord<kPageBytes, kWordBytes>(
      address, bytes,
      [&](uint64_t number, uint64_t word, uint64_t bits, uint64_t at) {
        const Page *page = find(number);
        uint64_t found = page ? page->words[word] & bits : 0;
        if (found && !total)
          *first = at + static_cast<uint64_t>(__builtin_ctzll(found));
        total += static_cast<uint64_t>(__builtin_popcountll(found));
      });
  return total;
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Never destroyed: threads may outlive main.
Unwritten &Unwritten::get() {
  static auto *unwritten = new Unwritten;
  return *unwritten;
}

std::string fp8emu::describeByte(uint64_t address) {
  Allocation found;
  if (!GlobalMemory::get().find(address, found))
    return "the byte at " + toHex(address);
  return "byte " + std::to_string(address - found.begin) + " of " +
         std::to_string(found.end - found.begin) + " bytes at " +
         toHex(found.begin);
}

/// The kernel's parameter that points into the allocation of an address, for
/// reports; empty if there is none.
static std::string describeParameter(const Grid &grid, uint64_t address) {
  Allocation found;
  if (!GlobalMemory::get().find(address, found))
    return "";
  const std::vector<ParamSlot> &params = grid.program.params;
  for (size_t i = 0; i < params.size(); ++i) {
    // A tensor map has the address first, too.
    uint64_t value = 0;
    if (params[i].bytes < sizeof(value))
      continue;
    std::memcpy(&value, grid.params.data() + params[i].offset, sizeof(value));
    if (value >= found.begin && value < found.end)
      return ", parameter " + std::to_string(i) + "'s";
  }
  return "";
}

/// Marks what lanes touch: of a load what somebody uses of it.
void Checker::touchElements(Warp &warp, const Op &op, Mask mask,
                            uint8_t *const (&host)[kLanes], uint32_t bytes,
                            Access access) {
  const Unwritten &unwritten = Unwritten::get();
  if (unwritten.memory.empty() && unwritten.results.empty())
    return;
  bool isGlobal = (op.flags & kPlaceMask) == uint32_t(Place::Global);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    auto address = reinterpret_cast<uint64_t>(host[lane]);
    if (!isGlobal && !this->isGlobal(warp, host[lane]))
      continue;
    if (!(op.flags & kPartlyUsed)) {
      touchUnwritten(warp, op, lane, address, bytes, access);
      continue;
    }
    for (unsigned first = 0; first < bytes; first += op.width)
      if (op.s[3] >> first & 1)
        touchUnwritten(warp, op, lane, address + first, op.width, access);
  }
}

void Checker::touchUnwritten(Warp &warp, const Op &op, unsigned lane,
                             uint64_t address, uint64_t bytes, Access access) {
  if (!looksFor(kCheckUnwritten))
    return;
  Unwritten &unwritten = Unwritten::get();
  if (access != Access::Write) {
    uint64_t first = 0;
    if (unwritten.memory.count(address, bytes, &first))
      report(
          kCheckUnwritten, warp, op, Mask{1} << lane, 0,
          std::string(access == Access::Read ? "reads " : "reads and writes ") +
              describeByte(first) + " of global memory" +
              describeParameter(cluster.grid, first) +
              ", which nobody has written");
  }
  if (access != Access::Read) {
    unwritten.memory.erase(address, bytes);
    unwritten.results.erase(address, bytes);
  }
}

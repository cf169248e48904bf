//===- GlobalAccesses.cpp - Global memory within a launch -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GlobalAccesses.h"

#include "Checker.h"

using namespace fp8emu;

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

bool fp8emu::isKnown(const OtherClocks &clocks, const OtherClocks &in) {
  if (!clocks || clocks == in)
    return true;
  if (!in)
    return false;
  for (const auto &[cluster, clock] : *clocks) {
    auto it = in->find(cluster);
    if (it == in->end() ||
        !(it->second == clock || isKnown(*clock, *it->second)))
      return false;
  }
  return true;
}

void fp8emu::join(OtherClocks &into, const OtherClocks &from) {
  if (isKnown(from, into))
    return;
  if (!into) {
    into = from;
    return;
  }
  auto all = std::make_shared<ClocksOfClusters>(*into);
  for (const auto &[cluster, clock] : *from) {
    std::shared_ptr<const Clock> &known = (*all)[cluster];
    if (!known) {
      known = clock;
    } else if (!isKnown(*clock, *known)) {
      auto both = std::make_shared<Clock>(*known);
      join(*both, *clock);
      known = std::move(both);
    }
  }
  into = std::move(all);
}

/// As Checker::order has it for words of a cluster's own.
void Checker::orderGlobal(Warp &warp, const Op &op, unsigned lane,
                          const uint8_t *host, Access access) {
  GlobalAccesses &global = *cluster.grid.global;
  Mask one = Mask{1} << lane;
  if (access != Access::Write) {
    GlobalAccesses::Word &word = global.getWord(host);
    word.observers.insert(cluster.number);
    for (const auto &[number, view] : word.published) {
      View learned;
      if (number == cluster.number) {
        learned = view;
      } else {
        learned.others = view.others;
        auto other = std::make_shared<ClocksOfClusters>();
        (*other)[number] = std::make_shared<Clock>(view.known);
        join(learned.others, std::move(other));
      }
      if (op.flags & kAcquire)
        acquire(warp, one, learned);
      else
        acquireLater(warp, one, learned);
    }
  }
  if (access != Access::Read) {
    GlobalAccesses::Word &word = global.getWord(host);
    // Another store ends what earlier ones have released.
    if (access == Access::Write)
      word = {};
    if (op.flags & kRelease)
      release(warp, one, word.published[cluster.number]);
    else if (getPart(warp, lane).released && !strict)
      // Chips let a fence of the others, before a barrier, pass for its own.
      release(warp, one, word.published[cluster.number]);
    else if (getPart(warp, lane).released)
      releaseFenced(warp, one, word.published[cluster.number]);
  }
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

bool Checker::isOrderedGlobally(const ShadowEntry &old,
                                const Subject &subject) const {
  const View &view = *subject.part.view;
  bool isOwn = old.cluster == cluster.number;
  const Clock *known = &view.known;
  if (!isOwn) {
    if (!view.others)
      return false;
    auto it = view.others->find(old.cluster);
    if (it == view.others->end())
      return false;
    known = it->second.get();
  }
  if (old.agent != kNoAgent)
    return getTime(*known, old.agent) >= old.time;
  size_t first = size_t{old.warp} * kLanes;
  bool ownWarp = isOwn && old.warp == subject.warp.agent;
  for (Mask rest = old.lanes; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    bool own = ownWarp && (subject.lanes >> lane & 1);
    if (!own && getTime(*known, first + lane) < old.time)
      return false;
  }
  return true;
}

std::string Checker::describeGlobal(const ShadowEntry &entry) const {
  const Grid &grid = cluster.grid;
  if (entry.cluster == cluster.number)
    return describe(entry);
  // Its cluster may have ended.
  const Dim3 &c = grid.cluster, &block = grid.block;
  Dim3 index = grid.getClusterIndex(entry.cluster);
  auto perBlock = static_cast<uint32_t>((block.count() + kLanes - 1) / kLanes);
  uint32_t rank = entry.warp / perBlock;
  Dim3 cta = {index.x * c.x + rank % c.x, index.y * c.y + rank / c.x % c.y,
              index.z * c.z + rank / c.x / c.y};
  uint32_t thread =
      entry.warp % perBlock * kLanes +
      (entry.lanes ? static_cast<uint32_t>(__builtin_ctz(entry.lanes)) : 0);
  Dim3 tid = {thread % block.x, thread / block.x % block.y,
              thread / block.x / block.y};
  const Op &op = grid.program.ops[entry.op];
  return std::string(describeUse(entry.flags, entry.agent != kNoAgent)) +
         " by block " + cta.str() + ", thread " + tid.str() + ", line " +
         std::to_string(grid.program.getLine(op)) + ", '" +
         std::string(grid.program.getText(op)) + "'";
}

/// Whether the order of such operations shows in the result: that of integers
/// does not.
bool Checker::addsNumbers(const Op &op) const {
  std::string_view text = cluster.grid.program.getText(op);
  return text.find(".add") != text.npos &&
         (text.find("f32") != text.npos || text.find("f64") != text.npos ||
          text.find("f16") != text.npos);
}

void Checker::checkGlobal(const Subject &subject, const Shadow &page,
                          uint32_t cell, uint16_t bytes, uint64_t address) {
  page.forEach(cell, bytes, [&](const ShadowEntry &old) {
    if (!((old.flags | subject.flags) & kWrites))
      return true;
    bool areStrong = old.flags & subject.flags & kStrong;
    if (areStrong && !(looksFor(kCheckSums) && addsNumbers(subject.op) &&
                       addsNumbers(cluster.grid.program.ops[old.op])))
      return true;
    if (isOrderedGlobally(old, subject))
      return true;
    bool ownWarp =
        old.cluster == cluster.number && old.warp == subject.warp.agent;
    if (!strict && ownWarp && old.agent == kNoAgent && !subject.later)
      return true;
    // Tiles whose last stores share columns write these twice, the same.
    if (ownWarp && (old.lanes & subject.lanes) && subject.later &&
        old.agent != kNoAgent && (old.flags & subject.flags & kWrites))
      return true;
    uint64_t first =
        address + static_cast<unsigned>(__builtin_ctz(old.bytes & bytes));
    if (areStrong) {
      report(kCheckSums, subject.warp, subject.op, subject.lanes, old.op,
             "a term of the sum in global memory at " + toHex(first) +
                 " is not ordered after " + describeGlobal(old));
      return false;
    }
    // Who has read a word by an atomic comes after what was read.
    if (old.flags & kStrong) {
      auto *word =
          cluster.grid.global->findWord(reinterpret_cast<uint8_t *>(first));
      if (word && word->observers.count(cluster.number))
        return true;
    }
    report(kCheckGlobal, subject.warp, subject.op, subject.lanes, old.op,
           std::string(describeUse(subject.flags, subject.later)) +
               " of global memory at " + toHex(first) +
               " is not ordered after " + describeGlobal(old));
    return false;
  });
}

ShadowEntry Checker::makeGlobalEntry(const Warp &warp, const Op &op,
                                     uint8_t flags) const {
  ShadowEntry entry;
  entry.op = getIndex(op);
  entry.cluster = static_cast<uint32_t>(cluster.number);
  entry.warp = static_cast<uint16_t>(warp.agent);
  entry.flags = flags;
  return entry;
}

void Checker::accessGlobalLater(Warp &warp, const Op &op, unsigned lane,
                                uint64_t address, uint64_t bytes, Access access,
                                Announcement done) {
  if (!cluster.grid.global)
    return;
  auto flags = static_cast<uint8_t>(kAsyncProxy |
                                    (access == Access::Read ? 0 : kWrites) |
                                    (access == Access::Atomic ? kStrong : 0));
  Mask one = Mask{1} << lane;
  Subject subject{warp, op, one, getPart(warp, lane), flags, true};
  ShadowEntry entry = makeGlobalEntry(warp, op, flags);
  entry.agent = done.agent;
  entry.time = done.time;
  entry.lanes = one;
  cluster.grid.global->forEachCell(
      address, bytes,
      [&](Shadow &page, uint32_t cell, uint16_t part, uint64_t at) {
        checkGlobal(subject, page, cell, part, at);
        entry.bytes = part;
        page.insert(cell, entry);
      });
}

void Checker::accessGlobal(Warp &warp, const Op &op, Mask mask,
                           uint8_t *const (&host)[kLanes], uint32_t bytes,
                           uint8_t flags, uint32_t time) {
  ShadowEntry entry = makeGlobalEntry(warp, op, flags);
  entry.time = time;
  // Lanes of one instruction have no quarrel with each other: all are checked
  // before one is recorded, unless they only read.
  auto pass = [&](bool checks, bool records) {
    for (Mask rest = mask; rest; rest &= rest - 1) {
      auto lane = static_cast<unsigned>(__builtin_ctz(rest));
      entry.lanes = Mask{1} << lane;
      Subject subject{warp, op, entry.lanes, getPart(warp, lane), flags, false};
      cluster.grid.global->forEachCell(
          reinterpret_cast<uint64_t>(host[lane]), bytes,
          [&](Shadow &page, uint32_t cell, uint16_t part, uint64_t at) {
            if (checks)
              checkGlobal(subject, page, cell, part, at);
            entry.bytes = part;
            if (records)
              page.insert(cell, entry);
          });
    }
  };
  bool writes = flags & kWrites;
  pass(/*checks=*/true, /*records=*/!writes);
  if (writes)
    pass(/*checks=*/false, /*records=*/true);
}

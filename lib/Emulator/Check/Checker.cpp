//===- Checker.cpp - Accesses without an order between them ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Checker.h"

using namespace fp8emu;

//===----------------------------------------------------------------------===//
// Verdicts
//===----------------------------------------------------------------------===//

/// An operation that all lanes do together knows of each what that one did.
Checker::Verdict Checker::judge(const ShadowEntry &old,
                                const Subject &subject) const {
  const View &view = *subject.part.view;
  bool needsFence = (subject.flags & kAsyncProxy) && (old.flags & kWrites) &&
                    !(old.flags & kAsyncProxy);
  if (old.agent != kNoAgent) {
    if (getTime(view.known, old.agent) < old.time)
      return Verdict::Unordered;
    return needsFence && getTime(view.fenced, old.agent) < old.time
               ? Verdict::Unfenced
               : Verdict::Ordered;
  }
  size_t first = size_t{old.warp} * kLanes;
  bool ownWarp = old.warp == subject.warp.agent;
  Verdict verdict = Verdict::Ordered;
  for (Mask rest = old.lanes; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    bool own = ownWarp && (subject.lanes >> lane & 1);
    if (!own && getTime(view.known, first + lane) < old.time)
      return Verdict::Unordered;
    if (!needsFence)
      continue;
    // Lanes that issue it together have a fence each.
    const Clock *fenced = &view.fenced;
    if (own && !(subject.part.lanes >> lane & 1))
      for (const WarpView::Part &part : subject.warp.view.parts)
        if (part.lanes >> lane & 1)
          fenced = &part.view->fenced;
    if (getTime(*fenced, first + lane) < old.time)
      verdict = Verdict::Unfenced;
  }
  return verdict;
}

const char *fp8emu::describeUse(uint8_t flags, bool later) {
  if (later)
    return flags & kWrites ? "an asynchronous write" : "an asynchronous read";
  if (flags & kStrong)
    return flags & kWrites ? "an atomic write" : "an atomic read";
  return flags & kWrites ? "a write" : "a read";
}

uint32_t Checker::getIndex(const Op &op) const {
  return static_cast<uint32_t>(&op - cluster.grid.program.ops.data());
}

std::string Checker::describe(const ShadowEntry &entry) const {
  const Program &program = cluster.grid.program;
  const Op &op = program.ops[entry.op];
  return std::string(describeUse(entry.flags, entry.agent != kNoAgent)) +
         " by " + cluster.warps[entry.warp]->describeThread(entry.lanes) +
         ", line " + std::to_string(program.getLine(op)) + ", '" +
         std::string(program.getText(op)) + "'";
}

std::string fp8emu::describeShared(const Cta &cta, uint32_t offset,
                                   const Cta *own) {
  std::string_view name;
  uint32_t begin = 0;
  for (auto [at, candidate] : cta.cluster.grid.program.sharedNames)
    if (at <= offset && at >= begin) {
      begin = at;
      name = candidate;
    }
  std::string text = "[" + std::string(name) + "+" +
                     std::to_string(offset - begin) + "] of shared memory";
  if (own && own != &cta)
    text += " of block " + std::to_string(cta.rank) + " of the cluster";
  return text;
}

void Checker::report(uint32_t check, Warp &warp, const Op &op, Mask lanes,
                     uint32_t other, const std::string &what) {
  if (!looksFor(check))
    return;
  Grid &grid = cluster.grid;
  if (!grid.findings.add(check, getIndex(op), other))
    return;
  if (grid.findings.texts.size() == Findings::most) {
    ++grid.findings.more;
    return;
  }
  const Program &program = grid.program;
  grid.findings.texts.push_back(
      "kernel " + std::string(program.function->name) + ", " +
      warp.describeThread(lanes) + ", line " +
      std::to_string(program.getLine(op)) + ", '" +
      std::string(program.getText(op)) + "': " + what);
}

void Checker::check(const Subject &subject, const Cta &cta, uint32_t cell,
                    uint16_t bytes) {
  shadows[cta.rank].forEach(cell, bytes, [&](const ShadowEntry &old) {
    if (!((old.flags | subject.flags) & kWrites))
      return true;
    if (old.flags & subject.flags & kStrong)
      return true;
    Verdict verdict = judge(old, subject);
    if (verdict == Verdict::Ordered)
      return true;
    // Warps whose lanes go together, as they did before Volta.
    bool ownWarp = old.agent == kNoAgent && !subject.later &&
                   old.warp == subject.warp.agent;
    if (!strict && ownWarp)
      return true;
    auto first = static_cast<unsigned>(__builtin_ctz(old.bytes & bytes));
    bool race = verdict == Verdict::Unordered;
    report(
        race ? kCheckRaces : kCheckProxies, subject.warp, subject.op,
        subject.lanes, old.op,
        std::string(describeUse(subject.flags, subject.later)) + " at " +
            describeShared(cta, cell * kCellBytes + first, &subject.warp.cta) +
            (race ? " is not ordered after "
                  : " lacks a fence.proxy.async between it and ") +
            describe(old));
    return false;
  });
}

void Checker::reportUnwritten(const Subject &subject, const Cta &cta,
                              uint32_t cell, uint16_t bytes) {
  uint16_t missing = shadows[cta.rank].getUnwritten(cell, bytes);
  if (!missing)
    return;
  auto first = static_cast<unsigned>(__builtin_ctz(missing));
  report(kCheckUninitialized, subject.warp, subject.op, subject.lanes, 0,
         std::string(describeUse(subject.flags, subject.later)) + " at " +
             describeShared(cta, cell * kCellBytes + first, &subject.warp.cta) +
             ", which nobody has written");
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

/// Whether an address without a space means global memory.
bool Checker::isGlobal(const Warp &warp, const uint8_t *host) const {
  auto isIn = [host](const std::vector<uint8_t> &bytes) {
    return host >= bytes.data() && host < bytes.data() + bytes.size();
  };
  return !isIn(warp.cta.local) && !isIn(cluster.grid.params) &&
         !findBlock(warp, host);
}

const Cta *Checker::findBlock(const Warp &warp, const uint8_t *host) const {
  auto has = [host](const Cta &cta) {
    return host >= cta.shared && host < cta.shared + cta.sharedBytes;
  };
  if (has(warp.cta))
    return &warp.cta;
  for (auto &cta : cluster.ctas)
    if (has(*cta))
      return cta.get();
  return nullptr;
}

/// Those of a cell that a load at `offset` gives to somebody.
static uint16_t getUsedBytes(const Op &op, uint32_t offset, uint32_t cell) {
  if (!(op.flags & kPartlyUsed))
    return UINT16_MAX;
  int64_t shift = int64_t{cell} * kCellBytes - int64_t{offset};
  uint64_t used = op.s[3];
  return static_cast<uint16_t>(shift < 0 ? used << -shift : used >> shift);
}

void Checker::access(Warp &warp, const Op &op, Mask mask,
                     uint8_t *const (&host)[kLanes], uint32_t bytes,
                     Access access) {
  auto place = static_cast<Place>(op.flags & kPlaceMask);
  bool strong =
      access == Access::Atomic || (op.flags & (kRelease | kAcquire | kRelaxed));
  bool inShared = place != Place::Global && place != Place::Local &&
                  place != Place::Param && place != Place::Const;
  if (cluster.grid.overlap.history && place != Place::Shared)
    for (Mask rest = mask; rest; rest &= rest - 1) {
      auto lane = static_cast<unsigned>(__builtin_ctz(rest));
      if (place == Place::Global || isGlobal(warp, host[lane]))
        touchGlobal(warp, op, lane, reinterpret_cast<uint64_t>(host[lane]),
                    bytes, access);
    }
  if (looksFor(kCheckUnwritten) && place != Place::Shared)
    touchElements(warp, op, mask, host, bytes, access);
  uint8_t flags = static_cast<uint8_t>((access == Access::Read ? 0 : kWrites) |
                                       (strong ? kStrong : 0));
  // What a release publishes is its own access, too.
  uint32_t time = warp.view.time;
  Mask global = 0;
  if (cluster.grid.global && place != Place::Shared)
    for (Mask rest = mask; rest; rest &= rest - 1) {
      auto lane = static_cast<unsigned>(__builtin_ctz(rest));
      if (place == Place::Global || isGlobal(warp, host[lane]))
        global |= Mask{1} << lane;
    }
  if (!strong && !inShared && !global)
    return;
  if (strong)
    for (Mask rest = mask; rest; rest &= rest - 1) {
      auto lane = static_cast<unsigned>(__builtin_ctz(rest));
      order(warp, op, lane, host[lane], access);
    }
  if (global)
    accessGlobal(warp, op, global, host, bytes, flags, time);
  if (!inShared)
    return;
  const Cta *blocks[kLanes];
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    const Cta *cta = blocks[lane] = findBlock(warp, host[lane]);
    if (!cta)
      continue;
    Subject subject{warp,  op,   Mask{1} << lane, getPart(warp, lane),
                    flags, false};
    auto offset = static_cast<uint32_t>(host[lane] - cta->shared);
    Shadow::forEachCell(offset, bytes, [&](uint32_t cell, uint16_t part) {
      if (access != Access::Write)
        reportUnwritten(subject, *cta, cell,
                        part & getUsedBytes(op, offset, cell));
      check(subject, *cta, cell, part);
    });
  }
  ShadowEntry entry;
  entry.time = time;
  entry.op = getIndex(op);
  entry.warp = static_cast<uint16_t>(warp.agent);
  entry.flags = flags;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    const Cta *cta = blocks[lane];
    if (!cta)
      continue;
    Shadow &shadow = shadows[cta->rank];
    auto offset = static_cast<uint32_t>(host[lane] - cta->shared);
    entry.lanes = Mask{1} << lane;
    Shadow::forEachCell(offset, bytes, [&](uint32_t cell, uint16_t part) {
      entry.bytes = part;
      shadow.insert(cell, entry);
      if (access != Access::Read)
        shadow.markWritten(cell, part);
    });
  }
}

void Checker::accessLater(Warp &warp, const Op &op, Mask lanes, const Cta &cta,
                          uint32_t offset, uint32_t bytes, uint8_t flags,
                          Announcement done) {
  Shadow &shadow = shadows[cta.rank];
  ShadowEntry entry;
  entry.agent = done.agent;
  entry.time = done.time;
  entry.lanes = lanes;
  entry.op = getIndex(op);
  entry.warp = static_cast<uint16_t>(warp.agent);
  entry.flags = flags;
  Shadow::forEachCell(offset, bytes, [&](uint32_t cell, uint16_t part) {
    for (const WarpView::Part &known : warp.view.parts) {
      if (!(known.lanes & lanes))
        continue;
      Subject subject{warp, op, lanes, known, flags, true};
      if (!(flags & kWrites))
        reportUnwritten(subject, cta, cell, part);
      check(subject, cta, cell, part);
    }
    entry.bytes = part;
    shadow.insert(cell, entry);
    if (flags & kWrites)
      shadow.markWritten(cell, part);
  });
}

void Checker::accessBarrier(Warp &warp, const Op &op, Mask lanes,
                            const MBarrierRef &barrier, bool writes) {
  uint8_t flags = writes ? kWrites : kWrites | kStrong;
  ShadowEntry entry;
  entry.time = warp.view.time;
  entry.op = getIndex(op);
  entry.warp = static_cast<uint16_t>(warp.agent);
  entry.flags = flags;
  entry.lanes = lanes;
  Shadow &shadow = shadows[barrier.cta->rank];
  Shadow::forEachCell(barrier.offset, 8, [&](uint32_t cell, uint16_t part) {
    for (const WarpView::Part &known : warp.view.parts)
      if (Mask some = known.lanes & lanes)
        check({warp, op, some, known, flags, false}, *barrier.cta, cell, part);
    entry.bytes = part;
    shadow.insert(cell, entry);
    shadow.markWritten(cell, part);
  });
}

void Checker::announceAt(Warp &warp, const Op &op, unsigned lane,
                         const MBarrierRef &ref) {
  const MBarrier &barrier = *ref.get();
  const View &view = *getPart(warp, lane).view;
  accessBarrier(warp, op, Mask{1} << lane, ref, false);
  if (barrier.initShown || !strict ||
      getTime(view.fenced, barrier.initAgent) >= barrier.initTime)
    return;
  report(kCheckProxies, warp, op, Mask{1} << lane, barrier.initOp,
         "lacks a fence.mbarrier_init or fence.proxy.async between it and the "
         "initialization of " +
             fp8emu::describe(ref) + " in line " +
             std::to_string(cluster.grid.program.getLine(
                 cluster.grid.program.ops[barrier.initOp])));
}

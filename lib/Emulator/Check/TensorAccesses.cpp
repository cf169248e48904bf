//===- TensorAccesses.cpp - Order of accesses of tensor memory ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "tcgen05 Memory Consistency Model". All accesses are asynchronous.
// A thread's mma and cp take place in order, and those of threads that have
// fences and a synchronization between them. Everything else must be waited
// for: loads and stores by tcgen05.wait, mma and cp by a commit's mbarrier. Of
// other threads, and of what a commit tells, a thread relies on what was before
// its last tcgen05.fence::after_thread_sync; what others' fence::before has not
// covered was not.
//
//===----------------------------------------------------------------------===//

#include "Checker.h"

using namespace fp8emu;

void Checker::clearTensor(const Cta &cta, uint32_t column, uint32_t columns) {
  if (tensorShadows.empty())
    return;
  constexpr uint32_t bytes = kTensorLanes / 16;
  Shadow::forEachCell(column * bytes, columns * bytes,
                      [&](uint32_t cell, uint16_t part) {
                        tensorShadows[cta.rank].clear(cell, part);
                      });
}

/// `stream` is the agent of the subject's thread, if it is one of a pipeline.
Checker::Verdict Checker::judgeTensor(const ShadowEntry &old,
                                      const Subject &subject,
                                      uint32_t stream) const {
  uint32_t agent = old.agent;
  if ((old.flags & kPipelined) && (subject.flags & kPipelined)) {
    // A that another product has made is not among what is ordered.
    bool readsProduct = (old.flags & kProduct) && !(subject.flags & kProduct) &&
                        !(subject.flags & kWrites);
    if (!readsProduct) {
      if (agent == stream)
        return Verdict::Ordered;
      ++agent; // That it was issued before is enough.
    }
  }
  const View &view = *subject.part.view;
  bool known = getTime(view.known, agent) >= old.time;
  bool published = getTime(view.tensor, agent) >= old.time;
  bool ownMove = !(old.flags & kPipelined) && old.warp == subject.warp.agent;
  if (ownMove && known)
    return Verdict::Ordered;
  if (subject.part.settled && getTime(*subject.part.settled, agent) >= old.time)
    return Verdict::Ordered;
  if (!known && !published)
    return Verdict::Unordered;
  return strict ? Verdict::Unfenced : Verdict::Ordered;
}

static std::string describePlace(const Cta &cta, const Cta &own, uint32_t cell,
                                 uint16_t bytes) {
  auto first = static_cast<unsigned>(__builtin_ctz(bytes));
  unsigned unit = cell * kCellBytes + first, perColumn = kTensorLanes / 16;
  std::string text = "column " + std::to_string(unit / perColumn) + ", lane " +
                     std::to_string(unit % perColumn * 16) +
                     ", of tensor memory";
  if (&cta != &own)
    text += " of block " + std::to_string(cta.rank) + " of the cluster";
  return text;
}

static uint8_t getFlags(TensorUse use) {
  switch (use) {
  case TensorUse::Load:
    return 0;
  case TensorUse::Store:
  case TensorUse::Free:
    return kWrites;
  case TensorUse::Fill:
    return kWrites | kPipelined;
  case TensorUse::Operand:
  case TensorUse::Factors:
    return kPipelined;
  case TensorUse::Result:
  case TensorUse::Accumulator:
    return kWrites | kPipelined | kProduct;
  }
  return 0;
}

void Checker::accessTensor(Warp &warp, const Op &op, Mask lanes, const Cta &cta,
                           TensorRegion region, TensorUse use,
                           Announcement done) {
  if (tensorShadows.empty())
    return;
  Shadow &shadow = tensorShadows[cta.rank];
  uint8_t flags = getFlags(use);
  bool reads = !(flags & kWrites) || use == TensorUse::Accumulator;
  const char *verb = use == TensorUse::Free    ? "the end"
                     : use == TensorUse::Load  ? "a load"
                     : use == TensorUse::Store ? "a store"
                     : (flags & kWrites)       ? "an asynchronous write"
                                               : "an asynchronous read";
  ShadowEntry entry;
  entry.agent = done.agent;
  entry.time = done.time;
  entry.lanes = lanes;
  entry.op = getIndex(op);
  entry.warp = static_cast<uint16_t>(warp.agent);
  entry.flags = flags;
  uint32_t stream = flags & kPipelined ? done.agent : kNoAgent;
  auto visit = [&](uint32_t cell, uint16_t part) {
    if (uint16_t missing = reads ? shadow.getUnwritten(cell, part) : 0)
      report(kCheckUninitialized, warp, op, lanes, 0,
             std::string(verb) + " of " +
                 describePlace(cta, warp.cta, cell, missing) +
                 ", which nobody has written");
    for (const WarpView::Part &known : warp.view.parts) {
      if (!(known.lanes & lanes))
        continue;
      Subject subject{warp, op, lanes, known, flags, true};
      shadow.forEach(cell, part, [&](const ShadowEntry &old) {
        if (!((old.flags | flags) & kWrites) || old.agent == kNoAgent)
          return true;
        Verdict verdict = judgeTensor(old, subject, stream);
        // Chips let loads pass whose registers have been used.
        if (!strict && use == TensorUse::Free && !(old.flags & kPipelined) &&
            !(old.flags & kWrites))
          return true;
        // Nothing comes after the end that a fence would hold back.
        if (verdict == Verdict::Ordered ||
            (verdict == Verdict::Unfenced && use == TensorUse::Free))
          return true;
        bool race = verdict == Verdict::Unordered;
        auto same = static_cast<uint16_t>(old.bytes & part);
        report(race ? kCheckRaces : kCheckProxies, warp, op, lanes, old.op,
               std::string(verb) + " of " +
                   describePlace(cta, warp.cta, cell, same) +
                   (race ? " is not ordered after "
                         : " lacks a tcgen05.fence::after_thread_sync, or the "
                           "other thread a ::before_thread_sync, between it "
                           "and ") +
                   describe(old));
        return false;
      });
    }
    if (use == TensorUse::Free) {
      shadow.clear(cell, part);
      return;
    }
    entry.bytes = part;
    shadow.insert(cell, entry);
    if (flags & kWrites)
      shadow.markWritten(cell, part);
  };
  // Two columns are a cell.
  uint32_t end = region.column + region.columns;
  for (uint32_t column = region.column; column < end;) {
    bool both = column % 2 == 0 && column + 1 < end;
    unsigned part = column % 2 ? region.lanes << 8
                    : both     ? region.lanes | region.lanes << 8
                               : region.lanes;
    visit(column / 2, static_cast<uint16_t>(part));
    column += both ? 2 : 1;
  }
}

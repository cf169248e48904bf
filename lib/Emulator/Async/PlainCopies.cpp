//===- PlainCopies.cpp - cp.async of a few bytes --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkCopies.h"

using namespace fp8emu;

/// What cp.async says of its source: all is copied, so many bytes are, or
/// nothing where a predicate is set, or is not.
enum SourceCount : uint8_t { kAll, kHasCount, kIgnoresIf, kIgnoresIfNot };

static void issueFew(Warp &warp, const Op &op, unsigned lane) {
  Cluster &cluster = warp.cta.cluster;
  Mask one = Mask{1} << lane;
  uint32_t bytes = op.width;
  uint32_t sourceBytes = bytes;
  if (op.count == kHasCount)
    sourceBytes = warp.row<uint32_t>(op.s[2])[lane];
  else if (op.count &&
           ((warp.predicate(op.s[2]) >> lane) & 1) == (op.count == kIgnoresIf))
    sourceBytes = 0;
  if (sourceBytes > bytes)
    warp.fault(op, one, kLaunchFailed,
               "expected at most " + std::to_string(bytes) +
                   " bytes of the source, but got " +
                   std::to_string(sourceBytes));
  uint64_t to = getAddress(warp, op, lane, op.s[0]);
  SharedRange range = resolveShared(warp, op, one, to, bytes, bytes, false);
  uint64_t from = warp.row<uint64_t>(op.s[1])[lane] + op.rows;
  if (from % bytes != 0)
    warp.fault(op, one, kMisalignedAddress,
               "expected an address that is a multiple of " +
                   std::to_string(bytes) + ", but got " + toHex(from));
  const uint8_t *data = sourceBytes ? resolveGlobal(warp, op, one, from,
                                                    sourceBytes, Access::Read)
                                    : nullptr;
  std::memset(range.data(), 0xff, bytes);
  BulkGroups &groups = warp.cta.bulkGroups[warp.getThread(lane)];
  if (Checker *checker = cluster.checker.get()) {
    if (!groups.plainAgent)
      groups.plainAgent = checker->addAgent();
    checker->touchGlobal(warp, op, lane, from, sourceBytes, Access::Read);
    checker->touchUnwritten(warp, op, lane, from, sourceBytes, Access::Read);
    checker->accessGlobalLater(warp, op, lane, from, sourceBytes, Access::Read,
                               {groups.plainAgent, groups.plainTime});
    checker->accessLater(warp, op, one, *range.cta, range.offset, bytes,
                         kWrites, {groups.plainAgent, groups.plainTime});
  }
  groups.plain.push_back(std::make_shared<PlainCopy>());
  std::shared_ptr<PlainCopy> state = groups.plain.back();
  AsyncOp copy;
  copy.line = cluster.grid.program.getLine(op);
  copy.advance = [=] {
    std::memset(range.data(), 0, bytes);
    if (sourceBytes)
      std::memcpy(range.data(), data, sourceBytes);
    state->done = true;
    // Barriers that wait for this copy: cp.async.mbarrier.arrive.
    for (auto &waiter : state->waiters)
      waiter();
    return false;
  };
  cluster.queue.push(std::move(copy));
}

static Step copyFew(Warp &warp, const Op &op, Mask mask) {
  if (Counts *counts = warp.cta.cluster.grid.counts.get())
    counts->copied += uint64_t{op.width} * __builtin_popcount(mask);
  for (Mask rest = mask; rest; rest &= rest - 1)
    issueFew(warp, op, static_cast<unsigned>(__builtin_ctz(rest)));
  return Step::Next;
}

static void dropDone(BulkGroups &groups) {
  while (!groups.plain.empty() && groups.plain.front()->done)
    groups.plain.pop_front();
}

static Step commitFew(Warp &warp, const Op &, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    BulkGroups &groups = warp.cta.bulkGroups[warp.getThread(lane)];
    dropDone(groups);
    ++groups.plainCommits;
    groups.commitTimes.push_back(groups.plainTime++);
    for (auto &copy : groups.plain)
      if (copy->group == 0)
        copy->group = groups.plainCommits;
  }
  return Step::Next;
}

static Step waitFew(Warp &warp, const Op &op, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    BulkGroups &groups = warp.cta.bulkGroups[warp.getThread(lane)];
    dropDone(groups);
    for (auto &copy : groups.plain) {
      // wait_all is for those that are not committed, too.
      bool mustEnd =
          op.flags ? true
                   : copy->group != 0 &&
                         static_cast<int64_t>(copy->group) <=
                             static_cast<int64_t>(groups.plainCommits) - op.imm;
      if (!copy->done && mustEnd)
        return Step::Wait;
    }
  }
  Checker *checker = warp.cta.cluster.checker.get();
  for (Mask rest = checker ? mask : 0; rest; rest &= rest - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    BulkGroups &groups = warp.cta.bulkGroups[warp.getThread(lane)];
    int64_t last = static_cast<int64_t>(groups.commitTimes.size()) - op.imm;
    uint32_t time = op.flags ? groups.plainTime++
                    : last > 0
                        ? groups.commitTimes[static_cast<size_t>(last) - 1]
                        : 0;
    checker->learn(warp, Mask{1} << lane, {groups.plainAgent, time});
  }
  return Step::Next;
}

/// An arrival when all copies of the thread up to here have ended. Without
/// .noinc the barrier waits for it besides what it expects.
static Step arriveAfterCopies(Warp &warp, const Op &op, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    MBarrierRef ref = findMBarrier(warp, op, lane, op.s[0],
                                   static_cast<Place>(op.flags & kPlaceMask));
    if (!op.count)
      ++ref.get()->pending;
    BulkGroups &groups = warp.cta.bulkGroups[warp.getThread(lane)];
    dropDone(groups);
    IssuePlace place(warp, op, lane);
    if (Checker *checker = warp.cta.cluster.checker.get())
      checker->accessBarrier(warp, op, Mask{1} << lane, ref, false);
    auto left = std::make_shared<uint32_t>(1);
    Announcement copies{groups.plainAgent, groups.plainTime++};
    auto told = [=] {
      if (--*left != 0)
        return;
      MBarrier *barrier = ref.get();
      if (!barrier || barrier->pending == 0)
        place.fault(kLaunchFailed,
                    "expected an arrival less at " + describe(ref));
      --barrier->pending;
      if (copies.agent)
        raise(barrier->gathering.known, copies.agent, copies.time);
      if (std::string wrong = completeBytes(ref, 0); !wrong.empty())
        place.fault(kLaunchFailed, wrong);
    };
    for (auto &copy : groups.plain)
      if (!copy->done) {
        ++*left;
        copy->waiters.push_back(told);
      }
    told();
  }
  return Step::Next;
}

void fp8emu::decodePlainCopy(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (modifiers.take("mbarrier")) {
    modifiers.take("arrive");
    op.count = modifiers.take("noinc");
    op.flags = static_cast<uint32_t>(takePlace(modifiers));
    modifiers.take("b64");
    decoder.expectOperands(1);
    Decoder::Address address = decoder.address(decoder.operand(0));
    op.s[0] = address.row;
    op.imm = address.offset;
    op.flags |= address.wide ? kWideAddress : 0;
    op.handler = arriveAfterCopies;
    return;
  }
  if (modifiers.take("commit_group")) {
    decoder.expectOperands(0);
    op.handler = commitFew;
    return;
  }
  if (modifiers.take("wait_all")) {
    decoder.expectOperands(0);
    op.flags = 1;
    op.handler = waitFew;
    return;
  }
  if (modifiers.take("wait_group")) {
    decoder.expectOperands(1);
    op.imm = decoder.immediate(decoder.operand(0));
    op.handler = waitFew;
    return;
  }
  bool sixteen = modifiers.take("cg");
  if (!sixteen && !modifiers.take("ca"))
    decoder.fail("expected .ca or .cg");
  if (!modifiers.takeOneOf({"shared", "shared::cta"}) ||
      !modifiers.take("global"))
    decoder.fail("expected .shared.global");
  modifiers.takeOneOf({"L2::64B", "L2::128B", "L2::256B"});
  if (decoder.numOperands() != 3)
    decoder.expectOperands(4);
  Decoder::Address to = decoder.address(decoder.operand(0));
  Decoder::Address from = decoder.address(decoder.operand(1));
  int64_t bytes = decoder.immediate(decoder.operand(2));
  if (sixteen ? bytes != 16 : bytes != 4 && bytes != 8 && bytes != 16)
    decoder.fail("expected 4, 8 or 16 bytes");
  if (!from.wide || from.offset < 0 || from.offset > UINT32_MAX)
    decoder.fail("expected a source address of 64 bits");
  op.s[0] = to.row;
  op.s[1] = from.row;
  op.imm = to.offset;
  op.rows = static_cast<uint32_t>(from.offset);
  op.width = static_cast<uint8_t>(bytes);
  op.flags = to.wide ? kWideAddress : 0;
  if (decoder.numOperands() == 4 && decoder.isPredicate(decoder.operand(3))) {
    bool negated = false;
    op.s[2] = decoder.predicate(decoder.operand(3), negated);
    op.count = negated ? kIgnoresIfNot : kIgnoresIf;
  } else if (decoder.numOperands() == 4) {
    op.count = kHasCount;
    op.s[2] = decoder.sourceBits(decoder.operand(3), 32);
  }
  op.handler = copyFew;
}

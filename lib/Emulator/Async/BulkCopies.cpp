//===- BulkCopies.cpp - Groups of copies, and copies of plain ranges ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkCopies.h"

using namespace fp8emu;

/// Groups whose copies are done go, the oldest first.
static void retire(BulkGroups &groups) {
  while (groups.groups.size() > 1 && groups.groups.front().unwritten == 0 &&
         groups.groups.front().unread == 0) {
    groups.groups.pop_front();
    ++groups.first;
  }
}

void BulkTicket::writeDone() const {
  --group().unwritten;
  retire(cta->bulkGroups[thread]);
}

BulkTicket fp8emu::joinBulkGroup(Warp &warp, unsigned lane) {
  unsigned thread = warp.getThread(lane);
  BulkGroups &groups = warp.cta.bulkGroups[thread];
  BulkGroup &last = groups.groups.back();
  ++last.unread;
  ++last.unwritten;
  if (Checker *checker = warp.cta.cluster.checker.get();
      checker && !groups.agent) {
    groups.agent = checker->addAgent();
    checker->addAgent();
  }
  return {&warp.cta, thread, groups.first + groups.groups.size() - 1};
}

bool Completion::advance() {
  Cluster &cluster = place.warp->cta.cluster;
  int64_t part = left;
  if (cluster.grid.settings.order == Order::Random && left > 16)
    part = std::min<int64_t>(
        left, 16 + cluster.random(static_cast<uint32_t>(left)) / 16 * 16);
  for (const MBarrierRef &barrier : barriers)
    if (std::string wrong = completeBytes(barrier, part); !wrong.empty())
      place.fault(kLaunchFailed, wrong);
  left -= part;
  return left > 0;
}

std::vector<MBarrierRef> fp8emu::multicastBarriers(Warp &warp, const Op &op,
                                                   unsigned lane,
                                                   const MBarrierRef &barrier,
                                                   uint32_t mask) {
  std::vector<MBarrierRef> all;
  Cluster &cluster = warp.cta.cluster;
  for (uint32_t rank = 0; mask; ++rank, mask >>= 1) {
    if (!(mask & 1))
      continue;
    if (rank >= cluster.ctas.size())
      warp.fault(op, Mask{1} << lane, kLaunchFailed,
                 "expected a mask of the cluster's " +
                     std::to_string(cluster.ctas.size()) +
                     " blocks, but got one with block " + std::to_string(rank));
    MBarrierRef other{cluster.ctas[rank].get(), barrier.offset};
    if (!other.get())
      warp.fault(op, Mask{1} << lane, kLaunchFailed,
                 "expected an mbarrier in block " + std::to_string(rank) +
                     " of the cluster, but " + describe(other) +
                     " was not initialized");
    all.push_back(other);
  }
  return all;
}

Announcement fp8emu::announce(const MBarrierRef &ref) {
  const MBarrier &barrier = *ref.get();
  return {barrier.agent, static_cast<uint32_t>(barrier.phase) + 1};
}

void fp8emu::writeLater(Warp &warp, const Op &op, unsigned lane,
                        const std::vector<SharedRange> &targets,
                        const std::vector<MBarrierRef> &barriers,
                        uint32_t bytes) {
  Checker *checker = warp.cta.cluster.checker.get();
  for (size_t i = 0; i < targets.size(); ++i) {
    std::memset(targets[i].data(), 0xff, bytes);
    if (!checker)
      continue;
    checker->announceAt(warp, op, lane, barriers[i]);
    checker->accessLater(warp, op, Mask{1} << lane, *targets[i].cta,
                         targets[i].offset, bytes, kWrites | kAsyncProxy,
                         announce(barriers[i]));
  }
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

static Step commit(Warp &warp, const Op &, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    BulkGroups &groups = warp.cta.bulkGroups[warp.getThread(lane)];
    groups.groups.emplace_back();
    retire(groups);
  }
  return Step::Next;
}

/// Until at most so many of the latest groups are pending.
static Step waitGroup(Warp &warp, const Op &op, Mask mask) {
  bool readOnly = op.flags;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    const BulkGroups &groups = warp.cta.bulkGroups[warp.getThread(lane)];
    auto committed = static_cast<int64_t>(groups.groups.size()) - 1;
    for (int64_t i = 0; i < committed - op.imm; ++i) {
      const BulkGroup &group = groups.groups[static_cast<size_t>(i)];
      if (group.unread || (!readOnly && group.unwritten))
        return Step::Wait;
    }
  }
  Checker *checker = warp.cta.cluster.checker.get();
  for (Mask rest = checker ? mask : 0; rest; rest &= rest - 1) {
    unsigned lane = static_cast<unsigned>(__builtin_ctz(rest));
    const BulkGroups &groups = warp.cta.bulkGroups[warp.getThread(lane)];
    int64_t last =
        static_cast<int64_t>(groups.first + groups.groups.size()) - 1 - op.imm;
    if (!groups.agent || last <= 0)
      continue;
    auto time = static_cast<uint32_t>(last);
    checker->learn(warp, Mask{1} << lane, {groups.agent, time});
    if (!readOnly)
      checker->learn(warp, Mask{1} << lane, {groups.agent + 1, time});
  }
  return Step::Next;
}

//===----------------------------------------------------------------------===//
// Plain ranges: cp.async.bulk
//===----------------------------------------------------------------------===//

namespace {
enum class Bulk : uint32_t { Load, Store, Share };
} // namespace

/// Shared memory to global memory, `bytes` of them.
static void issueStore(Warp &warp, const Op &op, unsigned lane, uint64_t to,
                       uint64_t from, uint32_t bytes) {
  Cluster &cluster = warp.cta.cluster;
  Mask one = Mask{1} << lane;
  AsyncOp copy;
  copy.line = cluster.grid.program.getLine(op);
  SharedRange source =
      resolveShared(warp, op, one, from, bytes, 16, /*anyBlock=*/false);
  uint8_t *target = resolveGlobal(warp, op, one, to, bytes, Access::Write);
  BulkTicket ticket = joinBulkGroup(warp, lane);
  if (Checker *checker = cluster.checker.get()) {
    checker->touchGlobal(warp, op, lane, to, bytes, Access::Write);
    checker->touchUnwritten(warp, op, lane, to, bytes, Access::Write);
    checker->accessGlobalLater(warp, op, lane, to, bytes, Access::Write,
                               ticket.announcementOfWrites());
    checker->accessLater(warp, op, one, *source.cta, source.offset, bytes,
                         kAsyncProxy, ticket.announcement());
  }
  auto buffer = std::make_shared<std::vector<uint8_t>>();
  copy.advance = [=] {
    if (buffer->empty() && bytes > 0) {
      buffer->assign(source.data(), source.data() + bytes);
      ticket.readDone();
      return true;
    }
    std::memcpy(target, buffer->data(), bytes);
    ticket.writeDone();
    return false;
  };
  cluster.queue.push(std::move(copy));
}

static void issueBulk(Warp &warp, const Op &op, unsigned lane) {
  Cluster &cluster = warp.cta.cluster;
  Mask one = Mask{1} << lane;
  const uint32_t *rows = &cluster.grid.program.rows[op.rows];
  uint32_t bytes = warp.row<uint32_t>(op.s[2])[lane];
  if (bytes % 16 != 0)
    warp.fault(op, one, kMisalignedAddress,
               "expected a multiple of 16 bytes, but got " +
                   std::to_string(bytes));
  uint64_t to = getAddress(warp, rows, lane);
  uint64_t from = getAddress(warp, rows + 3, lane);
  auto kind = static_cast<Bulk>(op.flags >> 8);
  for (uint64_t address : {to, from})
    if (address % 16 != 0)
      warp.fault(op, one, kMisalignedAddress,
                 "expected addresses that are multiples of 16, but got " +
                     toHex(address));
  if (kind == Bulk::Store)
    return issueStore(warp, op, lane, to, from, bytes);
  IssuePlace place(warp, op, lane);
  AsyncOp copy;
  copy.line = cluster.grid.program.getLine(op);
  MBarrierRef barrier =
      findMBarrier(warp, op, lane, op.s[3], Place::SharedCluster);
  std::vector<SharedRange> targets = {
      resolveShared(warp, op, one, to, bytes, 16, /*anyBlock=*/true)};
  const uint8_t *source;
  if (kind == Bulk::Share) {
    SharedRange range = resolveShared(warp, op, one, from, bytes, 16, false);
    source = range.data();
    if (Checker *checker = cluster.checker.get())
      checker->accessLater(warp, op, one, *range.cta, range.offset, bytes,
                           kAsyncProxy, announce(barrier));
  } else {
    source = resolveGlobal(warp, op, one, from, bytes, Access::Read);
    if (Checker *checker = cluster.checker.get()) {
      checker->touchGlobal(warp, op, lane, from, bytes, Access::Read);
      checker->touchUnwritten(warp, op, lane, from, bytes, Access::Read);
      checker->accessGlobalLater(warp, op, lane, from, bytes, Access::Read,
                                 announce(barrier));
    }
  }
  std::vector<MBarrierRef> barriers = {barrier};
  if (op.count) { // multicast
    uint32_t mask = warp.row<uint16_t>(op.d)[lane];
    uint32_t offset = targets[0].offset;
    barriers = multicastBarriers(warp, op, lane, barrier, mask);
    targets.clear();
    for (const MBarrierRef &each : barriers)
      targets.push_back({each.cta, offset});
  }
  writeLater(warp, op, lane, targets, barriers, bytes);
  auto completion = std::make_shared<Completion>(place, barriers, bytes);
  auto copied = std::make_shared<bool>(false);
  copy.advance = [=] {
    if (*copied)
      return completion->advance();
    for (const SharedRange &target : targets)
      std::memcpy(target.data(), source, bytes);
    *copied = true;
    return bytes > 0;
  };
  cluster.queue.push(std::move(copy));
}

static Step copyBulk(Warp &warp, const Op &op, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1)
    issueBulk(warp, op, static_cast<unsigned>(__builtin_ctz(rest)));
  return Step::Next;
}

static void decodeBulk(Decoder &decoder, Modifiers &modifiers, Op &op) {
  bool fromGlobal =
      modifiers.has("mbarrier::complete_tx::bytes") && modifiers.take("global");
  bool toGlobal = !fromGlobal && modifiers.take("global");
  modifiers.takeOneOf({"shared::cluster", "shared::cta"});
  Bulk kind = toGlobal ? Bulk::Store : fromGlobal ? Bulk::Load : Bulk::Share;
  if (kind == Bulk::Share && !modifiers.take("shared::cta"))
    decoder.fail("expected a source");
  bool multicast = modifiers.take("multicast::cluster");
  bool hint = modifiers.take("L2::cache_hint");
  if (!modifiers.take(kind == Bulk::Store ? "bulk_group"
                                          : "mbarrier::complete_tx::bytes"))
    decoder.fail("expected a completion mechanism");
  size_t count = kind == Bulk::Store ? 3 : 4;
  decoder.expectOperands(count + multicast + hint);
  std::vector<uint32_t> rows;
  decoder.addAddress(rows, decoder.operand(0));
  decoder.addAddress(rows, decoder.operand(1));
  op.rows = decoder.addRows(rows);
  op.s[2] = decoder.sourceBits(decoder.operand(2), 32);
  op.flags = static_cast<uint32_t>(kind) << 8;
  if (kind != Bulk::Store) {
    Decoder::Address barrier = decoder.address(decoder.operand(3));
    op.s[3] = barrier.row;
    op.imm = barrier.offset;
    op.flags |= barrier.wide ? kWideAddress : 0;
  }
  op.count = multicast;
  if (multicast)
    op.d = decoder.sourceBits(decoder.operand(count), 16);
  op.handler = copyBulk;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static void decodeCopy(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (!modifiers.take("async"))
    decoder.fail("expected .async");
  if (!modifiers.take("bulk"))
    return decodePlainCopy(decoder, modifiers, op);
  if (modifiers.take("commit_group")) {
    decoder.expectOperands(0);
    op.handler = commit;
    return;
  }
  if (modifiers.take("wait_group")) {
    op.flags = modifiers.take("read");
    decoder.expectOperands(1);
    op.imm = decoder.immediate(decoder.operand(0));
    op.handler = waitGroup;
    return;
  }
  if (modifiers.take("tensor"))
    return decodeTensorCopy(decoder, modifiers, op);
  decodeBulk(decoder, modifiers, op);
}

void fp8emu::addAsyncCopies(DecodeTable &table) { table["cp"] = decodeCopy; }

//===- ClusterControl.cpp - Blocks that take others' place ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "clusterlaunchcontrol". An answer's 16 bytes are a chip's secret;
// here they are a mark, and where the first block of the cluster is.
//
//===----------------------------------------------------------------------===//

#include "BulkCopies.h"

using namespace fp8emu;

static constexpr uint32_t kTaken = 0x7a4e11ed, kRefused = 0x4ef05ed0;
static constexpr uint32_t kAnswerBytes = 16;

static void tryCancel(Warp &warp, const Op &op, unsigned lane) {
  Cluster &cluster = warp.cta.cluster;
  Mask one = Mask{1} << lane;
  const uint32_t *rows = &cluster.grid.program.rows[op.rows];
  uint64_t at = getAddress(warp, rows, lane);
  std::vector<SharedRange> targets = {
      resolveShared(warp, op, one, at, kAnswerBytes, kAnswerBytes, false)};
  std::vector<MBarrierRef> barriers = {
      findMBarrier(warp, op, lane, op.s[0], Place::Shared)};
  if (cluster.refused)
    warp.fault(op, one, kLaunchFailed,
               "expected no try_cancel after one that was refused");
  if (op.count) {
    uint32_t mask = (1u << cluster.ctas.size()) - 1;
    uint32_t offset = targets[0].offset;
    barriers = multicastBarriers(warp, op, lane, barriers[0], mask);
    targets.clear();
    for (const MBarrierRef &each : barriers)
      targets.push_back({each.cta, offset});
  }
  Dim3 first;
  bool taken = cluster.grid.takeCluster(cluster, first);
  cluster.refused = !taken;
  writeLater(warp, op, lane, targets, barriers, kAnswerBytes);
  AsyncOp work;
  work.line = cluster.grid.program.getLine(op);
  auto completion = std::make_shared<Completion>(IssuePlace(warp, op, lane),
                                                 barriers, kAnswerBytes);
  work.advance = [=, done = false]() mutable {
    if (done)
      return completion->advance();
    uint32_t answer[4] = {taken ? kTaken : kRefused, first.x, first.y, first.z};
    for (const SharedRange &target : targets)
      std::memcpy(target.data(), answer, kAnswerBytes);
    done = true;
    return true;
  };
  cluster.queue.push(std::move(work));
}

static Step tryCancelLanes(Warp &warp, const Op &op, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1)
    tryCancel(warp, op, static_cast<unsigned>(__builtin_ctz(rest)));
  return Step::Next;
}

/// The words of a lane's answer.
static std::vector<uint32_t> getAnswer(Warp &warp, const Op &op,
                                       unsigned lane) {
  std::vector<uint32_t> words(4);
  std::memcpy(words.data(), warp.row<unsigned __int128>(op.s[0]) + lane,
              kAnswerBytes);
  if (words[0] != kTaken && words[0] != kRefused)
    warp.fault(op, Mask{1} << lane, kLaunchFailed,
               "expected the answer of a try_cancel that was waited for, but "
               "got other bytes");
  return words;
}

static Step isCanceled(Warp &warp, const Op &op, Mask mask) {
  Mask &result = warp.predicate(op.d);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    Mask one = Mask{1} << lane;
    bool taken = getAnswer(warp, op, lane)[0] == kTaken;
    result = taken ? result | one : result & ~one;
  }
  return Step::Next;
}

/// op.imm: the first of the block's three numbers that is asked for.
static Step getFirstBlock(Warp &warp, const Op &op, Mask mask) {
  const uint32_t *rows = &warp.cta.cluster.grid.program.rows[op.rows];
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    std::vector<uint32_t> answer = getAnswer(warp, op, lane);
    if (answer[0] != kTaken)
      warp.fault(op, Mask{1} << lane, kLaunchFailed,
                 "expected the answer of a try_cancel that was not refused");
    for (unsigned i = 0; i < op.count && i < 3; ++i)
      warp.row<uint32_t>(rows[i])[lane] =
          answer[1 + static_cast<unsigned>(op.imm) + i];
  }
  return Step::Next;
}

static void decodeClusterControl(Decoder &decoder, Modifiers &modifiers,
                                 Op &op) {
  if (modifiers.take("try_cancel")) {
    if (!modifiers.take("async") ||
        !modifiers.take("mbarrier::complete_tx::bytes"))
      decoder.fail("expected .async and a completion mechanism");
    modifiers.take("shared::cta");
    op.count = modifiers.take("multicast::cluster::all");
    modifiers.take("b128");
    decoder.expectOperands(2);
    std::vector<uint32_t> rows;
    decoder.addAddress(rows, decoder.operand(0));
    op.rows = decoder.addRows(rows);
    Decoder::Address barrier = decoder.address(decoder.operand(1));
    op.s[0] = barrier.row;
    op.imm = barrier.offset;
    op.flags |= barrier.wide ? kWideAddress : 0;
    op.handler = tryCancelLanes;
    return;
  }
  if (!modifiers.take("query_cancel"))
    decoder.fail("expected an operation");
  auto what = modifiers.takeOneOf({"is_canceled", "get_first_ctaid",
                                   "get_first_ctaid::x", "get_first_ctaid::y",
                                   "get_first_ctaid::z"});
  if (!what)
    decoder.fail("expected a question");
  modifiers.takeOneOf({"pred", "v4"});
  modifiers.take("b32");
  modifiers.take("b128");
  decoder.expectOperands(2);
  op.s[0] = decoder.sourceBits(decoder.operand(1), 128);
  if (*what == 0) {
    op.d = decoder.destination(decoder.operand(0), 1);
    op.handler = isCanceled;
    return;
  }
  std::vector<uint32_t> rows;
  for (const Operand *element : decoder.elements(decoder.operand(0)))
    rows.push_back(decoder.destination(*element, 32));
  if (rows.size() != (*what == 1 ? 4 : 1))
    decoder.fail("expected as many results as the question has");
  op.rows = decoder.addRows(rows);
  op.count = static_cast<uint16_t>(rows.size());
  op.imm = *what == 1 ? 0 : *what - 2;
  op.handler = getFirstBlock;
}

void fp8emu::addClusterControl(DecodeTable &table) {
  table["clusterlaunchcontrol"] = decodeClusterControl;
}

//===- Tcgen05.cpp - Order of tensor instructions, and their decoding -----===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "TensorCore 5th Generation Family Instructions". What a thread
// issues takes place late, one after the other; tcgen05.commit is one more of
// these, and arrives when all before it are done.
//
//===----------------------------------------------------------------------===//

#include "TensorMemory.h"

using namespace fp8emu;

TensorIssue fp8emu::getTensorIssue(Warp &warp, unsigned lane) {
  WarpTensorState::Issuer &issuer = warp.tensor.issuers[lane];
  if (Checker *checker = warp.cta.cluster.checker.get();
      checker && !issuer.agent) {
    issuer.agent = checker->addAgent();
    checker->addAgent();
  }
  // Beyond the streams of warps.
  uint64_t stream = (uint64_t{1} << 32) + uint64_t{warp.agent} * kLanes + lane;
  return {stream, {issuer.agent, issuer.issued}};
}

TensorIssue fp8emu::issueTensorWork(Warp &warp, unsigned lane) {
  ++warp.tensor.issuers[lane].issued;
  return getTensorIssue(warp, lane);
}

//===----------------------------------------------------------------------===//
// Commits
//===----------------------------------------------------------------------===//

/// Op::flags besides those of addresses.
enum : uint32_t { kMulticast = 1 << 8 };

static void commit(Warp &warp, const Op &op, unsigned lane) {
  Cluster &cluster = warp.cta.cluster;
  auto place = static_cast<Place>(op.flags & kPlaceMask);
  MBarrierRef barrier = findMBarrier(warp, op, lane, op.s[0], place);
  std::vector<MBarrierRef> barriers = {barrier};
  if (op.flags & kMulticast) {
    barriers.clear();
    uint32_t mask = warp.row<uint16_t>(op.s[1])[lane];
    for (uint32_t rank = 0; mask; ++rank, mask >>= 1) {
      if (!(mask & 1))
        continue;
      if (rank >= cluster.ctas.size())
        warp.fault(op, Mask{1} << lane, kLaunchFailed,
                   "expected a mask of the cluster's " +
                       std::to_string(cluster.ctas.size()) +
                       " blocks, but got one with block " +
                       std::to_string(rank));
      barriers.push_back({cluster.ctas[rank].get(), barrier.offset});
    }
  }
  getTensorBlocks(warp, op, Mask{1} << lane, op.count);
  TensorIssue issue = getTensorIssue(warp, lane);
  auto known = std::make_shared<View>();
  if (Checker *checker = cluster.checker.get()) {
    checker->publishTensor(warp, lane, issue.done, *known);
    for (const MBarrierRef &each : barriers)
      if (each.get())
        checker->announceAt(warp, op, lane, each);
  }
  AsyncOp work;
  work.stream = issue.stream;
  work.line = cluster.grid.program.getLine(op);
  work.advance = [&warp, &op, lane, barriers, known] {
    for (const MBarrierRef &each : barriers)
      arriveLater(warp, op, lane, each, *known);
    return false;
  };
  cluster.queue.push(std::move(work));
}

static Step commitLanes(Warp &warp, const Op &op, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1)
    commit(warp, op, static_cast<unsigned>(__builtin_ctz(rest)));
  return Step::Next;
}

static void decodeCommit(Decoder &decoder, Modifiers &modifiers, Op &op) {
  op.count = static_cast<uint16_t>(takeGroup(decoder, modifiers));
  if (!modifiers.take("mbarrier::arrive::one"))
    decoder.fail("expected .mbarrier::arrive::one");
  op.flags = static_cast<uint32_t>(takePlace(modifiers));
  bool multicast = modifiers.take("multicast::cluster");
  if (!modifiers.take("b64"))
    decoder.fail("expected .b64");
  decoder.expectOperands(1 + multicast);
  Decoder::Address address = decoder.address(decoder.operand(0));
  op.s[0] = address.row;
  op.imm = address.offset;
  op.flags |= address.wide ? kWideAddress : 0;
  if (multicast) {
    op.flags |= kMulticast;
    op.s[1] = decoder.sourceBits(decoder.operand(1), 16);
  }
  op.handler = commitLanes;
}

//===----------------------------------------------------------------------===//
// Fences
//===----------------------------------------------------------------------===//

static Step fenceBefore(Warp &warp, const Op &, Mask mask) {
  if (Checker *checker = warp.cta.cluster.checker.get())
    checker->fenceTensorBefore(warp, mask);
  return Step::Next;
}

static Step fenceAfter(Warp &warp, const Op &, Mask mask) {
  if (Checker *checker = warp.cta.cluster.checker.get())
    checker->fenceTensorAfter(warp, mask);
  return Step::Next;
}

//===----------------------------------------------------------------------===//
// Decoding
//===----------------------------------------------------------------------===//

static void decodeTcgen05(Decoder &decoder, Modifiers &modifiers, Op &op) {
  decoder.expectTarget(100, "af");
  if (modifiers.empty())
    decoder.fail("expected an operation");
  std::string_view what = modifiers.takeNext();
  if (what == "alloc" || what == "dealloc" || what == "relinquish_alloc_permit")
    return decodeAllocation(decoder, modifiers, op, what);
  if (what == "ld" || what == "st")
    return decodeTensorLoad(decoder, modifiers, op, what == "ld");
  if (what == "wait::ld" || what == "wait::st")
    return decodeTensorWait(decoder, modifiers, op, what == "wait::ld");
  if (what == "cp")
    return decodeTensorFill(decoder, modifiers, op);
  if (what == "mma")
    return decodeTensorProduct(decoder, modifiers, op);
  if (what == "commit")
    return decodeCommit(decoder, modifiers, op);
  if (what == "fence::before_thread_sync" ||
      what == "fence::after_thread_sync") {
    decoder.expectOperands(0);
    op.handler = what == "fence::before_thread_sync" ? fenceBefore : fenceAfter;
    return;
  }
  if (what == "shift")
    decoder.fail("expected no tcgen05.shift, which is not modelled");
  decoder.fail("unknown operation '" + std::string(what) + "'");
}

void fp8emu::addTcgen05(DecodeTable &table) {
  table["tcgen05"] = decodeTcgen05;
}

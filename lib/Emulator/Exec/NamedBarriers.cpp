//===- NamedBarriers.cpp - bar, barrier.cluster, fences, setmaxnreg -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Check/Checker.h"

using namespace fp8emu;

//===----------------------------------------------------------------------===//
// Barriers of a block
//===----------------------------------------------------------------------===//

/// Op::flags.
enum : uint32_t { kHasCount = 1, kArriveOnly = 2 };

static uint32_t getExpected(const Cta &cta, const NamedBarrier &barrier) {
  // Without a number, all threads of the block that have not ended.
  return barrier.expected ? barrier.expected : cta.liveWarps * kLanes;
}

static bool completeIfFull(Cta &cta, NamedBarrier &barrier) {
  if (barrier.arrived == 0 || barrier.arrived < getExpected(cta, barrier))
    return false;
  barrier.arrived = 0;
  barrier.expected = 0;
  if (Checker *checker = cta.cluster.checker.get()) {
    for (auto [index, phase] : barrier.waiting)
      if (phase == barrier.phase)
        checker->acquire(*cta.warps[index], cta.warps[index]->live,
                         barrier.gathering);
    barrier.gathering = {};
  }
  ++barrier.phase;
  cta.cluster.notify();
  return true;
}

static void arrive(Warp &warp, const Op &op, Mask mask, NamedBarrier &barrier,
                   uint32_t id) {
  Cta &cta = warp.cta;
  uint32_t expected = 0;
  if (op.flags & kHasCount) {
    expected =
        getUniform<uint32_t>(warp, op, mask, op.s[1], "the number of threads");
    if (expected == 0 || expected % kLanes != 0 ||
        expected > cta.warps.size() * kLanes)
      warp.fault(op, mask, kLaunchFailed,
                 "expected a number of threads that is a multiple of 32 and at "
                 "most that of the block, but got " +
                     std::to_string(expected));
  }
  if (barrier.arrived > 0 && barrier.expected != expected)
    warp.fault(op, mask, kLaunchFailed,
               "expected " +
                   (barrier.expected ? std::to_string(barrier.expected)
                                     : std::string("all")) +
                   " threads at barrier " + std::to_string(id) + ", as line " +
                   std::to_string(barrier.lastLine) + " says, but got " +
                   (expected ? std::to_string(expected) : std::string("all")));
  barrier.expected = expected;
  barrier.lastLine = cta.cluster.grid.program.getLine(op);
  barrier.arrived += kLanes;
}

static Step barrier(Warp &warp, const Op &op, Mask mask) {
  Cta &cta = warp.cta;
  auto id =
      getUniform<uint32_t>(warp, op, mask, op.s[0], "the barrier's number");
  if (id >= std::size(cta.barriers))
    warp.fault(op, mask, kLaunchFailed,
               "expected a barrier from 0 to 15, but got " +
                   std::to_string(id));
  NamedBarrier &barrier = cta.barriers[id];
  auto waiting = barrier.waiting.find(warp.index);
  if (waiting == barrier.waiting.end()) {
    arrive(warp, op, mask, barrier, id);
    uint64_t phase = barrier.phase;
    if (Checker *checker = cta.cluster.checker.get())
      checker->release(warp, mask, barrier.gathering);
    if (!(op.flags & kArriveOnly))
      barrier.waiting[warp.index] = phase;
    completeIfFull(cta, barrier);
    if (!(op.flags & kArriveOnly) && barrier.phase == phase)
      return Step::Wait;
    barrier.waiting.erase(warp.index);
    return Step::Next;
  }
  completeIfFull(cta, barrier);
  if (barrier.phase == waiting->second)
    return Step::Wait;
  barrier.waiting.erase(waiting);
  return Step::Next;
}

static Step syncWarp(Warp &warp, const Op &op, Mask mask) {
  auto members =
      getUniform<uint32_t>(warp, op, mask, op.s[0], "the member mask");
  if (!warp.hasAll(members, mask))
    return Step::Wait;
  if (Checker *checker = warp.cta.cluster.checker.get())
    checker->synchronize(warp, mask & members);
  return Step::Next;
}

//===----------------------------------------------------------------------===//
// Barriers of a cluster
//===----------------------------------------------------------------------===//

static void completeIfFull(Cluster &cluster) {
  if (cluster.barrier.arrived == 0 ||
      cluster.barrier.arrived < cluster.liveLanes)
    return;
  cluster.barrier.arrived = 0;
  cluster.barrier.released = std::move(cluster.barrier.gathering);
  cluster.barrier.gathering = {};
  ++cluster.barrier.phase;
  cluster.notify();
}

static Step arriveCluster(Warp &warp, const Op &op, Mask mask) {
  Cluster &cluster = warp.cta.cluster;
  if (warp.clusterArrival.lanes & mask)
    warp.fault(
        op, warp.clusterArrival.lanes & mask, kLaunchFailed,
        "expected a barrier.cluster.wait since the last arrival, but got "
        "none");
  warp.clusterArrival.lanes |= mask;
  warp.clusterArrival.phase = cluster.barrier.phase;
  cluster.barrier.arrived += static_cast<uint32_t>(__builtin_popcount(mask));
  if (Checker *checker = cluster.checker.get()) {
    if (op.flags & kRelaxed)
      checker->releaseFenced(warp, mask, cluster.barrier.gathering);
    else
      checker->release(warp, mask, cluster.barrier.gathering);
  }
  completeIfFull(cluster);
  return Step::Next;
}

static Step waitCluster(Warp &warp, const Op &op, Mask mask) {
  Cluster &cluster = warp.cta.cluster;
  if (mask & ~warp.clusterArrival.lanes)
    warp.fault(
        op, mask & ~warp.clusterArrival.lanes, kLaunchFailed,
        "expected a barrier.cluster.arrive before the wait, but got none");
  completeIfFull(cluster);
  if (cluster.barrier.phase == warp.clusterArrival.phase)
    return Step::Wait;
  warp.clusterArrival.lanes &= ~mask;
  if (Checker *checker = cluster.checker.get())
    checker->acquire(warp, mask, cluster.barrier.released);
  return Step::Next;
}

static void decodeClusterBarrier(Decoder &decoder, Modifiers &modifiers,
                                 Op &op) {
  auto what = modifiers.takeOneOf({"arrive", "wait"});
  if (!what)
    decoder.fail("expected .arrive or .wait");
  op.aligned = modifiers.take("aligned");
  modifiers.takeOneOf({"release", "acquire"});
  if (modifiers.take("relaxed"))
    op.flags = kRelaxed;
  decoder.expectOperands(0);
  op.handler = *what == 0 ? arriveCluster : waitCluster;
}

/// Lanes of a warp that come one after the other to one without .aligned are
/// waited for, too: the barrier counts warps.
static void decodeBarrier(Decoder &decoder, Modifiers &modifiers, Op &op) {
  if (modifiers.take("warp")) {
    if (!modifiers.take("sync"))
      decoder.fail("expected .sync");
    decoder.expectOperands(1);
    op.s[0] = decoder.sourceBits(decoder.operand(0), 32);
    op.handler = syncWarp;
    return;
  }
  if (modifiers.take("cluster"))
    return decodeClusterBarrier(decoder, modifiers, op);
  modifiers.take("cta");
  auto what = modifiers.takeOneOf({"sync", "arrive"});
  if (!what)
    decoder.fail("expected .sync or .arrive");
  modifiers.take("aligned");
  op.aligned = true;
  if (decoder.numOperands() != 2)
    decoder.expectOperands(*what == 1 ? 2 : 1);
  op.s[0] = decoder.sourceBits(decoder.operand(0), 32);
  if (decoder.numOperands() == 2) {
    op.s[1] = decoder.sourceBits(decoder.operand(1), 32);
    op.flags |= kHasCount;
  }
  op.flags |= *what == 1 ? kArriveOnly : 0;
  op.handler = barrier;
}

//===----------------------------------------------------------------------===//
// Fences, grids, registers
//===----------------------------------------------------------------------===//

static Step nothing(Warp &, const Op &, Mask) { return Step::Next; }

static Step fence(Warp &warp, const Op &, Mask mask) {
  if (Checker *checker = warp.cta.cluster.checker.get())
    checker->fence(warp, mask);
  return Step::Next;
}

static Step fenceProxy(Warp &warp, const Op &, Mask mask) {
  if (Checker *checker = warp.cta.cluster.checker.get())
    checker->fenceProxy(warp, mask);
  return Step::Next;
}

/// Shows barriers that were initialized to the cluster and to copies.
static Step fenceInit(Warp &warp, const Op &, Mask mask) {
  Checker *checker = warp.cta.cluster.checker.get();
  if (!checker)
    return Step::Next;
  for (auto &[offset, barrier] : warp.cta.mbarriers)
    if (barrier.initAgent / kLanes == warp.agent &&
        (mask >> barrier.initAgent % kLanes & 1))
      barrier.initShown = true;
  checker->fence(warp, mask);
  return Step::Next;
}

static void decodeFence(Decoder &decoder, Modifiers &modifiers, Op &op) {
  decoder.expectOperands(0);
  op.handler = fence;
  if (modifiers.take("mbarrier_init")) {
    op.handler = fenceInit;
    modifiers.take("release");
    modifiers.take("cluster");
    return;
  }
  if (modifiers.take("proxy")) {
    bool async = modifiers.take("async");
    op.handler = async ? fenceProxy : nothing;
    if (!async)
      modifiers.takeOneOf({"alias", "async::generic"});
    modifiers.takeOneOf({"global", "shared::cta", "shared::cluster"});
    modifiers.takeOneOf({"acquire", "release"});
    modifiers.take("sync_restrict::shared::cta");
    modifiers.take("sync_restrict::shared::cluster");
    modifiers.take("cluster");
    return;
  }
  modifiers.takeOneOf({"acq_rel", "sc", "acquire", "release"});
  modifiers.takeOneOf({"cta", "cluster", "gpu", "sys"});
}

static void decodeMembar(Decoder &decoder, Modifiers &modifiers, Op &op) {
  decoder.expectOperands(0);
  if (!modifiers.takeOneOf({"cta", "gl", "sys"}))
    decoder.fail("expected a level");
  op.handler = fence;
}

/// Grids of a stream run one after the other: only the checker cares.
static Step launchDependents(Warp &warp, const Op &, Mask mask) {
  if (Checker *checker = warp.cta.cluster.checker.get())
    checker->launchDependents(warp, mask);
  return Step::Next;
}

static Step waitForLaunches(Warp &warp, const Op &, Mask mask) {
  if (Checker *checker = warp.cta.cluster.checker.get())
    checker->waitForLaunches(warp, mask);
  return Step::Next;
}

static void decodeGridControl(Decoder &decoder, Modifiers &modifiers, Op &op) {
  decoder.expectOperands(0);
  auto what = modifiers.takeOneOf({"launch_dependents", "wait"});
  if (!what)
    decoder.fail("expected .launch_dependents or .wait");
  op.handler = *what == 0 ? launchDependents : waitForLaunches;
}

static Step setRegisters(Warp &warp, const Op &op, Mask mask) {
  Cta &cta = warp.cta;
  uint32_t &registers = cta.warpRegisters[warp.index];
  auto wanted = static_cast<uint32_t>(op.imm);
  bool more = op.flags;
  // With threads to spare for 255 each, how many a kernel has is known to ptxas
  // alone.
  bool known = cta.cluster.grid.program.registersPerThread || registers < 255;
  if (known && (more ? wanted < registers : wanted > registers))
    warp.fault(op, mask, kLaunchFailed,
               "expected " + std::string(more ? "at least" : "at most") +
                   " the registers that the warp has, " +
                   std::to_string(registers) + ", but got " +
                   std::to_string(wanted));
  int64_t delta = (int64_t{wanted} - registers) * kLanes;
  if (delta > cta.registerPool)
    return Step::Wait;
  cta.registerPool -= delta;
  registers = wanted;
  cta.cluster.notify();
  return Step::Next;
}

static void decodeSetMaxRegisters(Decoder &decoder, Modifiers &modifiers,
                                  Op &op) {
  auto what = modifiers.takeOneOf({"dec", "inc"});
  modifiers.take("sync");
  modifiers.take("u32");
  if (!what || !modifiers.take("aligned"))
    decoder.fail("expected .inc or .dec, and .aligned");
  decoder.expectOperands(1);
  op.imm = decoder.immediate(decoder.operand(0));
  if (op.imm < 24 || op.imm > 256 || op.imm % 8 != 0)
    decoder.fail("expected a multiple of 8 from 24 to 256, but got " +
                 std::to_string(op.imm));
  op.flags = *what;
  op.aligned = true;
  op.handler = setRegisters;
}

void fp8emu::addBarriers(DecodeTable &table) {
  table["bar"] = decodeBarrier;
  table["barrier"] = decodeBarrier;
  table["fence"] = decodeFence;
  table["membar"] = decodeMembar;
  table["griddepcontrol"] = decodeGridControl;
  table["setmaxnreg"] = decodeSetMaxRegisters;
}

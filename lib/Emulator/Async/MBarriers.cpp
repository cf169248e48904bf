//===- MBarriers.cpp - Barriers in shared memory --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
//
//===----------------------------------------------------------------------===//

#include "MBarriers.h"

#include "Check/Checker.h"

#include <utility>

using namespace fp8emu;

std::string fp8emu::describe(const MBarrierRef &barrier) {
  const Program &program = barrier.cta->cluster.grid.program;
  std::string_view name;
  uint32_t begin = 0;
  for (auto [offset, candidate] : program.sharedNames)
    if (offset <= barrier.offset && offset >= begin) {
      begin = offset;
      name = candidate;
    }
  return "mbarrier [" + std::string(name) + "+" +
         std::to_string(barrier.offset - begin) + "]";
}

static void endPhaseIfComplete(const MBarrierRef &ref, MBarrier &barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0)
    return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  if (barrier.agent) {
    join(barrier.released, barrier.gathering);
    raise(barrier.released.known, barrier.agent,
          static_cast<uint32_t>(barrier.phase));
  }
  ref.cta->cluster.notify();
}

std::string fp8emu::completeBytes(const MBarrierRef &ref, int64_t bytes) {
  MBarrier *barrier = ref.get();
  if (!barrier)
    return "expected " + describe(ref) + ", but it is no more";
  barrier->bytes -= bytes;
  if (barrier->bytes < -kMaxCount)
    return describe(ref) + " got " + std::to_string(-barrier->bytes) +
           " bytes more than it expects";
  endPhaseIfComplete(ref, *barrier);
  return "";
}

static uint64_t getSharedAddress(Warp &warp, const Op &op, unsigned lane,
                                 uint32_t row, Place place) {
  uint64_t address = getAddress(warp, op, lane, row);
  if (place != Place::Generic)
    return address;
  if (address >> 56 != kSharedWindow >> 56)
    warp.fault(op, Mask{1} << lane, kInvalidAddressSpace,
               "expected an address in shared memory, but got " +
                   toHex(address));
  return address - kSharedWindow;
}

MBarrierRef fp8emu::findMBarrier(Warp &warp, const Op &op, unsigned lane,
                                 uint32_t row, Place place) {
  Mask one = Mask{1} << lane;
  SharedRange range =
      resolveShared(warp, op, one, getSharedAddress(warp, op, lane, row, place),
                    8, 8, place != Place::Shared);
  MBarrierRef ref{range.cta, range.offset};
  if (!ref.get())
    warp.fault(op, one, kLaunchFailed,
               "expected an mbarrier, but " + describe(ref) +
                   " was not initialized");
  return ref;
}

static Place getPlace(const Op &op) {
  return static_cast<Place>(op.flags & kPlaceMask);
}

//===----------------------------------------------------------------------===//
// Initialization
//===----------------------------------------------------------------------===//

static Step init(Warp &warp, const Op &op, Mask mask) {
  const auto *counts = warp.row<uint32_t>(op.s[1]);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    Mask one = Mask{1} << lane;
    SharedRange range = resolveShared(
        warp, op, one, getSharedAddress(warp, op, lane, op.s[0], getPlace(op)),
        8, 8,
        /*anyBlock=*/false);
    if (counts[lane] == 0 || counts[lane] > kMaxCount)
      warp.fault(op, one, kLaunchFailed,
                 "expected a count from 1 to 2^20-1, but got " +
                     std::to_string(counts[lane]));
    MBarrier barrier;
    barrier.expected = counts[lane];
    barrier.pending = counts[lane];
    if (Checker *checker = warp.cta.cluster.checker.get()) {
      barrier.agent = checker->addAgent();
      barrier.initAgent = warp.agent * kLanes + lane;
      barrier.initTime = warp.view.time;
      barrier.initOp = checker->getIndex(op);
      checker->accessBarrier(warp, op, one, {&warp.cta, range.offset},
                             /*writes=*/true);
    }
    auto [it, isNew] = warp.cta.mbarriers.try_emplace(range.offset, barrier);
    if (!isNew)
      warp.fault(op, one, kLaunchFailed,
                 describe({&warp.cta, range.offset}) +
                     " is initialized already, without mbarrier.inval");
  }
  return Step::Next;
}

static Step invalidate(Warp &warp, const Op &op, Mask mask) {
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    MBarrierRef ref = findMBarrier(warp, op, lane, op.s[0], getPlace(op));
    if (Checker *checker = warp.cta.cluster.checker.get())
      checker->accessBarrier(warp, op, Mask{1} << lane, ref, /*writes=*/true);
    ref.cta->mbarriers.erase(ref.offset);
  }
  return Step::Next;
}

//===----------------------------------------------------------------------===//
// Arrivals
//===----------------------------------------------------------------------===//

/// Op::count: what an arrival does.
enum : uint16_t { kArrive = 1, kExpect = 2, kComplete = 4, kHasState = 8 };

std::string fp8emu::describeLastArrival(const MBarrier &barrier) {
  if (barrier.lastLine == 0)
    return "";
  return "; the last was that of thread " + std::to_string(barrier.lastThread) +
         " of block " + std::to_string(barrier.lastRank) +
         " of the cluster, line " + std::to_string(barrier.lastLine);
}

static void arrive(Warp &warp, const Op &op, unsigned lane,
                   const MBarrierRef &ref, uint32_t count) {
  MBarrier &barrier = *ref.get();
  if (count == 0 || count > barrier.pending)
    warp.fault(op, Mask{1} << lane, kLaunchFailed,
               "expected at most " + std::to_string(barrier.pending) +
                   " more arrivals at " + describe(ref) + " in phase " +
                   std::to_string(barrier.phase) + ", but got " +
                   std::to_string(count) + describeLastArrival(barrier));
  barrier.pending -= count;
  barrier.lastRank = warp.cta.rank;
  barrier.lastThread = warp.getThread(lane);
  barrier.lastLine = warp.cta.cluster.grid.program.getLine(op);
}

void fp8emu::arriveLater(Warp &warp, const Op &op, unsigned lane,
                         const MBarrierRef &ref, const View &known) {
  MBarrier *barrier = ref.get();
  if (!barrier || ref.cta->liveWarps == 0)
    warp.fault(op, Mask{1} << lane, kLaunchFailed,
               "expected " + describe(ref) + " in block " +
                   std::to_string(ref.cta->rank) + " of the cluster, but " +
                   (barrier ? "the block has ended" : "there is none"));
  join(barrier->gathering, known);
  arrive(warp, op, lane, ref, 1);
  endPhaseIfComplete(ref, *barrier);
}

static void expect(Warp &warp, const Op &op, unsigned lane,
                   const MBarrierRef &ref, uint32_t bytes) {
  MBarrier &barrier = *ref.get();
  barrier.bytes += bytes;
  if (bytes > kMaxCount || barrier.bytes > kMaxCount)
    warp.fault(op, Mask{1} << lane, kLaunchFailed,
               "expected at most 2^20-1 bytes of transactions at " +
                   describe(ref) + ", but got " +
                   std::to_string(barrier.bytes));
}

static Step arriveOrExpect(Warp &warp, const Op &op, Mask mask) {
  const auto *numbers = warp.row<uint32_t>(op.s[1]);
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    MBarrierRef ref = findMBarrier(warp, op, lane, op.s[0], getPlace(op));
    MBarrier &barrier = *ref.get();
    if (Checker *checker = warp.cta.cluster.checker.get()) {
      Mask one = Mask{1} << lane;
      checker->accessBarrier(warp, op, one, ref, /*writes=*/false);
      if (!(op.count & kArrive) || (op.flags & kRelaxed))
        checker->releaseFenced(warp, one, barrier.gathering);
      else
        checker->release(warp, one, barrier.gathering);
    }
    if (op.count & kHasState)
      warp.row<uint64_t>(op.d)[lane] = barrier.phase;
    if (op.count & kExpect)
      expect(warp, op, lane, ref, numbers[lane]);
    if (op.count & kArrive)
      arrive(warp, op, lane, ref, op.count & kExpect ? 1 : numbers[lane]);
    if (op.count & kComplete)
      barrier.bytes -= numbers[lane];
    endPhaseIfComplete(ref, barrier);
  }
  return Step::Next;
}

static void takeScope(Modifiers &modifiers, Op &op) {
  if (modifiers.take("relaxed"))
    op.flags |= kRelaxed;
  modifiers.takeOneOf({"release", "acquire"});
  modifiers.takeOneOf({"cta", "cluster"});
}

static void decodeAddress(Decoder &decoder, Op &op, const Operand &operand) {
  Decoder::Address address = decoder.address(operand);
  op.s[0] = address.row;
  op.imm = address.offset;
  op.flags |= address.wide ? kWideAddress : 0;
}

static void decodeArrive(Decoder &decoder, Modifiers &modifiers, Op &op) {
  bool expects = modifiers.take("expect_tx");
  size_t next = 0;
  op.count = kArrive | (expects ? kExpect : 0);
  if (decoder.operand(0).kind != Operand::Memory) {
    if (decoder.operand(0).kind != Operand::Sink) {
      op.d = decoder.destination(decoder.operand(0), 64);
      op.count |= kHasState;
    }
    ++next;
  }
  decodeAddress(decoder, op, decoder.operand(next++));
  if (getPlace(op) == Place::SharedCluster && op.count & kHasState)
    decoder.fail("expected no state of a barrier that may be another block's");
  bool hasNumber = next < decoder.numOperands();
  if (expects && !hasNumber)
    decoder.fail("expected a number of bytes");
  op.s[1] = hasNumber ? decoder.sourceBits(decoder.operand(next++), 32)
                      : decoder.constant(32, 1);
  decoder.expectOperands(next);
  op.handler = arriveOrExpect;
}

//===----------------------------------------------------------------------===//
// Waits
//===----------------------------------------------------------------------===//

/// Op::count of waits.
enum : uint16_t { kParity = 1, kTry = 2 };

static Step wait(Warp &warp, const Op &op, Mask mask) {
  Cluster &cluster = warp.cta.cluster;
  Checker *checker = cluster.checker.get();
  Mask done = 0, told = 0; /* of the last barrier */
  MBarrierRef last{nullptr, 0};
  auto learn = [&] {
    if (!told)
      return;
    checker->accessBarrier(warp, op, told, last, /*writes=*/false);
    if (op.flags & kRelaxed)
      checker->acquireLater(warp, told, last.get()->released);
    else
      checker->acquire(warp, told, last.get()->released);
  };
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    MBarrierRef ref = findMBarrier(warp, op, lane, op.s[0], getPlace(op));
    const MBarrier &barrier = *ref.get();
    bool complete;
    if (op.count & kParity) {
      uint32_t parity = warp.row<uint32_t>(op.s[1])[lane];
      if (parity > 1)
        warp.fault(op, Mask{1} << lane, kLaunchFailed,
                   "expected a parity of 0 or 1, but got " +
                       std::to_string(parity));
      complete = (barrier.phase & 1) != parity;
    } else {
      complete = barrier.phase != warp.row<uint64_t>(op.s[1])[lane];
    }
    done |= Mask{complete} << lane;
    if (!checker || !complete)
      continue;
    if (ref.cta != last.cta || ref.offset != last.offset) {
      learn();
      told = 0;
      last = ref;
    }
    told |= Mask{1} << lane;
  }
  learn();
  // try_wait may return for nothing (PTX ISA: after a time of its own), so that
  // a loop around it is needed.
  bool spurious =
      cluster.grid.settings.order == Order::Random && cluster.random(16) == 0;
  Group &group = warp.groups[warp.current];
  spurious |= std::exchange(group.expired, false);
  if (done == 0 && (op.count & kTry) && !spurious)
    return Step::Wait;
  Mask &p = warp.predicate(op.d);
  p = (p & ~mask) | done;
  return Step::Next;
}

static void decodeWait(Decoder &decoder, Modifiers &modifiers, Op &op,
                       bool isTry) {
  bool parity = modifiers.take("parity");
  op.count = (parity ? kParity : 0) | (isTry ? kTry : 0);
  if (decoder.numOperands() != 3)
    decoder.expectOperands(4);
  op.d = decoder.destination(decoder.operand(0), 1);
  decodeAddress(decoder, op, decoder.operand(1));
  op.s[1] = decoder.sourceBits(decoder.operand(2), parity ? 32 : 64);
  op.handler = wait;
}

static void decodeMBarrier(Decoder &decoder, Modifiers &modifiers, Op &op) {
  auto what = modifiers.takeOneOf({"init", "inval", "arrive", "expect_tx",
                                   "complete_tx", "test_wait", "try_wait"});
  if (!what)
    decoder.fail("expected an operation");
  takeScope(modifiers, op);
  op.flags |= static_cast<uint32_t>(takePlace(modifiers));
  modifiers.take("b64");
  switch (*what) {
  case 0:
    decoder.expectOperands(2);
    decodeAddress(decoder, op, decoder.operand(0));
    op.s[1] = decoder.sourceBits(decoder.operand(1), 32);
    op.handler = init;
    return;
  case 1:
    decoder.expectOperands(1);
    decodeAddress(decoder, op, decoder.operand(0));
    op.handler = invalidate;
    return;
  case 2:
    return decodeArrive(decoder, modifiers, op);
  case 3:
  case 4:
    decoder.expectOperands(2);
    decodeAddress(decoder, op, decoder.operand(0));
    op.s[1] = decoder.sourceBits(decoder.operand(1), 32);
    op.count = *what == 3 ? kExpect : kComplete;
    op.handler = arriveOrExpect;
    return;
  default:
    return decodeWait(decoder, modifiers, op, *what == 6);
  }
}

void fp8emu::addMBarriers(DecodeTable &table) {
  table["mbarrier"] = decodeMBarrier;
}

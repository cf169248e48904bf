//===- Warp.cpp - A warp, and its lanes that are in different places ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tensor/TensorMemory.h"

#include <algorithm>

using namespace fp8emu;

Warp::Warp(Cta &cta, unsigned index, Mask lanes)
    : cta(cta), index(index), live(lanes) {
  const Program &program = cta.cluster.grid.program;
  storage.reset(new uint8_t[program.registerBytes + 64]);
  auto address = reinterpret_cast<uintptr_t>(storage.get());
  registers = storage.get() + (64 - address % 64);
  // What nobody has written is not zero: all bits of a register are set.
  std::memset(registers, 0xff, program.registerBytes);
  groups.push_back({lanes, 0});
  fillRows();
}

static void fill(Warp &warp, unsigned bits, uint32_t offset, unsigned lane,
                 uint64_t value) {
  if (bits == 64)
    warp.row<uint64_t>(offset)[lane] = value;
  else if (bits == 32)
    warp.row<uint32_t>(offset)[lane] = static_cast<uint32_t>(value);
  else
    warp.row<uint16_t>(offset)[lane] = static_cast<uint16_t>(value);
}

void Warp::fillRows() {
  for (const InitialRow &initial : cta.cluster.grid.program.initial) {
    if (initial.kind == InitialRow::Scratch)
      continue;
    if (initial.bits == 1) {
      predicate(initial.offset) = initial.value ? ~Mask{0} : 0;
      continue;
    }
    for (unsigned lane = 0; lane < kLanes; ++lane) {
      uint64_t value = initial.value;
      if (initial.kind == InitialRow::SharedAddress)
        value = cta.getSharedAddress(static_cast<uint32_t>(value));
      else if (initial.kind == InitialRow::Special)
        value = getSpecial(static_cast<SpecialRegister>(value), lane);
      fill(*this, initial.bits, initial.offset, lane, value);
    }
  }
}

/// A register that tells where in its cluster, and where among clusters, a
/// block is.
static uint64_t getOfCluster(const Cta &cta, SpecialRegister which) {
  const Grid &grid = cta.cluster.grid;
  const Dim3 &c = grid.cluster;
  Dim3 inCluster = {cta.rank % c.x, cta.rank / c.x % c.y, cta.rank / c.x / c.y};
  switch (which) {
    using S = SpecialRegister;
  case S::ClusteridX:
    return cta.cluster.index.x;
  case S::ClusteridY:
    return cta.cluster.index.y;
  case S::ClusteridZ:
    return cta.cluster.index.z;
  case S::NclusteridX:
    return grid.grid.x / c.x;
  case S::NclusteridY:
    return grid.grid.y / c.y;
  case S::NclusteridZ:
    return grid.grid.z / c.z;
  case S::ClusterCtaidX:
    return inCluster.x;
  case S::ClusterCtaidY:
    return inCluster.y;
  case S::ClusterCtaidZ:
    return inCluster.z;
  case S::ClusterNctaidX:
    return c.x;
  case S::ClusterNctaidY:
    return c.y;
  case S::ClusterNctaidZ:
    return c.z;
  case S::ClusterCtarank:
    return cta.rank;
  case S::ClusterNctarank:
    return c.count();
  case S::IsExplicitCluster:
    return grid.explicitCluster;
  default:
    return 0;
  }
}

uint64_t Warp::getSpecial(SpecialRegister which, unsigned lane) const {
  const Grid &grid = cta.cluster.grid;
  unsigned thread = getThread(lane);
  const Dim3 &block = grid.block;
  switch (which) {
    using S = SpecialRegister;
  case S::TidX:
    return thread % block.x;
  case S::TidY:
    return thread / block.x % block.y;
  case S::TidZ:
    return thread / block.x / block.y;
  case S::NtidX:
    return block.x;
  case S::NtidY:
    return block.y;
  case S::NtidZ:
    return block.z;
  case S::CtaidX:
    return cta.index.x;
  case S::CtaidY:
    return cta.index.y;
  case S::CtaidZ:
    return cta.index.z;
  case S::NctaidX:
    return grid.grid.x;
  case S::NctaidY:
    return grid.grid.y;
  case S::NctaidZ:
    return grid.grid.z;
  case S::LaneId:
    return lane;
  case S::WarpId:
    return index;
  case S::NwarpId:
    return (block.count() + kLanes - 1) / kLanes;
  case S::SmId:
    return (cta.cluster.number * grid.cluster.count() + cta.rank) %
           grid.settings.multiprocessors;
  case S::NsmId:
    return grid.settings.multiprocessors;
  case S::GridId:
    return grid.number;
  case S::LanemaskEq:
    return uint64_t{1} << lane;
  case S::LanemaskLe:
    return (uint64_t{2} << lane) - 1;
  case S::LanemaskLt:
    return (uint64_t{1} << lane) - 1;
  case S::LanemaskGe:
    return ~((uint64_t{1} << lane) - 1) & UINT32_MAX;
  case S::LanemaskGt:
    return ~((uint64_t{2} << lane) - 1) & UINT32_MAX;
  case S::DynamicSmemSize:
    return grid.dynamicShared;
  case S::TotalSmemSize:
    return cta.sharedBytes;
  default:
    return getOfCluster(cta, which);
  }
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

bool Warp::canRun() const {
  for (const Group &group : groups)
    if (!group.waits || group.seen != cta.cluster.events)
      return true;
  return false;
}

/// The lowest of those that can run, so that those behind a branch meet again;
/// others come before one that has run for long.
void Warp::pick() {
  size_t best = groups.size();
  for (bool deferred : {false, true}) {
    for (size_t i = 0; i < groups.size(); ++i) {
      const Group &group = groups[i];
      bool can = !group.waits || group.seen != cta.cluster.events;
      if (can && group.deferred == deferred &&
          (best == groups.size() || group.pc < groups[best].pc))
        best = i;
    }
    if (best != groups.size())
      break;
    for (Group &group : groups)
      group.deferred = false;
  }
  current = best;
}

/// Lanes that have come to the same place are one group.
bool Warp::merge() {
  bool merged = false;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (i == current || groups[i].pc != groups[current].pc)
      continue;
    groups[current].mask |= groups[i].mask;
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(i));
    current -= i < current;
    --i;
    merged = true;
  }
  return merged;
}

void Warp::branch(Mask taken, uint32_t target) {
  Group &group = groups[current];
  if (taken == group.mask) {
    group.pc = target;
    return;
  }
  group.mask &= ~taken;
  ++group.pc;
  groups.push_back({taken, target});
}

uint32_t Warp::run(uint32_t quantum) {
  const std::vector<Op> &ops = cta.cluster.grid.program.ops;
  Checker *checker = cta.cluster.checker.get();
  if (checker && !checker->looksFor(kCheckRegisters))
    checker = nullptr;
  uint32_t done = 0;
  pick();
  while (current < groups.size()) {
    if (groups.size() > 1) {
      merge();
      // Those that are behind come first.
      if (groups.size() > 1 && done < quantum)
        pick();
      if (current == groups.size())
        break;
    }
    Group &group = groups[current];
    if (done >= quantum) {
      group.deferred = true;
      break;
    }
    const Op &op = ops[group.pc];
    running = &op;
    ++done;
    Mask mask = group.mask;
    if (op.hasGuard) {
      Mask guard = predicate(op.guard);
      mask &= op.guardNegated ? ~guard : guard;
      if (mask == 0) {
        ++group.pc;
        continue;
      }
    }
    Step step;
    if (op.aligned && mask != live) {
      if (mask != group.mask)
        fault(op, mask, kLaunchFailed,
              "expected all lanes of the warp at an aligned instruction, but "
              "its guard is true in some only");
      step = Step::Wait;
    } else {
      if (checker)
        checker->useRegisters(*this, op, mask);
      if (!tensor.moves.empty())
        settleLoads(*this, op);
      step = op.handler(*this, op, mask);
    }
    switch (step) {
    case Step::Next:
      ++groups[current].pc;
      break;
    case Step::Jump:
      break;
    case Step::Wait:
      ++retries;
      groups[current].waits = true;
      groups[current].seen = cta.cluster.events;
      pick();
      continue;
    case Step::Exit:
      live &= ~mask;
      if (mask == groups[current].mask) {
        groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(current));
      } else {
        groups[current].mask &= ~mask;
        ++groups[current].pc;
      }
      cta.cluster.ended(*this, mask);
      pick();
      continue;
    }
    groups[current].waits = false;
  }
  return done;
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

std::string Warp::describeThread(Mask lanes) const {
  unsigned lane = lanes ? static_cast<unsigned>(__builtin_ctz(lanes)) : 0;
  unsigned thread = getThread(lane);
  const Dim3 &block = cta.cluster.grid.block;
  Dim3 tid = {thread % block.x, thread / block.x % block.y,
              thread / block.x / block.y};
  std::string more;
  if (unsigned count = static_cast<unsigned>(__builtin_popcount(lanes));
      count > 1)
    more = " and " + std::to_string(count - 1) + " more of its warp";
  return "block " + cta.index.str() + ", thread " + tid.str() + more;
}

void Warp::fault(const Op &op, Mask lanes, int code,
                 const std::string &what) const {
  const Program &program = cta.cluster.grid.program;
  throw Fault{code, "kernel " + std::string(program.function->name) + ", " +
                        describeThread(lanes) + ", line " +
                        std::to_string(program.getLine(op)) + ", '" +
                        std::string(program.getText(op)) + "': " + what};
}

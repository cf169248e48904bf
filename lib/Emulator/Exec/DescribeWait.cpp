//===- DescribeWait.cpp - What a warp waits for, in words -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Async/MBarriers.h"

using namespace fp8emu;

static std::string describeMBarrier(Warp &warp, const Op &op, Mask mask) {
  auto lane = static_cast<unsigned>(__builtin_ctz(mask));
  uint64_t address = getAddress(warp, op, lane, op.s[0]);
  uint64_t rank = address >> kRankShift & 15;
  if (rank >= warp.cta.cluster.ctas.size())
    return "";
  MBarrierRef ref{warp.cta.cluster.ctas[rank].get(),
                  static_cast<uint32_t>(address & kSharedOffsetMask)};
  const MBarrier *barrier = ref.get();
  if (!barrier)
    return "";
  return " for " + describe(ref) + ", whose phase " +
         std::to_string(barrier->phase) + " lacks " +
         std::to_string(barrier->pending) + " of " +
         std::to_string(barrier->expected) + " arrivals and " +
         std::to_string(barrier->bytes) + " bytes" +
         describeLastArrival(*barrier);
}

static std::string describeNamed(Warp &warp, const Op &op, Mask mask) {
  uint32_t id = warp.row<uint32_t>(op.s[0])[__builtin_ctz(mask)];
  if (id >= std::size(warp.cta.barriers))
    return "";
  const NamedBarrier &barrier = warp.cta.barriers[id];
  return " for barrier " + std::to_string(id) + ", where " +
         std::to_string(barrier.arrived) + " threads of " +
         (barrier.expected ? std::to_string(barrier.expected)
                           : std::string("all")) +
         " have arrived";
}

void Warp::describeWait(std::string &text) {
  const Program &program = cta.cluster.grid.program;
  for (const Group &group : groups) {
    const Op &op = program.ops[group.pc];
    std::string statement = program.getText(op);
    text += "\n  " + describeThread(group.mask) + ", line " +
            std::to_string(program.getLine(op)) + ": " +
            (group.waits ? "waits at '" : "is at '") + statement + "'";
    if (op.aligned && group.mask != live)
      text += " for other lanes of its warp";
    else if (statement.substr(0, 9) == "mbarrier.")
      text += describeMBarrier(*this, op, group.mask);
    else if (statement.substr(0, 8) == "bar.sync" ||
             statement.substr(0, 13) == "barrier.sync ")
      text += describeNamed(*this, op, group.mask);
  }
}

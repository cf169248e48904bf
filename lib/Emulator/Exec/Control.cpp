//===- Control.cpp - Branches and ends ------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Lanes.h"

using namespace fp8emu;

static Step branch(Warp &warp, const Op &op, Mask mask) {
  warp.branch(mask, static_cast<uint32_t>(op.imm));
  return Step::Jump;
}

static void decodeBranch(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("uni");
  decoder.expectOperands(1);
  const Operand &target = decoder.operand(0);
  if (target.kind != Operand::Label)
    decoder.fail("unknown label '" + std::string(target.name) + "'");
  op.imm = target.value;
  op.handler = branch;
}

static Step exitLanes(Warp &, const Op &, Mask) { return Step::Exit; }

static void decodeExit(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("uni");
  decoder.expectOperands(0);
  op.handler = exitLanes;
}

static Step trap(Warp &warp, const Op &op, Mask mask) {
  warp.fault(op, mask, kLaunchFailed, "the kernel gave up");
}

static void decodeTrap(Decoder &decoder, Modifiers &, Op &op) {
  decoder.expectOperands(0);
  op.handler = trap;
}

/// Others run meanwhile.
static Step sleep(Warp &warp, const Op &, Mask) {
  warp.cta.cluster.time += 8;
  return Step::Next;
}

static void decodeSleep(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("u32");
  decoder.expectOperands(1);
  decoder.sourceBits(decoder.operand(0), 32);
  op.handler = sleep;
}

void fp8emu::addControl(DecodeTable &table) {
  table["bra"] = decodeBranch;
  table["ret"] = decodeExit;
  table["exit"] = decodeExit;
  table["trap"] = decodeTrap;
  table["brkpt"] = decodeTrap;
  table["nanosleep"] = decodeSleep;
}

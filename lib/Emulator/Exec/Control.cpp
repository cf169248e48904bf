//===- Control.cpp - Branches and ends ------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Exec/Addresses.h"
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

/// The text that an address of global memory has.
static std::string readText(Warp &warp, const Op &op, unsigned lane,
                            uint64_t address) {
  std::string text;
  while (text.size() < 256) {
    char next = static_cast<char>(*resolveGlobal(
        warp, op, Mask{1} << lane, address + text.size(), 1, Access::Read));
    if (next == 0)
      break;
    text += next;
  }
  return text;
}

/// __assertfail(message, file, line, function, size of a char), which does not
/// return.
static Step failAssertion(Warp &warp, const Op &op, Mask mask) {
  auto lane = static_cast<unsigned>(__builtin_ctz(mask));
  const uint8_t *local =
      warp.cta.local.data() +
      warp.getThread(lane) * warp.cta.cluster.grid.program.localBytes;
  uint64_t message;
  std::memcpy(&message, local + op.imm, sizeof(message));
  warp.fault(op, Mask{1} << lane, kAssert,
             "assertion failed: " + readText(warp, op, lane, message));
}

/// vprintf(format, arguments), which prints nothing here.
static Step printNothing(Warp &warp, const Op &op, Mask mask) {
  uint32_t bytes = warp.cta.cluster.grid.program.localBytes;
  for (Mask rest = mask; rest; rest &= rest - 1) {
    auto lane = static_cast<unsigned>(__builtin_ctz(rest));
    std::memset(warp.cta.local.data() + size_t{warp.getThread(lane)} * bytes +
                    op.imm,
                0, 4);
  }
  return Step::Next;
}

static void decodeCall(Decoder &decoder, Modifiers &modifiers, Op &op) {
  modifiers.take("uni");
  if (decoder.numOperands() == 3 && decoder.operand(1).name == "vprintf") {
    const Operand &result = decoder.operand(0);
    if (result.elements.size() != 1 || !decoder.isLocal(result.elements[0]))
      decoder.fail("expected one result of 'vprintf'");
    op.imm = decoder.getLocalOffset(result.elements[0]);
    op.handler = printNothing;
    return;
  }
  decoder.expectOperands(2);
  const Operand &callee = decoder.operand(0), &list = decoder.operand(1);
  if (callee.name != "__assertfail")
    decoder.fail("expected no call but of '__assertfail', but got one of '" +
                 std::string(callee.name) + "'");
  if (list.kind != Operand::Vector || list.elements.size() != 5 ||
      !decoder.isLocal(list.elements[0]))
    decoder.fail("expected five parameters of '__assertfail'");
  op.imm = decoder.getLocalOffset(list.elements[0]);
  op.handler = failAssertion;
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
  table["call"] = decodeCall;
  table["trap"] = decodeTrap;
  table["brkpt"] = decodeTrap;
  table["nanosleep"] = decodeSleep;
}

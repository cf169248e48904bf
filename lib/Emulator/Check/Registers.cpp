//===- Registers.cpp - Registers that products in flight use --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// PTX ISA, "wgmma.fence": registers that others have read or written need one
// before a product uses them. Until its group is waited for, nobody but
// products with the same accumulators may touch those, and nobody may write
// those of A.
//
//===----------------------------------------------------------------------===//

#include "Checker.h"

using namespace fp8emu;

static constexpr uint32_t kRowBytes = 4 * kLanes;

static WarpTensorState::Use &getUse(Warp &warp, uint32_t row) {
  std::vector<WarpTensorState::Use> &uses = warp.tensor.uses;
  if (uses.empty())
    uses.resize(warp.cta.cluster.grid.program.registerBytes / kRowBytes + 1);
  return uses[row / kRowBytes];
}

void Checker::useRegisters(Warp &warp, const Op &op, Mask mask) {
  // Products look for themselves.
  if (op.usesTensorCore)
    return;
  const Program &program = cluster.grid.program;
  const WarpTensorState &tensor = warp.tensor;
  uint32_t index = getIndex(op);
  for (uint32_t i = program.firstOperand[index];
       i < program.firstOperand[index + 1]; ++i) {
    Program::Operand32 operand = program.operands[i];
    WarpTensorState::Use &use = getUse(warp, operand.row);
    if (use.accumulated > tensor.waited)
      report(kCheckRegisters, warp, op, mask, 0,
             std::string(operand.isResult ? "writes" : "reads") +
                 " an accumulator of a wgmma in flight, without a "
                 "wgmma.wait_group that waits for it");
    else if (operand.isResult && use.read > tensor.waited)
      report(kCheckRegisters, warp, op, mask, 0,
             "writes a register that a wgmma in flight reads, without a "
             "wgmma.wait_group that waits for it");
    use.touched = tensor.fences + 1;
  }
}

void Checker::multiply(Warp &warp, const Op &op, const uint32_t *rows,
                       size_t columns, bool aInRegisters, uint32_t group) {
  WarpTensorState &tensor = warp.tensor;
  size_t accumulators = columns / 2, count = accumulators + 4 * aInRegisters;
  bool fenced = true;
  for (size_t i = 0; i < count; ++i) {
    WarpTensorState::Use &use = getUse(warp, rows[i]);
    fenced &= use.touched <= tensor.fences;
    if (i < accumulators) {
      use.accumulated = group;
      continue;
    }
    if (use.accumulated > tensor.waited)
      report(kCheckRegisters, warp, op, warp.live, 0,
             "reads an accumulator of a wgmma in flight as A");
    use.read = group;
  }
  if (!fenced)
    report(kCheckRegisters, warp, op, warp.live, 0,
           "lacks a wgmma.fence between it and what has read or written its "
           "registers");
}

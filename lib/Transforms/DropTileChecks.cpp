//===- DropTileChecks.cpp - Checks that tiles have behind them ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamTiling.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_DROPTILECHECKSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct DropTileChecksPass
    : fp8::impl::DropTileChecksPassBase<DropTileChecksPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](scf::ForallOp loop) {
      if (!loop->removeAttr(kTilesAttrName))
        return;
      // What an element decides, such as the row that it reads, is checked with
      // it.
      for (auto check :
           llvm::make_early_inc_range(loop.getBody()->getOps<cf::AssertOp>())) {
        check.erase();
        ++numDropped;
      }
    });
  }
};
} // namespace

//===- LowerLinalgToLoops.cpp - Loops that vectorise ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarBody.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERLINALGTOLOOPSPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static void lowerToLoops(RewriterBase &b, linalg::LinalgOp op) {
  Location loc = op.getLoc();
  ScalarBody body(b, op);
  SmallVector<Range> ranges = op.createLoopRanges(b, loc);
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  // Trailing reductions carry their accumulators. One that is never read (a
  // pure overwrite) has no initial value to carry.
  size_t firstReduction = iterators.size();
  if (body.readsInits())
    while (firstReduction > 0 &&
           iterators[firstReduction - 1] == utils::IteratorType::reduction)
      --firstReduction;

  SmallVector<Value> ivs(ranges.size());
  for (size_t loop = 0; loop < firstReduction; ++loop) {
    const Range &range = ranges[loop];
    auto forOp = scf::ForOp::create(
        b, loc, getValueOrCreateConstantIndexOp(b, loc, range.offset),
        getValueOrCreateConstantIndexOp(b, loc, range.size),
        getValueOrCreateConstantIndexOp(b, loc, range.stride));
    b.setInsertionPointToStart(forOp.getBody());
    ivs[loop] = forOp.getInductionVar();
  }
  auto reductions =
      llvm::to_vector(llvm::seq<unsigned>(firstReduction, ranges.size()));
  SmallVector<Value> values =
      body.buildLoops(ranges, reductions, ivs, body.loadInits(ivs));
  body.storeInits(values, ivs);
}

namespace {
struct LowerLinalgToLoopsPass
    : fp8::impl::LowerLinalgToLoopsPassBase<LowerLinalgToLoopsPass> {
  using Base::Base;
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    replaceStridedCopies(rewriter, getOperation());
    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics())
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops) {
      rewriter.setInsertionPoint(op);
      lowerToLoops(rewriter, op);
      rewriter.eraseOp(op);
    }
  }
};
} // namespace

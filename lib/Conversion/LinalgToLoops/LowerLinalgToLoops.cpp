//===- LowerLinalgToLoops.cpp - Loops that vectorize ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarBody.h"
#include "Transpose.h"
#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERLINALGTOLOOPSPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Sums of rows are computed beside each other: one alone waits for each of its
/// additions, whose order is given.
static constexpr int64_t kRowsTogether = 8;

namespace {
/// The loops of one operation.
class LoopBuilder {
public:
  LoopBuilder(RewriterBase &b, linalg::LinalgOp op)
      : b(b), op(op), loc(op.getLoc()), body(b, op),
        ranges(op.createLoopRanges(b, loc)), ivs(ranges.size()) {}

  void build();

private:
  bool hasOrderedReduction(size_t firstReduction);
  void buildReductions(size_t firstReduction, int64_t rows);

  Value getIndex(OpFoldResult value) {
    return getValueOrCreateConstantIndexOp(b, loc, value);
  }
  /// The insertion point goes into the loop.
  scf::ForOp open(size_t loop, Value from, Value to, Value step) {
    auto forOp = scf::ForOp::create(b, loc, from, to, step);
    b.setInsertionPointToStart(forOp.getBody());
    ivs[loop] = forOp.getInductionVar();
    return forOp;
  }

  RewriterBase &b;
  linalg::LinalgOp op;
  Location loc;
  ScalarBody body;
  SmallVector<Range> ranges;
  SmallVector<Value> ivs;
};
} // namespace

/// Whether there are rows that are reduced in an order: maxima of integers have
/// none, and are vectorized along the row.
bool LoopBuilder::hasOrderedReduction(size_t firstReduction) {
  return firstReduction > 0 && firstReduction < ranges.size() &&
         llvm::any_of(
             op.getDpsInits(),
             [](Value init) {
               return isa<FloatType>(getElementTypeOrSelf(init));
             });
}

/// The reductions of `rows` neighbours in the last loop that is open.
void LoopBuilder::buildReductions(size_t firstReduction, int64_t rows) {
  auto reductions =
      llvm::to_vector(llvm::seq<unsigned>(firstReduction, ranges.size()));
  SmallVector<SmallVector<Value>> ivsOfRow(rows, ivs);
  SmallVector<Value> inits;
  for (int64_t row = 0; row < rows; ++row) {
    if (row > 0) {
      Value &iv = ivsOfRow[row][firstReduction - 1];
      iv = arith::AddIOp::create(b, loc, iv, getIndex(b.getIndexAttr(row)));
    }
    llvm::append_range(inits, body.loadInits(ivsOfRow[row]));
  }
  size_t count = op.getNumDpsInits();
  SmallVector<Value> values = body.buildLoops(
      ranges, reductions, ivs, inits,
      [&](ArrayRef<Value> inner, ValueRange carried) {
        SmallVector<Value> next;
        for (int64_t row = 0; row < rows; ++row) {
          SmallVector<Value> own(inner);
          if (row > 0)
            own[firstReduction - 1] = ivsOfRow[row][firstReduction - 1];
          llvm::append_range(
              next, body.inlineBody(own, carried.slice(row * count, count)));
        }
        return next;
      });
  for (int64_t row = 0; row < rows; ++row)
    body.storeInits(ArrayRef(values).slice(row * count, count), ivsOfRow[row]);
}

void LoopBuilder::build() {
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  // Trailing reductions carry their accumulators. One that is never read (a
  // pure overwrite) has no initial value to carry.
  size_t firstReduction = iterators.size();
  if (body.readsInits())
    while (firstReduction > 0 &&
           iterators[firstReduction - 1] == utils::IteratorType::reduction)
      --firstReduction;

  bool together = hasOrderedReduction(firstReduction);
  for (size_t loop = 0; loop < firstReduction - (together ? 1 : 0); ++loop)
    open(loop, getIndex(ranges[loop].offset), getIndex(ranges[loop].size),
         getIndex(ranges[loop].stride));
  if (!together)
    return buildReductions(firstReduction, 1);

  // Ranges of structured operations begin at 0 and have steps of 1.
  size_t last = firstReduction - 1;
  AffineExpr size = b.getAffineSymbolExpr(0);
  Value full = getIndex(affine::makeComposedFoldedAffineApply(
      b, loc, size.floorDiv(kRowsTogether) * kRowsTogether,
      {ranges[last].size}));
  scf::ForOp main = open(last, getIndex(ranges[last].offset), full,
                         getIndex(b.getIndexAttr(kRowsTogether)));
  buildReductions(firstReduction, kRowsTogether);
  std::optional<int64_t> rows = getConstantIntValue(ranges[last].size);
  if (rows && *rows % kRowsTogether == 0)
    return;
  b.setInsertionPointAfter(main);
  open(last, full, getIndex(ranges[last].size), getIndex(ranges[last].stride));
  buildReductions(firstReduction, 1);
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
      auto transpose = dyn_cast<linalg::TransposeOp>(op.getOperation());
      if (!transpose || failed(lowerTranspose(rewriter, transpose)))
        LoopBuilder(rewriter, op).build();
      rewriter.eraseOp(op);
    }
  }
};
} // namespace

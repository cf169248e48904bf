//===- LowerLinalgToLoops.cpp - Loops that vectorise ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERLINALGTOLOOPSPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Lowers one structured operation.
class NestBuilder {
public:
  NestBuilder(RewriterBase &rewriter, linalg::LinalgOp op)
      : b(rewriter), op(op), loc(op.getLoc()) {}

  void build();

private:
  SmallVector<Value> getIndices(OpOperand *operand, ArrayRef<Value> ivs);
  Value load(OpOperand *operand, ArrayRef<Value> ivs);
  void store(Value value, OpOperand *init, ArrayRef<Value> ivs);
  /// Clones the body at `ivs` with `inits` as the values of the outputs and
  /// returns the values it yields.
  SmallVector<Value> inlineBody(ArrayRef<Value> ivs, ValueRange inits);
  SmallVector<Value> loadInits(ArrayRef<Value> ivs);
  void storeInits(ValueRange values, ArrayRef<Value> ivs);
  /// Loops from `ivs.size()` on, which are all reductions, carrying `values`.
  SmallVector<Value> buildReductions(SmallVector<Value> &ivs,
                                     ValueRange values);

  RewriterBase &b;
  linalg::LinalgOp op;
  Location loc;
  SmallVector<Range> ranges;
};

} // namespace

SmallVector<Value> NestBuilder::getIndices(OpOperand *operand,
                                           ArrayRef<Value> ivs) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  // An accumulator is addressed outside of the loops that it is carried
  // through; its map does not depend on them.
  SmallVector<OpFoldResult> dims = getAsOpFoldResult(ivs);
  dims.resize(map.getNumDims(), b.getIndexAttr(0));
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults())
    indices.push_back(getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineApply(
            b, loc, AffineMap::get(map.getNumDims(), 0, expr), dims)));
  return indices;
}

Value NestBuilder::load(OpOperand *operand, ArrayRef<Value> ivs) {
  if (!isa<MemRefType>(operand->get().getType()))
    return operand->get();
  return memref::LoadOp::create(b, loc, operand->get(),
                                getIndices(operand, ivs));
}

void NestBuilder::store(Value value, OpOperand *init, ArrayRef<Value> ivs) {
  memref::StoreOp::create(b, loc, value, init->get(), getIndices(init, ivs));
}

SmallVector<Value> NestBuilder::inlineBody(ArrayRef<Value> ivs,
                                           ValueRange inits) {
  Block *body = op.getBlock();
  IRMapping mapping;
  for (OpOperand *input : op.getDpsInputOperands()) {
    BlockArgument argument = op.getMatchingBlockArgument(input);
    if (!argument.use_empty())
      mapping.map(argument, load(input, ivs));
  }
  for (auto [index, init] : llvm::enumerate(inits))
    mapping.map(op.getMatchingBlockArgument(op.getDpsInitOperand(index)), init);
  for (Operation &inner : body->without_terminator()) {
    if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
      mapping.map(index.getResult(), ivs[index.getDim()]);
      continue;
    }
    Operation *clone = b.clone(inner, mapping);
    // Indices of nested regions are the indices of this nest.
    clone->walk([&](linalg::IndexOp index) {
      b.replaceOp(index, ivs[index.getDim()]);
    });
  }
  SmallVector<Value> results;
  for (Value yielded : body->getTerminator()->getOperands())
    results.push_back(mapping.lookupOrDefault(yielded));
  return results;
}

SmallVector<Value> NestBuilder::loadInits(ArrayRef<Value> ivs) {
  SmallVector<Value> values;
  for (OpOperand &init : op.getDpsInitsMutable())
    // A value that is only written would be read uninitialised; the mapping
    // of an unused argument does not matter.
    values.push_back(op.payloadUsesValueFromOperand(&init) ? load(&init, ivs)
                                                           : Value());
  return values;
}

void NestBuilder::storeInits(ValueRange values, ArrayRef<Value> ivs) {
  for (auto [index, value] : llvm::enumerate(values))
    store(value, op.getDpsInitOperand(index), ivs);
}

SmallVector<Value> NestBuilder::buildReductions(SmallVector<Value> &ivs,
                                                ValueRange values) {
  if (ivs.size() == ranges.size())
    return inlineBody(ivs, values);
  const Range &range = ranges[ivs.size()];
  auto loop = scf::ForOp::create(
      b, loc, getValueOrCreateConstantIndexOp(b, loc, range.offset),
      getValueOrCreateConstantIndexOp(b, loc, range.size),
      getValueOrCreateConstantIndexOp(b, loc, range.stride), values);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ivs.push_back(loop.getInductionVar());
  SmallVector<Value> results = buildReductions(ivs, loop.getRegionIterArgs());
  ivs.pop_back();
  scf::YieldOp::create(b, loc, results);
  return SmallVector<Value>(loop.getResults());
}

void NestBuilder::build() {
  ranges = op.createLoopRanges(b, loc);
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  // Trailing reductions carry their accumulators. One that is never read (a
  // pure overwrite) has no initial value to carry.
  size_t firstReduction = iterators.size();
  while (firstReduction > 0 &&
         iterators[firstReduction - 1] == utils::IteratorType::reduction)
    --firstReduction;
  bool readsAll = llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    return op.payloadUsesValueFromOperand(&init);
  });
  if (!readsAll)
    firstReduction = iterators.size();

  SmallVector<Value> ivs;
  for (size_t loop = 0; loop < firstReduction; ++loop) {
    const Range &range = ranges[loop];
    auto forOp = scf::ForOp::create(
        b, loc, getValueOrCreateConstantIndexOp(b, loc, range.offset),
        getValueOrCreateConstantIndexOp(b, loc, range.size),
        getValueOrCreateConstantIndexOp(b, loc, range.stride));
    b.setInsertionPointToStart(forOp.getBody());
    ivs.push_back(forOp.getInductionVar());
  }
  SmallVector<Value> values = loadInits(ivs);
  if (firstReduction == ranges.size())
    values = inlineBody(ivs, values);
  else
    values = buildReductions(ivs, values);
  storeInits(values, ivs);
}

/// LLVM's memcpy serves contiguous memrefs; upstream lowers any other copy to a
/// call into a library of its runner.
static bool isContiguous(Value memref) {
  return cast<MemRefType>(memref.getType()).getLayout().isIdentity();
}

namespace {
struct LowerLinalgToLoops
    : fp8::impl::LowerLinalgToLoopsPassBase<LowerLinalgToLoops> {
  using Base::Base;
  void runOnOperation() override {
    IRRewriter rewriter(&getContext());
    SmallVector<memref::CopyOp> copies;
    getOperation()->walk([&](memref::CopyOp op) {
      if (isa<MemRefType>(op.getSource().getType()) &&
          isa<MemRefType>(op.getTarget().getType()) &&
          !(isContiguous(op.getSource()) && isContiguous(op.getTarget())))
        copies.push_back(op);
    });
    for (memref::CopyOp op : copies) {
      rewriter.setInsertionPoint(op);
      rewriter.replaceOpWithNewOp<linalg::CopyOp>(op, op.getSource(),
                                                  op.getTarget());
    }

    SmallVector<linalg::LinalgOp> ops;
    getOperation()->walk([&](linalg::LinalgOp op) {
      if (op.hasPureBufferSemantics())
        ops.push_back(op);
    });
    for (linalg::LinalgOp op : ops) {
      rewriter.setInsertionPoint(op);
      NestBuilder(rewriter, op).build();
      rewriter.eraseOp(op);
    }
  }
};
} // namespace

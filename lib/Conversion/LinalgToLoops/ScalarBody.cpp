//===- ScalarBody.cpp - One iteration of a structured operation -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScalarBody.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

Value fp8::getFilled(OpBuilder &b, linalg::LinalgOp op, OpOperand *operand) {
  auto filled = op->getAttrOfType<ArrayAttr>(kFilledName);
  if (!filled || !op.isDpsInit(operand))
    return Value();
  auto value = dyn_cast<TypedAttr>(
      filled[operand->getOperandNumber() - op.getNumDpsInputs()]);
  return value ? arith::ConstantOp::create(b, op.getLoc(), value).getResult()
               : Value();
}

SmallVector<Value> ScalarBody::getIndices(OpOperand *operand,
                                          ArrayRef<Value> ivs) {
  AffineMap map = op.getMatchingIndexingMap(operand);
  // An accumulator is addressed outside of the loops that it is carried
  // through; its map does not depend on them.
  SmallVector<OpFoldResult> dims;
  for (Value iv : ivs)
    dims.push_back(iv ? OpFoldResult(iv) : OpFoldResult(b.getIndexAttr(0)));
  SmallVector<Value> indices;
  for (AffineExpr expr : map.getResults())
    indices.push_back(getValueOrCreateConstantIndexOp(
        b, loc,
        affine::makeComposedFoldedAffineApply(
            b, loc, AffineMap::get(map.getNumDims(), 0, expr), dims)));
  return indices;
}

Value ScalarBody::load(OpOperand *operand, ArrayRef<Value> ivs) {
  if (!isa<MemRefType>(operand->get().getType()))
    return operand->get();
  if (Value filled = getFilled(b, op, operand))
    return filled;
  return memref::LoadOp::create(b, loc, operand->get(),
                                getIndices(operand, ivs));
}

bool ScalarBody::readsInits() {
  return llvm::all_of(op.getDpsInitsMutable(), [&](OpOperand &init) {
    return op.payloadUsesValueFromOperand(&init);
  });
}

SmallVector<Value> ScalarBody::loadInits(ArrayRef<Value> ivs) {
  SmallVector<Value> values;
  for (OpOperand &init : op.getDpsInitsMutable())
    // A value that is only written would be read uninitialized; the mapping
    // of an unused argument does not matter.
    values.push_back(op.payloadUsesValueFromOperand(&init) ? load(&init, ivs)
                                                           : Value());
  return values;
}

void ScalarBody::storeInits(ValueRange values, ArrayRef<Value> ivs) {
  for (auto [index, value] : llvm::enumerate(values)) {
    OpOperand *init = op.getDpsInitOperand(index);
    memref::StoreOp::create(b, loc, value, init->get(), getIndices(init, ivs));
  }
}

SmallVector<Value> ScalarBody::inlineBody(ArrayRef<Value> ivs,
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

SmallVector<Value> ScalarBody::buildLoops(ArrayRef<Range> ranges,
                                          ArrayRef<unsigned> dims,
                                          MutableArrayRef<Value> ivs,
                                          ValueRange inits,
                                          Innermost innermost) {
  if (dims.empty())
    return innermost(ivs, inits);
  const Range &range = ranges[dims.front()];
  auto loop = scf::ForOp::create(
      b, loc, getValueOrCreateConstantIndexOp(b, loc, range.offset),
      getValueOrCreateConstantIndexOp(b, loc, range.size),
      getValueOrCreateConstantIndexOp(b, loc, range.stride), inits);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  ivs[dims.front()] = loop.getInductionVar();
  SmallVector<Value> results = buildLoops(ranges, dims.drop_front(), ivs,
                                          loop.getRegionIterArgs(), innermost);
  ivs[dims.front()] = {};
  scf::YieldOp::create(b, loc, results);
  return SmallVector<Value>(loop.getResults());
}

bool fp8::isContiguous(Value memref) {
  return cast<MemRefType>(memref.getType()).getLayout().isIdentity();
}

void fp8::replaceStridedCopies(RewriterBase &rewriter, Operation *root) {
  SmallVector<memref::CopyOp> copies;
  root->walk([&](memref::CopyOp op) {
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
}

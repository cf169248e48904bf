//===- FlatBody.cpp - Neighbours over the end of a row --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What depends on the row only is computed once for each of two rows, of which
// each lane takes one: lanes differ in little then.
//
//===----------------------------------------------------------------------===//

#include "StridedBody.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether places of elements from a memref's pointer have 32 bits.
static bool hasFewPlaces(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t last;
  if (!type.hasStaticShape() ||
      failed(type.getStridesAndOffset(strides, last)) ||
      ShapedType::isDynamic(last) || ShapedType::isDynamicShape(strides))
    return false;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), strides)) {
    if (stride < 0 || last >= (int64_t(1) << 31))
      return false;
    last += (size - 1) * stride;
  }
  return last < (int64_t(1) << 31);
}

/// The place that a lane takes of two, in 32 bits where they are enough.
static Value selectPlace(OpBuilder &b, Location loc, Value isNext, Value first,
                         Value next, bool isNarrow) {
  if (!isNarrow)
    return arith::SelectOp::create(b, loc, isNext, next, first);
  auto narrow = [&](Value value) -> Value {
    return arith::IndexCastOp::create(b, loc, b.getI32Type(), value);
  };
  return arith::IndexCastUIOp::create(
      b, loc, b.getIndexType(),
      arith::SelectOp::create(b, loc, isNext, narrow(next), narrow(first)));
}

SmallVector<Value> StridedBody::getLaneIvs(const FlatPlace &place,
                                           int64_t lane) {
  SmallVector<Value> ivs;
  for (auto [first, next] : llvm::zip_equal(place.rows[0], place.rows[1]))
    ivs.push_back(
        first ? arith::SelectOp::create(b, loc, place.isNext[lane], next, first)
              : place.indices[lane]);
  return ivs;
}

SmallVector<Value> StridedBody::loadFlat(OpOperand *operand,
                                         const FlatPlace &place) {
  int64_t lanes = place.indices.size();
  auto type = dyn_cast<MemRefType>(operand->get().getType());
  if (!type)
    return SmallVector<Value>(lanes, operand->get());
  const StridedOperand &strided = loops.getOperand(operand);
  SmallVector<Value> values;
  if (loops.isGapless(strided)) {
    SmallVector<Value> ivs(place.rows[0]);
    ivs[along] = place.indices.front();
    return load(operand, ivs, lanes);
  }
  if (!strided.isStrided) {
    for (int64_t lane = 0; lane < lanes; ++lane)
      values.push_back(loadOpaque(operand, getLaneIvs(place, lane), 0));
    return values;
  }
  if (strided.isSame(along)) {
    Value first = load(operand, place.rows[0], /*lanes=*/1).front();
    Value next = load(operand, place.rows[1], /*lanes=*/1).front();
    for (Value isNext : place.isNext)
      values.push_back(arith::SelectOp::create(b, loc, isNext, next, first));
    return values;
  }
  Value pointer = getPointer(strided);
  Value first = getOffset(strided, place.rows[0]);
  Value next = getOffset(strided, place.rows[1]);
  Value stride = getIndex(strided.strides[along]);
  for (auto [isNext, index] : llvm::zip_equal(place.isNext, place.indices)) {
    Value own = selectPlace(b, loc, isNext, first, next, hasFewPlaces(type));
    own = arith::AddIOp::create(b, loc, own,
                                arith::MulIOp::create(b, loc, index, stride));
    values.push_back(loadFrom(pointer, own, /*stride=*/Value(),
                              type.getElementType(), /*lanes=*/1, /*width=*/1)
                         .front());
  }
  return values;
}

/// What each lane reads of a tensor of the device in the body, whose place is
/// its row's and its own; nothing if it has no such places.
SmallVector<Value> StridedBody::loadFlatElements(memref::LoadOp load,
                                                 const FlatPlace &place,
                                                 ArrayRef<IRMapping> rows,
                                                 ArrayRef<IRMapping> lanes) {
  MemRefType type = load.getMemRefType();
  SmallVector<OpFoldResult> strides;
  OpFoldResult first;
  Value memref = load.getMemRef();
  if (!getElementBytes(type.getElementType()) || !hasFewPlaces(type) ||
      op->isAncestor(memref.getParentRegion()->getParentOp()) ||
      failed(getMixedLayout(b, loc, memref, strides, first)))
    return {};
  auto addPlace = [&](Value sum, const IRMapping &mapping, bool isOwn) {
    for (auto [index, stride] : llvm::zip_equal(load.getIndices(), strides))
      if (isVarying(index) == isOwn)
        sum = arith::AddIOp::create(
            b, loc, sum,
            arith::MulIOp::create(b, loc, mapping.lookupOrDefault(index),
                                  getIndex(stride)));
    return sum;
  };
  Value own = addPlace(getIndex(first), rows[0], /*isOwn=*/false);
  Value next = addPlace(getIndex(first), rows[1], /*isOwn=*/false);
  Value pointer = getGlobalPointer(b, loc, memref);
  SmallVector<Value> values;
  for (auto [isNext, lane] : llvm::zip_equal(place.isNext, lanes)) {
    Value sum = addPlace(
        selectPlace(b, loc, isNext, own, next, /*isNarrow=*/true), lane,
        /*isOwn=*/true);
    values.push_back(loadFrom(pointer, sum, /*stride=*/Value(),
                              type.getElementType(), /*lanes=*/1, /*width=*/1)
                         .front());
  }
  return values;
}

StridedBody::Lanes StridedBody::computeFlat(const FlatPlace &place,
                                            const Lanes &inputs,
                                            const Lanes &inits) {
  Block *body = op.getBlock();
  int64_t count = place.indices.size();
  findVarying(/*isChained=*/false);
  SmallVector<IRMapping> rows(2), lanes(count);
  // What all lanes have been given by themselves.
  for (BlockArgument argument : body->getArguments())
    varying.insert(argument);
  for (Operation &inner : body->without_terminator())
    if (llvm::any_of(inner.getOperands(),
                     [&](Value operand) { return isVarying(operand); }))
      varying.insert(inner.getResults().begin(), inner.getResults().end());
  for (auto [lane, input, init] : llvm::zip_equal(lanes, inputs, inits))
    for (auto [argument, value] : llvm::zip_equal(
             body->getArguments(), llvm::concat<const Value>(input, init)))
      if (value)
        lane.map(argument, value);
  for (Operation &inner : body->without_terminator()) {
    auto index = dyn_cast<linalg::IndexOp>(inner);
    auto load = dyn_cast<memref::LoadOp>(inner);
    bool isRow = inner.getNumRegions() == 0 && inner.getNumResults() > 0 &&
                 !isVarying(inner.getResult(0));
    if (isRow) {
      for (auto [mapping, ivs] : llvm::zip_equal(rows, place.rows))
        if (index)
          mapping.map(index.getResult(), getDimIndex(index.getDim(), ivs, 0));
        else
          b.clone(inner, mapping);
      for (auto [lane, isNext] : llvm::zip_equal(lanes, place.isNext))
        for (Value result : inner.getResults()) {
          Value first = rows[0].lookup(result), next = rows[1].lookup(result);
          lane.map(result,
                   first == next || matchPattern(first, m_Constant())
                       ? first
                       : arith::SelectOp::create(b, loc, isNext, next, first)
                             .getResult());
        }
      continue;
    }
    SmallVector<Value> loaded;
    if (load)
      loaded = loadFlatElements(load, place, rows, lanes);
    for (int64_t number = 0; number < count; ++number) {
      IRMapping &lane = lanes[number];
      if (index) {
        lane.map(index.getResult(), place.indices[number]);
        continue;
      }
      if (!loaded.empty()) {
        lane.map(load.getResult(), loaded[number]);
        continue;
      }
      Operation *clone = b.clone(inner, lane);
      SmallVector<Value> ivs;
      OpBuilder::InsertionGuard guard(b);
      clone->walk([&](linalg::IndexOp nested) {
        b.setInsertionPoint(clone);
        if (ivs.empty())
          ivs = getLaneIvs(place, number);
        b.replaceOp(nested, getDimIndex(nested.getDim(), ivs, 0));
      });
    }
  }
  Lanes results;
  for (const IRMapping &lane : lanes) {
    results.emplace_back();
    for (Value value : body->getTerminator()->getOperands())
      results.back().push_back(lane.lookupOrDefault(value));
  }
  return results;
}

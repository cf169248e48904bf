//===- DelayedUpdate.cpp - The step of delayed scaling, compiled ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes arithmetic of the rule of fp8/Runtime/DelayedRule.h: for a slot with a
// ring, and for histories in the layouts of Transformer Engine and Flax.
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Attrs.h"
#include "fp8/IR/ScalarBuilder.h"
#include "fp8/Runtime/DelayedRule.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

using fp8rt::DelayedRule;

namespace {

/// The arithmetic of the rule as operations. Builders that have no slot's words
/// have no rings.
template <typename Builder>
struct BuilderArithmetic {
  using Bits = Value;
  using Real = Value;
  using Flag = Value;

  Builder &b;

  Value bits(int32_t value) { return b.i32(value); }
  Value real(float value) { return b.f32(value); }
  Value toReal(Value x) { return b.fromBits(x); }
  Value toBits(Value x) { return b.bits(x); }
  Value less(Value x, Value y) {
    return b.cmpi(arith::CmpIPredicate::ult, x, y);
  }
  Value equal(Value x, Value y) {
    return b.cmpi(arith::CmpIPredicate::eq, x, y);
  }
  Value both(Value x, Value y) { return b.both(x, y); }
  Value select(Value condition, Value x, Value y) {
    return b.select(condition, x, y);
  }
  Value max(Value x, Value y) { return arith::MaxUIOp::create(b, x, y); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  Value mask(Value x, Value y) { return arith::AndIOp::create(b, x, y); }
  Value multiply(Value x, Value y) { return b.mul(x, y); }
  Value divide(Value x, Value y) { return b.div(x, y); }

  Value load(Value position) { return b.loadWord(position); }
  void store(Value position, Value word) { b.storeWord(position, word); }

  template <typename Then>
  Value choose(Value condition, Then &&then, Value otherwise) {
    auto branch = scf::IfOp::create(b, otherwise.getType(), condition,
                                    /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b, then());
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, otherwise);
    return branch.getResult(0);
  }

  /// The largest of `count` values from position `first` on; 0 for none.
  template <typename Get>
  Value maxOver(int32_t first, int32_t count, Get &&get) {
    auto loop = scf::ForOp::create(b, b.i32(first), b.i32(first + count),
                                   b.i32(1), ValueRange{b.i32(0)});
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value next = max(loop.getRegionIterArg(0), get(loop.getInductionVar()));
    scf::YieldOp::create(b, next);
    return loop.getResult(0);
  }
};

using Update =
    fp8rt::DelayedUpdate<BuilderArithmetic<SlotUpdateBuilder>, DelayedRule>;

/// The parts of the update that work on no ring.
struct ScalarRule {
  ScalarRule(Location loc, OpBuilder &builder, const DelayedRule &rule)
      : b(loc, builder), update(arithmetic, rule) {}

  Value magnitude(Value x) {
    return arith::AndIOp::create(b, b.bits(x), b.i32(0x7fffffff));
  }

  ScalarBuilder b;
  BuilderArithmetic<ScalarBuilder> arithmetic{b};
  fp8rt::DelayedUpdate<BuilderArithmetic<ScalarBuilder>, DelayedRule> update;
};

} // namespace

static DelayedRule makeRule(int64_t historyLen, AmaxComputeAlgo algo,
                            int64_t margin, DelayedCompat compat, bool pow2,
                            InitialScale initial) {
  // Both enums have one TableGen source.
  return {historyLen, static_cast<fp8rt::AmaxComputeAlgo>(algo),
          margin,     static_cast<fp8rt::DelayedCompat>(compat),
          pow2,       static_cast<fp8rt::InitialScale>(initial)};
}

static DelayedRule getRule(DelayedAttr recipe) {
  return makeRule(recipe.getAmaxHistoryLen(), recipe.getAmaxComputeAlgo(),
                  recipe.getMargin(), recipe.getCompat(), recipe.getPow2(),
                  recipe.getInitial());
}

LogicalResult DelayedAttr::verifyKeysTogether(
    llvm::function_ref<InFlightDiagnostic()> emitError, Format,
    int64_t historyLen, AmaxComputeAlgo algo, int64_t margin, bool,
    DelayedCompat compat, bool pow2, InitialScale initial, AccumulatePolicy) {
  DelayedRule rule = makeRule(historyLen, algo, margin, compat, pow2, initial);
  if (std::optional<fp8rt::KeyConflict> conflict = findConflict(rule))
    return emitError() << "expected " << conflict->key << " to be "
                       << conflict->expected;
  return success();
}

int64_t DelayedAttr::getNumWords() const {
  return getRule(*this).getNumWords();
}

Value DelayedAttr::buildUpdate(SlotUpdateBuilder &slot) const {
  DelayedRule rule = getRule(*this);
  BuilderArithmetic<SlotUpdateBuilder> arithmetic{slot};
  return Update(arithmetic, rule)
      .run(slot.getAmaxBits(), slot.getMaxFinite(), slot.getScale());
}

//===----------------------------------------------------------------------===//
// Histories as tensors
//===----------------------------------------------------------------------===//

SmallVector<StateTensor> DelayedAttr::getStateTensors(int64_t numSlots) const {
  return {
      {"amax_history", RankedTensorType::get({getAmaxHistoryLen(), numSlots},
                                             Float32Type::get(getContext()))}};
}

/// The histories after the amaxes of the step came in.
static Value buildHistory(OpBuilder &builder, Location loc,
                          const DelayedRule &rule, Value amax, Value history) {
  auto type = cast<RankedTensorType>(history.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  AffineMap amaxMap = AffineMap::get(2, 0, builder.getAffineDimExpr(1));
  AffineMap identity = builder.getMultiDimIdentityMap(2);
  SmallVector<utils::IteratorType> iterators(2, utils::IteratorType::parallel);
  auto emit = [&](OpBuilder &inner, Location loc, ValueRange args) {
    ScalarRule scalar(loc, inner, rule);
    ScalarBuilder &b = scalar.b;
    auto equal = [&](Value x, Value y) {
      return b.cmpi(arith::CmpIPredicate::eq, x, y);
    };
    Value row = linalg::IndexOp::create(b, 0);
    Value slot = linalg::IndexOp::create(b, 1);
    Value present = scalar.magnitude(args[0]);
    Value last = b.index(rule.amaxHistoryLen - 1);
    Value isFirst = equal(row, b.index(0));
    Value isLast = equal(row, last);
    Value next = arith::AddIOp::create(b, row, b.index(1));
    bool isFlax = rule.compat == fp8rt::DelayedCompat::Flax;
    Value source = b.select(isLast, isFlax ? b.index(0) : last, next);
    Value isKept;
    if (rule.compat == fp8rt::DelayedCompat::TEFused) {
      isKept = equal(present, b.i32(0));
      source = b.select(isKept, row, source);
    }
    Value moved =
        tensor::ExtractOp::create(b, history, ValueRange{source, slot});
    moved = scalar.magnitude(moved);
    Value value;
    if (isFlax) {
      value = b.select(isFirst, present, moved);
    } else {
      Value newest = isKept ? b.select(isKept, moved, present) : present;
      value = b.select(isLast, newest, moved);
      value = b.select(isFirst, b.i32(0), value);
    }
    linalg::YieldOp::create(b, b.fromBits(value));
  };
  return linalg::GenericOp::create(builder, loc, type, amax, empty,
                                   ArrayRef{amaxMap, identity}, iterators, emit)
      .getResult(0);
}

/// The largest amax of every column, from row `firstRow` on, as bits.
static Value buildMax(OpBuilder &builder, Location loc, const DelayedRule &rule,
                      Value history, int64_t firstRow) {
  int64_t slots = cast<RankedTensorType>(history.getType()).getDimSize(1);
  Type i32 = builder.getI32Type();
  Value zero = arith::ConstantIntOp::create(builder, loc, i32, 0);
  Value empty = tensor::EmptyOp::create(builder, loc, slots, i32);
  Value init = linalg::FillOp::create(builder, loc, zero, empty).getResult(0);
  int64_t rows = rule.amaxHistoryLen - firstRow;
  if (rows == 0)
    return init;
  auto at = [&](int64_t value) -> OpFoldResult {
    return builder.getIndexAttr(value);
  };
  if (firstRow != 0)
    history = tensor::ExtractSliceOp::create(
        builder, loc, history, {at(firstRow), at(0)}, {at(rows), at(slots)},
        {at(1), at(1)});
  AffineMap identity = builder.getMultiDimIdentityMap(2);
  AffineMap column = AffineMap::get(2, 0, builder.getAffineDimExpr(1));
  utils::IteratorType iterators[] = {utils::IteratorType::reduction,
                                     utils::IteratorType::parallel};
  auto emit = [&](OpBuilder &inner, Location loc, ValueRange args) {
    ScalarRule scalar(loc, inner, rule);
    Value key = scalar.update.getKey(scalar.magnitude(args[0]));
    linalg::YieldOp::create(scalar.b, scalar.arithmetic.max(args[1], key));
  };
  return linalg::GenericOp::create(builder, loc, init.getType(), history, init,
                                   ArrayRef{identity, column}, iterators, emit)
      .getResult(0);
}

SmallVector<Value> DelayedAttr::buildTensorUpdate(OpBuilder &builder,
                                                  Location loc, Value maxFinite,
                                                  Value scale, Value amax,
                                                  ValueRange state) const {
  DelayedRule rule = getRule(*this);
  Value newHistory = buildHistory(builder, loc, rule, amax, state.front());
  // Row 0 of TE's waits for the update and is no past amax.
  bool isFlax = rule.compat == fp8rt::DelayedCompat::Flax;
  Value past = buildMax(builder, loc, rule, isFlax ? newHistory : state.front(),
                        /*firstRow=*/isFlax ? 0 : 1);
  auto type = cast<RankedTensorType>(scale.getType());
  Value empty = tensor::EmptyOp::create(builder, loc, type.getShape(),
                                        type.getElementType());
  SmallVector<AffineMap> maps(5, builder.getMultiDimIdentityMap(1));
  auto emit = [&](OpBuilder &inner, Location loc, ValueRange args) {
    ScalarRule scalar(loc, inner, rule);
    Value window = scalar.update.getWindow(args[2], scalar.magnitude(args[1]));
    linalg::YieldOp::create(scalar.b,
                            scalar.update.getScale(window, args[3], args[0]));
  };
  auto newScale = linalg::GenericOp::create(
      builder, loc, type, ValueRange{scale, amax, past, maxFinite}, empty, maps,
      utils::IteratorType::parallel, emit);
  return {newScale.getResult(0), newHistory};
}

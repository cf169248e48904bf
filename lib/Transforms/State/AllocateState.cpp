//===- AllocateState.cpp - Slots of the scaling state ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: quantizes whose recipe has state. Leaves: the same with the scale of
// a slot, their amax recorded, functions that take the state, and the table of
// slots on the module.
//
// Functions whose slots are relative to their caller's take, after the state,
// the slot where theirs begin.
//
// Before that private functions get the group of those that call them: whose
// amaxes ranks share must not depend on how a program was cut into functions.
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/StateSlots.h"
#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-allocate-state"

namespace mlir::fp8 {
#define GEN_PASS_DEF_ALLOCATESTATEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Where the slots of a scope are.
struct Place {
  const StateScope &scope;
  /// Index in the table of every offset; empty if offsets count from `first`.
  ArrayRef<int64_t> indices;
  Value first;
  Value state;

  Value getSlot(OpBuilder &builder, Location loc, Operation *op) const;
};

struct AllocateStatePass : fp8::impl::AllocateStatePassBase<AllocateStatePass> {
  using Base::Base;
  void runOnOperation() override;
  void rewrite(func::FuncOp function, StateSlots &slots);
  void rewrite(Region &region, const Place &place, StateSlots &slots);
  void rewrite(QuantizeOp op, const Place &place);
};

} // namespace

Value Place::getSlot(OpBuilder &builder, Location loc, Operation *op) const {
  int64_t offset = scope.offsets.lookup(op);
  if (!indices.empty())
    offset = indices[offset];
  Value constant = arith::ConstantIndexOp::create(builder, loc, offset);
  return first
             ? arith::AddIOp::create(builder, loc, first, constant).getResult()
             : constant;
}

void AllocateStatePass::rewrite(QuantizeOp op, const Place &place) {
  IRRewriter rewriter(op);
  Location loc = op.getLoc();
  RecipeAttrInterface recipe = op.getRecipeAttr();
  ScaledType type = op.getResult().getType();
  RankedTensorType factor = type.getScaleInvType();
  Value slot = place.getSlot(rewriter, loc, op);
  SlotAttr attribute = place.scope.slots[place.scope.offsets.lookup(op)];
  LDBG() << "slot '" << attribute.getName() << "' for " << op;
  if (recipe.roundsStochastically()) {
    auto seedType =
        RankedTensorType::get({ReadSeedOp::kNumWords}, rewriter.getI32Type());
    Value seed = ReadSeedOp::create(rewriter, loc, seedType, place.state, slot);
    rewriter.modifyOpInPlace(op, [&] { op.getSeedMutable().assign(seed); });
    return;
  }
  if (attribute.getCache() != 0) {
    // Neither quantized nor recorded in any other micro-batch.
    auto function = op->getParentOfType<func::FuncOp>();
    auto first = scf::IfOp::create(rewriter, loc, getFirstMicrobatch(function),
                                   /*withElseRegion=*/false);
    auto cached = LoadCachedOp::create(rewriter, loc, type, place.state, slot);
    rewriter.replaceAllUsesWith(op.getResult(), cached);
    rewriter.moveOpBefore(op, first.thenYield());
    rewriter.setInsertionPointAfter(op);
    StoreCachedOp::create(rewriter, loc, op.getResult(), place.state, slot);
    rewriter.setInsertionPoint(op);
    // The contraction that it was named after is no use of it any more.
    op->setAttr(kNameAttrName, rewriter.getStringAttr(attribute.getName()));
    ++numCached;
  }
  auto scales =
      ReadScaleOp::create(rewriter, loc, factor, factor, place.state, slot);
  Value source = op.getSource();
  bool records = !place.scope.readOnly.contains(op);
  DictionaryAttr attributes = op->getDiscardableAttrDictionary();
  auto quantize = rewriter.replaceOpWithNewOp<QuantizeOp>(
      op, type, source, scales.getScale(), scales.getScaleInv(),
      /*tensor_scale_inv=*/Value(), RecipeAttrInterface());
  quantize->setDiscardableAttrs(attributes);
  if (!records)
    return;
  Value amax = AmaxOp::create(rewriter, loc, source, type.getBlock(),
                              recipe.propagatesNaN());
  SmallVector<Value> numbers;
  if (counts) {
    auto measure = MeasureOp::create(rewriter, loc, source, quantize);
    numbers = {measure.getUnderflow(), measure.getSaturated()};
  }
  RecordAmaxOp::create(rewriter, loc, amax, place.state, slot, numbers,
                       /*in_place=*/false);
}

/// Where the slots of the present iteration begin.
static Value getFirstOfIteration(OpBuilder &builder, scf::ForOp op,
                                 Value firstOfLoop, int64_t numSlots) {
  Location loc = op.getLoc();
  Value iteration = arith::SubIOp::create(builder, loc, op.getInductionVar(),
                                          op.getLowerBound());
  iteration = arith::DivUIOp::create(builder, loc, iteration, op.getStep());
  if (!iteration.getType().isIndex())
    iteration = arith::IndexCastUIOp::create(builder, loc,
                                             builder.getIndexType(), iteration);
  Value count = arith::ConstantIndexOp::create(builder, loc, numSlots);
  Value offset = arith::MulIOp::create(builder, loc, iteration, count);
  return arith::AddIOp::create(builder, loc, firstOfLoop, offset);
}

void AllocateStatePass::rewrite(Region &region, const Place &place,
                                StateSlots &slots) {
  region.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!place.scope.offsets.contains(op)) {
      // A call of a function whose slots have fixed places.
      if (auto call = dyn_cast<func::CallOp>(op)) {
        func::FuncOp callee = slots.getCallee(call);
        if (callee && slots.lookup(callee))
          call.getOperandsMutable().append(place.state);
      }
      return WalkResult::advance();
    }
    OpBuilder builder(op);
    if (auto quantize = dyn_cast<QuantizeOp>(op)) {
      rewrite(quantize, place);
      return WalkResult::skip();
    }
    Value first = place.getSlot(builder, op->getLoc(), op);
    if (auto call = dyn_cast<func::CallOp>(op)) {
      call.getOperandsMutable().append({place.state, first});
      return WalkResult::advance();
    }
    auto loop = cast<scf::ForOp>(op);
    const StateScope &body = *slots.lookup(op);
    builder.setInsertionPointToStart(loop.getBody());
    Value firstOfIteration =
        getFirstOfIteration(builder, loop, first, body.slots.size());
    rewrite(loop.getRegion(), {body, {}, firstOfIteration, place.state}, slots);
    return WalkResult::skip();
  });
}

void AllocateStatePass::rewrite(func::FuncOp function, StateSlots &slots) {
  const StateScope &scope = *slots.lookup(function);
  auto addArgument = [&](Type type) {
    unsigned index = function.getNumArguments();
    (void)function.insertArgument(index, type, DictionaryAttr(),
                                  function.getLoc());
    return function.getArgument(index);
  };
  Value state = addArgument(StateType::get(&getContext()));
  if (slots.isRelative(function))
    rewrite(function.getBody(),
            {scope, {}, addArgument(IndexType::get(&getContext())), state},
            slots);
  else
    rewrite(function.getBody(),
            {scope, slots.getIndices(function), Value(), state}, slots);
}

static bool quantizes(func::FuncOp function, SymbolTable &symbols,
                      llvm::SmallDenseSet<Operation *> &visited) {
  if (!visited.insert(function).second)
    return false;
  return function
      .walk([&](Operation *op) {
        auto call = dyn_cast<func::CallOp>(op);
        auto callee =
            call ? symbols.lookup<func::FuncOp>(call.getCallee()) : nullptr;
        return WalkResult(
            failure(isa<QuantizeOp>(op) ||
                    (callee && quantizes(callee, symbols, visited))));
      })
      .wasInterrupted();
}

/// Gives private functions without a group that of their callers, who have to
/// agree where it matters.
static LogicalResult inheritGroups(ModuleOp module) {
  SymbolTable symbols(module);
  SmallVector<std::pair<func::CallOp, func::FuncOp>> calls;
  module.walk([&](func::CallOp call) {
    auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
    if (callee && callee.isPrivate() && !callee.isExternal() &&
        !getAmaxGroup(callee))
      calls.push_back({call, callee});
  });
  // A callee may call others.
  bool isChanged;
  do {
    isChanged = false;
    for (auto [call, callee] : calls) {
      StringAttr group = getAmaxGroup(call);
      if (!group || getAmaxGroup(callee))
        continue;
      callee->setAttr(kAmaxGroupAttrName, group);
      isChanged = true;
    }
  } while (isChanged);
  for (auto [call, callee] : calls) {
    StringAttr group = getAmaxGroup(callee), other = getAmaxGroup(call);
    llvm::SmallDenseSet<Operation *> visited;
    if (group == other || !quantizes(callee, symbols, visited))
      continue;
    InFlightDiagnostic error = call.emitError("expected all callers of '")
                               << callee.getName() << "' to have the same "
                               << kAmaxGroupAttrName << ", but got ";
    return other ? error << other << " and " << group
                 : error << "none and " << group;
  }
  return success();
}

void AllocateStatePass::runOnOperation() {
  ModuleOp module = getOperation();
  if (failed(inheritGroups(module)))
    return signalPassFailure();
  StateSlots slots(cacheWeights);
  if (failed(slots.compute(module)))
    return signalPassFailure();
  SmallVector<func::FuncOp> functions = llvm::filter_to_vector(
      module.getOps<func::FuncOp>(),
      [&](func::FuncOp function) { return slots.lookup(function) != nullptr; });
  if (functions.empty())
    return;
  if (module->hasAttr(kStateAttrName)) {
    emitError(module.getLoc(), "expected no quantize whose recipe has state in "
                               "a module that has '")
        << kStateAttrName << "' already";
    return signalPassFailure();
  }
  for (func::FuncOp function : functions) {
    auto uses = SymbolTable::getSymbolUses(function, module);
    for (SymbolTable::SymbolUse use : *uses)
      if (!isa<func::CallOp>(use.getUser())) {
        use.getUser()->emitOpError("expected '")
            << function.getName()
            << "', which uses scaling state, to be called directly";
        return signalPassFailure();
      }
  }

  for (func::FuncOp function : functions)
    rewrite(function, slots);
  if (StateTableAttr table = slots.getTable()) {
    module->setAttr(kStateAttrName, table);
    numSlots += table.getNumSlots();
  }
}

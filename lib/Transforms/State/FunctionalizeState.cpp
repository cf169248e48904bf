//===- FunctionalizeState.cpp - Scaling state as ordinary tensors ---------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: functions that take a state. Leaves: functions of tensors alone. The
// amaxes of a step are one tensor that is handed from each operation that
// records to the next, through loops, branches and calls.
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8CollectiveOps.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FUNCTIONALIZESTATEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// The state inside a function: what is read, and what has been recorded where
/// the rewrite stands.
struct Rows {
  Value scale, amax;
  /// The seeds of a recipe that rounds stochastically, slots x words.
  Value words;
};

struct FunctionalizeStatePass
    : fp8::impl::FunctionalizeStatePassBase<FunctionalizeStatePass> {
  using Base::Base;
  void runOnOperation() override;

  LogicalResult rewrite(func::FuncOp function);
  LogicalResult rewrite(Block &block, Rows &rows);
  void rewrite(ReadScaleOp op, const Rows &rows);
  void rewrite(ReadSeedOp op, const Rows &rows);
  LogicalResult rewrite(RecordAmaxOp op, Rows &rows);
  void rewrite(func::CallOp op, Rows &rows);
  LogicalResult rewrite(scf::ForOp op, Rows &rows);
  LogicalResult rewrite(scf::IfOp op, Rows &rows);
  LogicalResult rewrite(scf::WhileOp op, Rows &rows);

  StateTableAttr table;
  RankedTensorType rowType;
  /// Whether slots have seeds, which functions that are called take as well.
  bool hasSeeds = false;
};

} // namespace

static bool isState(Value value) { return isa<StateType>(value.getType()); }

/// Whether something inside `op` reads or writes a state.
static bool touchesState(Operation *op) {
  return op
      ->walk([&](Operation *inner) {
        return llvm::any_of(inner->getOperands(), isState)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

static Value makeSingle(ImplicitLocOpBuilder &b, RankedTensorType type,
                        Value element) {
  return tensor::FromElementsOp::create(b, type, element);
}

//===----------------------------------------------------------------------===//
// Operations on the state
//===----------------------------------------------------------------------===//

void FunctionalizeStatePass::rewrite(ReadScaleOp op, const Rows &rows) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value scale = tensor::ExtractOp::create(b, rows.scale, op.getSlot());
  Value one = arith::ConstantOp::create(b, b.getF32FloatAttr(1.0f));
  Value scaleInv = arith::DivFOp::create(b, one, scale);
  RankedTensorType type = op.getScale().getType();
  op.getScale().replaceAllUsesWith(makeSingle(b, type, scale));
  op.getScaleInv().replaceAllUsesWith(makeSingle(b, type, scaleInv));
  op.erase();
}

void FunctionalizeStatePass::rewrite(ReadSeedOp op, const Rows &rows) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  SmallVector<Value> words;
  for (int64_t i = 0; i < ReadSeedOp::kNumWords; ++i) {
    Value position = arith::ConstantIndexOp::create(b, i);
    words.push_back(tensor::ExtractOp::create(
        b, rows.words, ValueRange{op.getSlot(), position}));
  }
  Value slot = arith::IndexCastOp::create(b, b.getI32Type(), op.getSlot());
  words.back() = arith::AddIOp::create(b, words.back(), slot);
  op.getSeed().replaceAllUsesWith(
      tensor::FromElementsOp::create(b, op.getSeed().getType(), words));
  op.erase();
}

LogicalResult FunctionalizeStatePass::rewrite(RecordAmaxOp op, Rows &rows) {
  if (!op.getCounts().empty())
    return op.emitOpError("expected no counts: a state of tensors has none");
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value zero = arith::ConstantIndexOp::create(b, 0);
  SmallVector<Value> first(op.getAmax().getType().getRank(), zero);
  Value amax = tensor::ExtractOp::create(b, op.getAmax(), first);
  Value old = tensor::ExtractOp::create(b, rows.amax, op.getSlot());
  // Magnitudes order as their bits do, with NaN above all.
  auto toBits = [&](Value value) -> Value {
    return arith::BitcastOp::create(b, b.getI32Type(), value);
  };
  Value max = arith::MaxUIOp::create(b, toBits(old), toBits(amax));
  Value value = arith::BitcastOp::create(b, b.getF32Type(), max);
  rows.amax = tensor::InsertOp::create(b, value, rows.amax, op.getSlot());
  op.erase();
  return success();
}

void FunctionalizeStatePass::rewrite(func::CallOp op, Rows &rows) {
  OpBuilder b(op);
  SmallVector<Value> operands;
  for (Value operand : op.getOperands()) {
    if (!isState(operand)) {
      operands.push_back(operand);
      continue;
    }
    operands.append({rows.scale, rows.amax});
    if (rows.words)
      operands.push_back(rows.words);
  }
  SmallVector<Type> types(op.getResultTypes());
  types.push_back(rowType);
  auto call =
      func::CallOp::create(b, op.getLoc(), op.getCallee(), types, operands);
  call->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  op->replaceAllUsesWith(call->getResults().drop_back());
  rows.amax = call->getResults().back();
  op.erase();
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

/// What a loop yields for a carried value that nothing has changed yet.
static SmallVector<Value> yieldUnchanged(OpBuilder &, Location,
                                         ArrayRef<BlockArgument> added) {
  return SmallVector<Value>(added.begin(), added.end());
}

/// Sets what the last carried value becomes at the end of `block`.
static void setLastOperand(Block &block, Value value) {
  Operation *terminator = block.getTerminator();
  terminator->setOperand(terminator->getNumOperands() - 1, value);
}

LogicalResult FunctionalizeStatePass::rewrite(scf::ForOp op, Rows &rows) {
  IRRewriter rewriter(op);
  auto loop = cast<scf::ForOp>(*op.replaceWithAdditionalYields(
      rewriter, rows.amax, /*replaceInitOperandUsesInLoop=*/false,
      yieldUnchanged));
  Rows inner{rows.scale, loop.getRegionIterArgs().back(), rows.words};
  if (failed(rewrite(*loop.getBody(), inner)))
    return failure();
  setLastOperand(*loop.getBody(), inner.amax);
  rows.amax = loop.getResults().back();
  return success();
}

LogicalResult FunctionalizeStatePass::rewrite(scf::WhileOp op, Rows &rows) {
  IRRewriter rewriter(op);
  // The condition hands on what its own region may have recorded.
  SmallVector<Value> inits(op.getInits());
  inits.push_back(rows.amax);
  SmallVector<Type> types(op.getResultTypes());
  types.push_back(rowType);
  auto loop = scf::WhileOp::create(rewriter, op.getLoc(), types, inits);
  loop->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  loop.getBefore().takeBody(op.getBefore());
  loop.getAfter().takeBody(op.getAfter());
  for (Region *region : {&loop.getBefore(), &loop.getAfter()}) {
    Block &block = region->front();
    Rows inner{rows.scale, block.addArgument(rowType, op.getLoc()), rows.words};
    if (failed(rewrite(block, inner)))
      return failure();
    Operation *terminator = block.getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), inner.amax);
  }
  op->replaceAllUsesWith(loop->getResults().drop_back());
  rows.amax = loop->getResults().back();
  op.erase();
  return success();
}

LogicalResult FunctionalizeStatePass::rewrite(scf::IfOp op, Rows &rows) {
  OpBuilder builder(op);
  SmallVector<Type> types(op.getResultTypes());
  types.push_back(rowType);
  auto branch = scf::IfOp::create(builder, op.getLoc(), types,
                                  op.getCondition(), /*withElseRegion=*/true);
  branch->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  for (auto [from, to] :
       {std::pair(&op.getThenRegion(), &branch.getThenRegion()),
        {&op.getElseRegion(), &branch.getElseRegion()}}) {
    if (!from->empty())
      to->takeBody(*from);
    else if (to->empty())
      to->emplaceBlock();
    Block &block = to->front();
    if (block.empty() || !block.back().hasTrait<OpTrait::IsTerminator>()) {
      OpBuilder atEnd = OpBuilder::atBlockEnd(&block);
      scf::YieldOp::create(atEnd, op.getLoc());
    }
    Rows inner = rows;
    if (failed(rewrite(block, inner)))
      return failure();
    Operation *terminator = block.getTerminator();
    terminator->insertOperands(terminator->getNumOperands(), inner.amax);
  }
  op->replaceAllUsesWith(branch->getResults().drop_back());
  rows.amax = branch->getResults().back();
  op.erase();
  return success();
}

LogicalResult FunctionalizeStatePass::rewrite(Block &block, Rows &rows) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto read = dyn_cast<ReadScaleOp>(op)) {
      rewrite(read, rows);
    } else if (auto read = dyn_cast<ReadSeedOp>(op)) {
      rewrite(read, rows);
    } else if (auto record = dyn_cast<RecordAmaxOp>(op)) {
      if (failed(rewrite(record, rows)))
        return failure();
    } else if (!touchesState(&op)) {
      continue;
    } else if (auto call = dyn_cast<func::CallOp>(op)) {
      rewrite(call, rows);
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      if (failed(rewrite(loop, rows)))
        return failure();
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (failed(rewrite(branch, rows)))
        return failure();
    } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
      if (failed(rewrite(loop, rows)))
        return failure();
    } else {
      return op.emitOpError("expected scaling state to be used in functions, "
                            "scf.for, scf.if and scf.while only");
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

LogicalResult FunctionalizeStatePass::rewrite(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError("expected scaling state as tensors in structured "
                              "control flow only, but '")
           << function.getName() << "' has several blocks";
  Block &block = function.getBody().front();
  auto *state = llvm::find_if(function.getArguments(), isState);
  unsigned index = state->getArgNumber();
  Location loc = function.getLoc();
  Builder builder(&getContext());
  auto getAttrs = [&](StringRef name) {
    return function.isPublic()
               ? builder.getDictionaryAttr(builder.getNamedAttr(
                     kNameAttrName, builder.getStringAttr(name)))
               : DictionaryAttr();
  };
  // Behind the state: the scales, and what the recipe keeps or, of a function
  // that is called, what its caller has recorded.
  bool isPublic = function.isPublic();
  SmallVector<StateTensor> tensors{{"scale", rowType}},
      kept = table.getUpdate().getStateTensors(table.getNumSlots());
  if (!isPublic)
    tensors.push_back({"amax", rowType});
  if (isPublic || hasSeeds)
    llvm::append_range(tensors, kept);
  SmallVector<DictionaryAttr> attributes;
  for (auto [i, tensor] : llvm::enumerate(tensors)) {
    attributes.push_back(getAttrs(("fp8.state." + tensor.name).str()));
    if (failed(function.insertArgument(index + 1 + i, tensor.type,
                                       attributes.back(), loc)))
      return failure();
  }
  SmallVector<Value> added(
      block.getArguments().slice(index + 1, tensors.size()));
  // What a recipe with seeds keeps are these alone.
  Rows rows{added[0], Value(), hasSeeds ? added.back() : Value()};
  if (isPublic) {
    auto b = ImplicitLocOpBuilder::atBlockBegin(loc, &block);
    rows.amax = arith::ConstantOp::create(b, b.getZeroAttr(rowType));
  } else {
    rows.amax = added[1];
  }
  if (failed(rewrite(block, rows)))
    return failure();

  Operation *terminator = block.getTerminator();
  unsigned numResults = terminator->getNumOperands();
  if (!isPublic) {
    terminator->insertOperands(numResults, rows.amax);
    (void)function.insertResult(numResults, rowType, DictionaryAttr());
  } else {
    OpBuilder b(terminator);
    if (StringAttr group = getAmaxGroup(function))
      rows.amax = AllReduceAmaxOp::create(b, loc, rows.amax, group,
                                          /*size=*/IntegerAttr())
                      .getReduced()
                      .front();
    auto update = UpdateScalesOp::create(b, loc, rows.scale, rows.amax,
                                         ArrayRef(added).drop_front(), table);
    terminator->insertOperands(numResults, update.getResults());
    for (auto [i, tensor] : llvm::enumerate(tensors))
      (void)function.insertResult(numResults + i, tensor.type, attributes[i]);
  }
  (void)function.eraseArgument(index);
  return success();
}

void FunctionalizeStatePass::runOnOperation() {
  ModuleOp module = getOperation();
  table = module->getAttrOfType<StateTableAttr>(kStateAttrName);
  if (!table || !table.getUpdate())
    return;
  if (auto delayed = dyn_cast<DelayedAttr>(table.getRecipe());
      delayed && delayed.getInitial() == InitialScale::Current) {
    emitError(module.getLoc(), "expected no initial=current with scaling state "
                               "as tensors, whose caller gives the first "
                               "scales, but got ")
        << delayed;
    return signalPassFailure();
  }
  hasSeeds = table.getRecipe().roundsStochastically();
  rowType = RankedTensorType::get({table.getNumSlots()},
                                  Float32Type::get(&getContext()));
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() &&
        llvm::any_of(function.getArguments(), isState) &&
        failed(rewrite(function)))
      return signalPassFailure();
  // Nobody has to hold a state for the program any more; what the rows are is
  // with fp8.update_scales.
  module->removeAttr(kStateAttrName);
}

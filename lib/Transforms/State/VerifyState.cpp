//===- VerifyState.cpp - Every tensor updates a slot of its own -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Follows a step of every public function through its calls and loops, with the
// indices of slots as numbers. What each tensor reads and records is known, or
// it is an error that it cannot be.
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_VERIFYSTATEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// What is known about integers on the way: arguments of the function that is
/// followed and induction variables.
struct Environment {
  DenseMap<Value, APInt> values;
  /// Whether a caller repeats a forward.
  bool recomputes = false;

  std::optional<APInt> evaluate(Value value) const;
  std::optional<int64_t> evaluateSlot(Value slot) const {
    std::optional<APInt> index = evaluate(slot);
    return index ? std::optional(index->getSExtValue()) : std::nullopt;
  }
};

/// One step of a public function.
class Step {
public:
  Step(StateTableAttr table, ArrayRef<SlotAttr> slots)
      : table(table), slots(slots) {}
  LogicalResult follow(func::FuncOp function);

private:
  LogicalResult follow(Region &region, Environment &environment);
  LogicalResult follow(scf::ForOp op, Environment &environment);
  LogicalResult follow(func::CallOp op, const Environment &environment);
  LogicalResult check(ReadScaleOp op, const Environment &environment);
  LogicalResult check(ReadSeedOp op, const Environment &environment);
  LogicalResult check(RecordAmaxOp op, const Environment &environment);
  LogicalResult check(Operation *op, Value slot, ScaledType type,
                      const Environment &environment);
  LogicalResult check(QuantizeOp op, const Environment &environment);
  FailureOr<int64_t> getSlot(Operation *op, Value slot,
                             const Environment &environment);

  /// Null for no slots.
  StateTableAttr table;
  ArrayRef<SlotAttr> slots;
  SymbolTableCollection symbols;
  /// Functions that are being followed.
  DenseSet<Operation *> active;
  /// What recorded a slot in this step, and whether it would do so for any
  /// caller.
  DenseMap<int64_t, SmallVector<std::pair<RecordAmaxOp, bool>>> records;
};

struct VerifyStatePass : fp8::impl::VerifyStatePassBase<VerifyStatePass> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

//===----------------------------------------------------------------------===//
// Indices
//===----------------------------------------------------------------------===//

std::optional<APInt> Environment::evaluate(Value value) const {
  if (auto known = values.find(value); known != values.end())
    return known->second;
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant;
  Operation *op = value.getDefiningOp();
  if (!op || !isa<arith::ArithDialect>(op->getDialect()) ||
      op->getNumResults() != 1)
    return std::nullopt;
  // Whatever arithmetic there is: its folder knows it.
  SmallVector<Attribute> operands;
  for (Value operand : op->getOperands()) {
    std::optional<APInt> number = evaluate(operand);
    if (!number)
      return std::nullopt;
    operands.push_back(IntegerAttr::get(operand.getType(), *number));
  }
  SmallVector<OpFoldResult> results;
  if (failed(op->fold(operands, results)) || results.size() != 1)
    return std::nullopt;
  if (auto folded = dyn_cast<Value>(results.front()))
    return folded == value ? std::nullopt : evaluate(folded);
  auto number = dyn_cast<IntegerAttr>(cast<Attribute>(results.front()));
  return number ? std::optional(number.getValue()) : std::nullopt;
}

FailureOr<int64_t> Step::getSlot(Operation *op, Value slot,
                                 const Environment &environment) {
  std::optional<int64_t> index = environment.evaluateSlot(slot);
  if (!index)
    return op->emitOpError("expected a slot that follows from constants, "
                           "arguments of private functions and induction "
                           "variables of loops with constant bounds");
  if (*index < 0 || *index >= static_cast<int64_t>(slots.size()))
    return op->emitOpError("expected a slot of the ")
           << slots.size() << " in the module's '" << kStateAttrName
           << "', but got " << *index;
  return *index;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

LogicalResult Step::check(ReadScaleOp op, const Environment &environment) {
  return getSlot(op, op.getSlot(), environment);
}

/// Words of other recipes are no seeds. Two tensors of one seed are rounded
/// with the same numbers, which is no error of either.
LogicalResult Step::check(ReadSeedOp op, const Environment &environment) {
  if (failed(getSlot(op, op.getSlot(), environment)))
    return failure();
  if (!table.getRecipe().roundsStochastically())
    return op.emitOpError("expected a state whose recipe rounds "
                          "stochastically, but got one of ")
           << table.getRecipe();
  return success();
}

/// A cache has to be of the type that is stored to it and loaded from it.
LogicalResult Step::check(Operation *op, Value slot, ScaledType type,
                          const Environment &environment) {
  FailureOr<int64_t> index = getSlot(op, slot, environment);
  if (failed(index))
    return failure();
  SlotAttr attribute = slots[*index];
  if (attribute.getFormat() != type.getElementType() ||
      attribute.getCache() != type.getCacheSize())
    return op->emitOpError("expected slot '")
           << attribute.getName() << "' to have a cache of "
           << *type.getCacheSize() << " bytes of " << type.getElementType()
           << ", but got " << attribute.getCache() << " of "
           << attribute.getFormat();
  return success();
}

LogicalResult Step::check(QuantizeOp op, const Environment &environment) {
  if (op.isUnresolved())
    return success();
  auto read = op.getScale().getDefiningOp<ReadScaleOp>();
  auto inverse = op.getScaleInv().getDefiningOp<ReadScaleOp>();
  if (!read && !inverse)
    return success();
  if (!read || read != inverse || op.getScale() != read.getScale() ||
      op.getScaleInv() != read.getScaleInv())
    return op.emitOpError(
        "expected scale and scale_inv from the same fp8.read_scale");
  FailureOr<int64_t> slot = getSlot(read, read.getSlot(), environment);
  if (failed(slot))
    return failure();
  Type format = op.getResult().getType().getElementType();
  if (slots[*slot].getFormat() != format)
    return op.emitOpError("expected the format of slot '")
           << slots[*slot].getName() << "', " << slots[*slot].getFormat()
           << ", but got " << format;
  return success();
}

/// The quantize of the tensor whose amax `op` records, with the scale of the
/// slot `index`.
static bool isOfOwnTensor(RecordAmaxOp op, int64_t index,
                          const Environment &environment) {
  auto amax = op.getAmax().getDefiningOp<AmaxOp>();
  return amax &&
         llvm::any_of(amax.getSource().getUsers(), [&](Operation *user) {
           auto quantize = dyn_cast<QuantizeOp>(user);
           if (!quantize || quantize.isUnresolved())
             return false;
           auto read = quantize.getScale().getDefiningOp<ReadScaleOp>();
           return read && environment.evaluateSlot(read.getSlot()) == index;
         });
}

LogicalResult Step::check(RecordAmaxOp op, const Environment &environment) {
  FailureOr<int64_t> slot = getSlot(op, op.getSlot(), environment);
  if (failed(slot))
    return failure();
  StringRef name = slots[*slot].getName();
  if (!isOfOwnTensor(op, *slot, environment))
    return op.emitOpError("expected the amax of a tensor that is quantized "
                          "with the scale of slot '")
           << name << "'";
  // The forward it repeats has recorded the same.
  if (environment.recomputes)
    return success();
  bool isShared = Environment().evaluate(op.getSlot()).has_value();
  auto &others = records[*slot];
  for (auto [other, otherIsShared] : others) {
    if (other == op && isShared)
      return success();
    if (insideMutuallyExclusiveRegions(op, other))
      continue;
    InFlightDiagnostic diagnostic = op.emitOpError("expected one tensor to "
                                                   "record slot '")
                                    << name << "' in a step, but got another";
    diagnostic.attachNote(other.getLoc()) << "the first one is here";
    return diagnostic;
  }
  others.emplace_back(op, isShared);
  return success();
}

//===----------------------------------------------------------------------===//
// A step
//===----------------------------------------------------------------------===//

LogicalResult Step::follow(func::CallOp op, const Environment &environment) {
  auto callee =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(op, op.getCalleeAttr());
  if (!callee || callee.isExternal() ||
      !llvm::any_of(callee.getArgumentTypes(), llvm::IsaPred<StateType>))
    return success();
  if (!active.insert(callee).second)
    return op.emitOpError("expected no recursion among functions with scaling "
                          "state, but '")
           << callee.getName() << "' calls itself";
  Environment inner;
  inner.recomputes = environment.recomputes || op->hasAttr(kRecomputeAttrName);
  for (auto [operand, argument] :
       llvm::zip_equal(op.getOperands(), callee.getArguments()))
    if (operand.getType().isIntOrIndex())
      if (std::optional<APInt> number = environment.evaluate(operand))
        inner.values.try_emplace(argument, *number);
  LogicalResult result = follow(callee.getBody(), inner);
  active.erase(callee);
  return result;
}

/// Whether a slot somewhere in `op` follows from its induction variable.
static bool hasSlotsByIteration(scf::ForOp op, const Environment &environment) {
  if (op.getInductionVar().use_empty())
    return false;
  return op.getBody()
      ->walk([&](Operation *inner) {
        // Calls hand on where slots begin as an index.
        if (isa<ReadScaleOp, ReadSeedOp, RecordAmaxOp, StoreCachedOp,
                LoadCachedOp, func::CallOp>(inner))
          for (Value operand : inner->getOperands())
            if (operand.getType().isIndex() && !environment.evaluate(operand))
              return WalkResult::interrupt();
        return WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult Step::follow(scf::ForOp op, Environment &environment) {
  std::optional<APInt> lower = environment.evaluate(op.getLowerBound());
  std::optional<APInt> step = environment.evaluate(op.getStep());
  std::optional<APInt> count = op.getStaticTripCount();
  // Without any of them a slot that needs it is an error where it is used.
  if (!lower || !step || !count || !hasSlotsByIteration(op, environment))
    return follow(op.getRegion(), environment);
  APInt value = *lower;
  for (uint64_t i = 0, e = count->getZExtValue(); i < e; ++i, value += *step) {
    environment.values[op.getInductionVar()] = value;
    if (failed(follow(op.getRegion(), environment)))
      return failure();
  }
  environment.values.erase(op.getInductionVar());
  return success();
}

LogicalResult Step::follow(Region &region, Environment &environment) {
  WalkResult result =
      region.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
        if (auto quantize = dyn_cast<QuantizeOp>(op))
          return check(quantize, environment);
        if (auto read = dyn_cast<ReadScaleOp>(op))
          return check(read, environment);
        if (auto read = dyn_cast<ReadSeedOp>(op))
          return check(read, environment);
        if (auto record = dyn_cast<RecordAmaxOp>(op))
          return check(record, environment);
        if (auto store = dyn_cast<StoreCachedOp>(op))
          return check(op, store.getSlot(), store.getSource().getType(),
                       environment);
        if (auto load = dyn_cast<LoadCachedOp>(op))
          return check(op, load.getSlot(), load.getResult().getType(),
                       environment);
        if (auto call = dyn_cast<func::CallOp>(op))
          return follow(call, environment);
        if (auto loop = dyn_cast<scf::ForOp>(op))
          return failed(follow(loop, environment)) ? WalkResult::interrupt()
                                                   : WalkResult::skip();
        return WalkResult::advance();
      });
  return failure(result.wasInterrupted());
}

LogicalResult Step::follow(func::FuncOp function) {
  active.insert(function);
  Environment environment;
  return follow(function.getBody(), environment);
}

void VerifyStatePass::runOnOperation() {
  ModuleOp module = getOperation();
  SmallVector<SlotAttr> slots;
  auto table = module->getAttrOfType<StateTableAttr>(kStateAttrName);
  if (table)
    llvm::append_range(slots, table.getSlotRange());
  for (auto function : module.getOps<func::FuncOp>())
    if (!function.isExternal() && function.isPublic() &&
        failed(Step(table, slots).follow(function)))
      return signalPassFailure();
}

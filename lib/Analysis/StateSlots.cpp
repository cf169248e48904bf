//===- StateSlots.cpp - What a program keeps from step to step ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/StateSlots.h"
#include "fp8/Analysis/QuantizeUses.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static bool isMarkedWeight(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  return function &&
         function.getArgAttr(argument.getArgNumber(), kWeightAttrName);
}

static StringRef getGivenName(Operation *op) {
  auto name = op->getAttrOfType<StringAttr>(kNameAttrName);
  return name ? name.getValue() : StringRef();
}

/// `base`, with a number if the scope has that already.
static std::string makeName(StringRef base, const StateScope &scope) {
  std::string name = base.str();
  for (unsigned i = 1; scope.owners.contains(name); ++i)
    name = (base + "_" + Twine(i)).str();
  return name;
}

static SlotAttr rename(SlotAttr slot, const Twine &prefix) {
  return SlotAttr::get(slot.getContext(), (prefix + "." + slot.getName()).str(),
                       slot.getFormat(), slot.getRole(), slot.getOperand(),
                       slot.getCache());
}

//===----------------------------------------------------------------------===//
// Collect
//===----------------------------------------------------------------------===//

/// One state has one recipe for its update.
LogicalResult StateSlots::checkRecipe(QuantizeOp op) {
  RecipeAttrInterface other = op.getRecipeAttr().getStateRecipe();
  if (!recipe) {
    recipe = other;
    recipeLoc = op.getLoc();
  }
  if (recipe == other)
    return success();
  InFlightDiagnostic diagnostic =
      op.emitOpError("expected one recipe for all scaling state of the module, "
                     "but got ")
      << other << " and " << recipe;
  diagnostic.attachNote(*recipeLoc) << "the other one is here";
  return diagnostic;
}

LogicalResult StateSlots::add(QuantizeOp op, StateScope &scope) {
  if (failed(checkRecipe(op)))
    return failure();
  ScaledType type = op.getResult().getType();
  bool hasSeed = op.getRecipeAttr().roundsStochastically();
  if (!hasSeed && (!type.isPerTensor() || !type.getScaleType().isF32()))
    return op.emitOpError("expected a recipe with state to have one f32 scale "
                          "for the tensor, but got ")
           << type;

  std::optional<GemmUse> use = getNamingUse(op.getResult());
  OperandKind kind = use && use->getKind()            ? *use->getKind()
                     : isMarkedWeight(op.getSource()) ? OperandKind::Weight
                                                      : OperandKind::Activation;
  bool recomputes = use && use->gemm->hasAttr(kRecomputeAttrName);
  std::string name = getTensorName(op);
  if (name.empty())
    name = makeName("quantize", scope);

  // One that only reads its slot is not cached either.
  bool isReadOnly =
      recomputes || !isa<StateUpdateAttrInterface>(op.getRecipeAttr());
  int64_t cache = 0;
  if (cacheWeights && kind == OperandKind::Weight && !isReadOnly && !hasSeed &&
      getFirstMicrobatch(op->getParentOfType<func::FuncOp>()))
    cache = type.getCacheSize().value_or(0);
  auto slot =
      SlotAttr::get(op.getContext(), name, type.getElementType(),
                    use ? use->getRole() : GemmRole::Fprop, kind, cache);
  if (isReadOnly)
    scope.readOnly.insert(op);
  auto [owner, isNew] = scope.owners.try_emplace(name, op);
  if (!isNew) {
    auto known = scope.offsets.find(owner->second);
    if (recomputes && known != scope.offsets.end() &&
        scope.slots[known->second].getFormat() == slot.getFormat()) {
      scope.offsets[op] = known->second;
      return success();
    }
    InFlightDiagnostic diagnostic =
        op.emitOpError("expected one tensor for slot '")
        << name << "', but got another one; give each contraction a fp8.name "
        << "of its own, or mark one that repeats a forward as fp8.recompute";
    diagnostic.attachNote(owner->second->getLoc()) << "the first one is here";
    return diagnostic;
  }
  scope.needsState = true;
  scope.offsets[op] = scope.slots.size();
  scope.slots.push_back(slot);
  return success();
}

/// `slots` as a run of offsets of the scope, with `name` in front.
LogicalResult StateSlots::addRun(Operation *op, StringRef name,
                                 ArrayRef<SlotAttr> slots, StateScope &scope) {
  scope.offsets[op] = scope.slots.size();
  for (SlotAttr slot : slots) {
    slot = rename(slot, name);
    // A dot in a contraction's own name can make it look like a call's.
    auto [owner, isNew] = scope.owners.try_emplace(slot.getName(), op);
    if (!isNew) {
      InFlightDiagnostic diagnostic = op->emitOpError("expected one tensor for "
                                                      "slot '")
                                      << slot.getName()
                                      << "', but got another one";
      diagnostic.attachNote(owner->second->getLoc()) << "the first one is here";
      return diagnostic;
    }
    scope.slots.push_back(slot);
  }
  return success();
}

LogicalResult StateSlots::add(func::CallOp op, StateScope &scope) {
  func::FuncOp callee = getCallee(op);
  if (!callee)
    return success();
  if (active.contains(callee)) {
    // An error if it turns out to need state.
    recursiveCalls.emplace_back(op, callee);
    return success();
  }
  if (failed(collect(callee)))
    return failure();
  const StateScope *inner = lookup(callee);
  if (!inner)
    return success();
  scope.needsState = true;
  if (!isRelative(callee))
    return success();

  StringRef given = getGivenName(op);
  std::string name =
      given.empty() ? makeName(callee.getName(), scope) : given.str();
  auto [owner, isNew] = scope.owners.try_emplace(name, op);
  if (!isNew) {
    auto first = dyn_cast<func::CallOp>(owner->second);
    if (op->hasAttr(kRecomputeAttrName) && first &&
        first.getCallee() == op.getCallee()) {
      scope.offsets[op] = scope.offsets[first];
      return success();
    }
    InFlightDiagnostic diagnostic =
        op.emitOpError("expected one call with the name '")
        << name << "', but got another one; mark one that repeats a forward as "
        << "fp8.recompute";
    diagnostic.attachNote(owner->second->getLoc()) << "the first one is here";
    return diagnostic;
  }
  return addRun(op, name, inner->slots, scope);
}

/// Number of iterations; nothing if it shows at run time only.
static std::optional<int64_t> getTripCount(scf::ForOp op) {
  std::optional<APInt> count = op.getStaticTripCount();
  if (!count || !count->isSignedIntN(32))
    return std::nullopt;
  return count->getSExtValue();
}

LogicalResult StateSlots::add(scf::ForOp op, StateScope &scope) {
  auto &inner = scopes[op];
  inner = std::make_unique<StateScope>();
  // The map grows while inner loops are collected, the scope stays.
  StateScope &body = *inner;
  if (failed(collect(op.getRegion(), body)))
    return failure();
  if (!body.needsState)
    return success();
  scope.needsState = true;
  std::optional<int64_t> count = getTripCount(op);
  if (!count || *count < 1)
    return op.emitOpError("expected constant bounds and step and at least one "
                          "iteration, since each has slots of its own");
  StringRef given = getGivenName(op);
  std::string name = makeName(given.empty() ? "for" : given, scope);
  scope.owners.try_emplace(name, op);
  SmallVector<SlotAttr> slots;
  for (int64_t i = 0; i < *count; ++i)
    for (SlotAttr slot : body.slots)
      slots.push_back(rename(slot, Twine(i)));
  return addRun(op, name, slots, scope);
}

LogicalResult StateSlots::collect(Region &region, StateScope &scope) {
  WalkResult result =
      region.walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
        if (auto quantize = dyn_cast<QuantizeOp>(op)) {
          if (quantize.isUnresolved() && quantize.getRecipeAttr().isStateful())
            return add(quantize, scope);
        } else if (auto call = dyn_cast<func::CallOp>(op)) {
          return add(call, scope);
        } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
          auto slots = op->getAttrOfType<StringAttr>(kSlotsAttrName);
          if (slots && slots.getValue() == "separate")
            return failed(add(loop, scope)) ? WalkResult::interrupt()
                                            : WalkResult::skip();
        }
        return WalkResult::advance();
      });
  return failure(result.wasInterrupted());
}

LogicalResult StateSlots::collect(func::FuncOp function) {
  if (scopes.contains(function))
    return success();
  auto scope = std::make_unique<StateScope>();
  active.insert(function);
  LogicalResult result = collect(function.getBody(), *scope);
  active.erase(function);
  scopes[function] = std::move(scope);
  return result;
}

//===----------------------------------------------------------------------===//
// Assign
//===----------------------------------------------------------------------===//

/// Gives the slots of a function with absolute offsets their places in the
/// table. Public functions share what has the same name: training and
/// evaluation of one model.
LogicalResult StateSlots::assign(func::FuncOp function) {
  const StateScope &scope = *scopes[function];
  SmallVector<int64_t> &places = indices[function];
  for (SlotAttr slot : scope.slots) {
    if (!function.isPublic())
      slot = rename(slot, function.getName());
    auto [entry, isNew] = tableByName.try_emplace(slot.getName(), table.size(),
                                                  function.getOperation());
    auto [index, owner] = entry->second;
    if (isNew)
      table.push_back(slot);
    if (!isNew &&
        cast<SlotAttr>(table[index]).getFormat() != slot.getFormat()) {
      InFlightDiagnostic diagnostic =
          function.emitError("expected slot '")
          << slot.getName() << "' to have one format, but got "
          << slot.getFormat() << " here and "
          << cast<SlotAttr>(table[index]).getFormat() << " in another function";
      diagnostic.attachNote(owner->getLoc()) << "the other function";
      return diagnostic;
    }
    places.push_back(index);
  }
  // The slots of a call or a loop lie together, wherever they are.
  for (auto [op, offset] : scope.offsets) {
    int64_t count = 1;
    if (auto call = dyn_cast<func::CallOp>(op))
      count = lookup(getCallee(call))->slots.size();
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      count = lookup(op)->slots.size() * *getTripCount(loop);
    for (int64_t i = 1; i < count; ++i)
      if (places[offset + i] != places[offset] + i)
        return op->emitOpError("expected its slots to lie together, but "
                               "another function has '")
               << scope.slots[offset + i].getName()
               << "' in another order; give them other names";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

Value fp8::getFirstMicrobatch(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments())
    if (argument.getType().isInteger(1) &&
        function.getArgAttr(argument.getArgNumber(), kFirstMicrobatchAttrName))
      return argument;
  return {};
}

LogicalResult StateSlots::compute(ModuleOp module) {
  SmallVector<func::FuncOp> functions;
  for (auto function : module.getOps<func::FuncOp>()) {
    if (function.isExternal())
      continue;
    functions.push_back(function);
    if (failed(collect(function)))
      return failure();
  }
  for (auto [call, callee] : recursiveCalls)
    if (lookup(callee))
      return call->emitOpError("expected no recursion among functions with "
                               "scaling state, but '")
             << cast<func::FuncOp>(callee).getName() << "' calls itself";
  for (func::FuncOp function : functions)
    if (lookup(function) && !isRelative(function) && failed(assign(function)))
      return failure();
  return success();
}

const StateScope *StateSlots::lookup(Operation *op) const {
  auto scope = scopes.find(op);
  return scope != scopes.end() && scope->second->needsState
             ? scope->second.get()
             : nullptr;
}

func::FuncOp StateSlots::getCallee(func::CallOp call) {
  auto callee =
      symbols.lookupNearestSymbolFrom<func::FuncOp>(call, call.getCalleeAttr());
  return callee && !callee.isExternal() ? callee : func::FuncOp();
}

bool StateSlots::isRelative(func::FuncOp function) const {
  auto slots = function->getAttrOfType<StringAttr>(kSlotsAttrName);
  const StateScope *scope = lookup(function);
  return scope && !scope->slots.empty() && !function.isPublic() &&
         !(slots && slots.getValue() == "shared");
}

ArrayRef<int64_t> StateSlots::getIndices(func::FuncOp function) const {
  return indices.find(function)->second;
}

StateTableAttr StateSlots::getTable() const {
  if (table.empty())
    return {};
  MLIRContext *context = recipe.getContext();
  return StateTableAttr::get(context, recipe, ArrayAttr::get(context, table));
}

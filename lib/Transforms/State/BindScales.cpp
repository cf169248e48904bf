//===- BindScales.cpp - Scales of a saved state as constants --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: functions that read scales from a state of the recipe `static`.
// Leaves: functions with constant scales and without a state.
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/Formats.h"
#include "fp8/Runtime/SavedScales.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_BINDSCALESPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// Scales by slot.
struct Scales {
  SmallVector<float> scale, scaleInv;
};

struct BindScalesPass : fp8::impl::BindScalesPassBase<BindScalesPass> {
  using Base::Base;
  void runOnOperation() override;
};

} // namespace

/// The name of `scales` that is spelled most like `name`.
static StringRef findNearest(StringRef name,
                             ArrayRef<fp8rt::SavedScale> scales) {
  StringRef nearest;
  unsigned best = ~0u;
  for (const fp8rt::SavedScale &scale : scales)
    if (unsigned distance = name.edit_distance(scale.name); distance < best) {
      best = distance;
      nearest = scale.name;
    }
  return nearest;
}

/// The scale of every slot of `table`; errors name the file.
static FailureOr<Scales> readScales(ModuleOp module, StateTableAttr table,
                                    StringRef path) {
  // At the location only: nobody wants the module with it.
  auto emitError = [&] { return mlir::emitError(module.getLoc()); };
  std::vector<fp8rt::SavedScale> saved;
  std::string message;
  if (!fp8rt::readSavedScales(path.str(), saved, message))
    return emitError() << message;
  llvm::StringMap<const fp8rt::SavedScale *> byName;
  for (const fp8rt::SavedScale &scale : saved)
    byName.try_emplace(scale.name, &scale);

  Scales scales;
  for (SlotAttr slot : table.getSlotRange()) {
    StringRef name = slot.getName();
    const fp8rt::SavedScale *found = byName.lookup(name);
    if (!found) {
      InFlightDiagnostic diagnostic = emitError();
      diagnostic << path << ": expected slot '" << name << "', but got none";
      if (!saved.empty())
        diagnostic << "; the nearest is '" << findNearest(name, saved) << "'";
      return diagnostic;
    }
    StringRef format = getFormatName(slot.getFormat());
    if (found->format != format)
      return emitError() << path << ": expected slot '" << name << "' to be "
                         << format << ", but got " << found->format;
    if (!(found->scale > 0.0f) ||
        found->scale > std::numeric_limits<float>::max())
      return emitError() << path << ": expected the scale of slot '" << name
                         << "' to be finite and above 0, but got "
                         << found->scale;
    if (found->recorded == 0)
      emitWarning(module.getLoc())
          << path << ": slot '" << name
          << "' has never seen a tensor; its scale is " << found->scale;
    scales.scale.push_back(found->scale);
    scales.scaleInv.push_back(found->scaleInv);
  }
  return scales;
}

/// The factor of a slot as a tensor of `type`: a constant, or, where the slot
/// depends on the caller or the iteration, an element of one.
static Value buildFactor(OpBuilder &builder, ReadScaleOp op,
                         ArrayRef<float> factors, RankedTensorType type) {
  Location loc = op.getLoc();
  APInt slot;
  if (matchPattern(op.getSlot(), m_ConstantInt(&slot)))
    return arith::ConstantOp::create(
        builder, loc,
        DenseElementsAttr::get(type, factors[slot.getZExtValue()]));
  auto rowType = RankedTensorType::get(factors.size(), builder.getF32Type());
  Value row = arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(rowType, factors));
  Value factor = tensor::ExtractOp::create(builder, loc, row, op.getSlot());
  return tensor::FromElementsOp::create(builder, loc, type, factor);
}

static bool isState(Value value) { return isa<StateType>(value.getType()); }

void BindScalesPass::runOnOperation() {
  ModuleOp module = getOperation();
  auto table = module->getAttrOfType<StateTableAttr>(kStateAttrName);
  auto recipe = table ? dyn_cast<StaticAttr>(table.getRecipe()) : StaticAttr();
  if (!recipe)
    return;
  FailureOr<Scales> scales = readScales(module, table, recipe.getState());
  if (failed(scales))
    return signalPassFailure();

  module.walk([&](ReadScaleOp op) {
    OpBuilder builder(op);
    RankedTensorType type = op.getScale().getType();
    op.getScale().replaceAllUsesWith(
        buildFactor(builder, op, scales->scale, type));
    op.getScaleInv().replaceAllUsesWith(
        buildFactor(builder, op, scales->scaleInv, type));
    op.erase();
    ++numBound;
  });
  module.walk([](func::CallOp op) {
    for (unsigned i = op.getNumOperands(); i-- > 0;)
      if (isState(op.getOperand(i)))
        op->eraseOperand(i);
  });
  for (auto function : module.getOps<func::FuncOp>())
    for (unsigned i = function.getNumArguments(); i-- > 0;)
      if (isa<StateType>(function.getArgumentTypes()[i]))
        (void)function.eraseArgument(i);
  module->removeAttr(kStateAttrName);
}

//===- Acme.cpp - Recipes of another project ------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Acme.h"

#include "fp8/IR/FP8Types.h"
#include "fp8/IR/ScalarBuilder.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace acme;

#include "AcmeDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "AcmeAttrs.cpp.inc"

void AcmeDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "AcmeAttrs.cpp.inc"
      >();
}

void AcmeDialect::initialize() { registerAttributes(); }

void acme::registerAcme(DialectRegistry &registry) {
  registry.insert<AcmeDialect>();
  registry.addExtension(+[](MLIRContext *context, fp8::FP8Dialect *dialect) {
    context->getOrLoadDialect<AcmeDialect>();
    dialect->addRecipes<PowersAttr, MovingMaxAttr>();
  });
}

/// One f32 scale for the tensor.
static fp8::OperandFormat getPerTensor(MLIRContext *context, fp8::Format format,
                                       fp8::OperandKind operand) {
  return {fp8::getElementType(context, format, operand),
          fp8::ScaledType::kWhole, fp8::ScaledType::kWhole,
          Float32Type::get(context)};
}

fp8::OperandFormat
PowersAttr::getOperandFormat(fp8::GemmRole, fp8::OperandKind operand) const {
  return getPerTensor(getContext(), getFormat(), operand);
}

fp8::ScaleRuleAttrInterface PowersAttr::getScaleRule(Type) const {
  return *this;
}

Value PowersAttr::buildScale(fp8::ScalarBuilder &b, Value amax,
                             FloatType format) const {
  Value scale = b.floorToPow2(b.div(b.f32(fp8::getMaxFinite(format)), amax));
  scale = b.mul(scale, b.f32(std::ldexp(1.0f, -getHeadroom())));
  return b.select(b.isPositiveFinite(amax), scale, b.f32(1.0f));
}

fp8::OperandFormat
MovingMaxAttr::getOperandFormat(fp8::GemmRole, fp8::OperandKind operand) const {
  return getPerTensor(getContext(), getFormat(), operand);
}

int64_t MovingMaxAttr::getNumWords() const { return 1; }

Value MovingMaxAttr::buildUpdate(fp8::SlotUpdateBuilder &slot) const {
  Value old = slot.fromBits(slot.loadWord(slot.i32(0)));
  Value amax = slot.fromBits(slot.getAmaxBits());
  Value decayed = slot.mul(old, slot.f32(getDecay().value));
  Value larger = slot.select(
      slot.cmpf(arith::CmpFPredicate::OGT, amax, decayed), amax, decayed);
  // A step without the tensor, or with an Inf or a NaN in it, is none.
  Value next = slot.select(slot.isPositiveFinite(amax), larger, old);
  slot.storeWord(slot.i32(0), slot.bits(next));
  return slot.select(slot.isPositiveFinite(next),
                     slot.div(slot.getMaxFinite(), next), slot.getScale());
}

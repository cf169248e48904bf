//===- ToyDialect.cpp - An operation with a kernel of its own -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Toy.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace toy;

#include "ToyDialect.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "ToyAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "ToyOps.cpp.inc"

void ToyDialect::initialize() {
  registerAttributes();
  addOperations<
#define GET_OP_LIST
#include "ToyOps.cpp.inc"
      >();
}

void ToyDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ToyAttrs.cpp.inc"
      >();
}

std::string ScaleConfigAttr::getLabel() const {
  return "b" + std::to_string(getBlock());
}

FailureOr<std::unique_ptr<KernelSpec>>
ScaleOp::getKernelSpec(std::string &reason) {
  RankedTensorType type = getX().getType();
  if (type.getElementType().isF32() && getFactor().getType().isF32())
    return std::unique_ptr<KernelSpec>(std::make_unique<ScaleSpec>(type));
  llvm::raw_string_ostream(reason)
      << "expected elements and a factor of f32, but got " << type << " and "
      << getFactor().getType();
  return failure();
}

KernelOperands ScaleOp::getKernelOperands(OpBuilder &builder) {
  Value out = tensor::EmptyOp::create(
      builder, getLoc(), tensor::getMixedSizes(builder, getLoc(), getX()),
      getX().getType().getElementType());
  return {/*ins=*/{getX()}, /*captures=*/{getFactor()}, /*outs=*/{out}};
}

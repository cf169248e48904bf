//===- FP8Interfaces.td - Interfaces of the fp8 dialect -----*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8INTERFACES_TD
#define FP8_IR_FP8INTERFACES_TD

include "mlir/IR/OpBase.td"

def FP8_RecipeAttrInterface : AttrInterface<"RecipeAttrInterface"> {
  let cppNamespace = "::mlir::fp8";
  let description = [{
    What the passes ask a recipe. A pass never looks at the kind of a recipe:
    adding one means adding an attribute that answers these questions.
  }];
  let methods = [
    InterfaceMethod<"Mnemonic of the recipe, as written after `#fp8.`.",
      "::llvm::StringRef", "getRecipeName", (ins)>,
    InterfaceMethod<"Whether the op keeps its high-precision type.",
      "bool", "isHighPrecision", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      What has to be equal for tensors to share a scaling state: this recipe
      without what it says of a single operand. Null if scales depend on nothing
      but the present tensor.
      }],
      "::mlir::fp8::RecipeAttrInterface", "getStateRecipe", (ins), [{}],
      [{ return {}; }]>,
    InterfaceMethod<"Whether the state learns from the tensors of a step.",
      "bool", "recordsAmax", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<"Whether the amax of a tensor that has a NaN is NaN.",
      "bool", "propagatesNaN", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      How an operand of kind `operand` in a GEMM of role `role` is quantised.
      Only called when `isHighPrecision` is false.
      }],
      "::mlir::fp8::OperandFormat", "getOperandFormat",
      (ins "::mlir::fp8::GemmRole":$role,
           "::mlir::fp8::OperandKind":$operand)>,
    InterfaceMethod<[{
      How a scale follows from an amax, for a tensor of `sourceType` elements.
      }],
      "::mlir::fp8::ScaleRule", "getScaleRule", (ins "::mlir::Type":$sourceType)>,
    InterfaceMethod<"K of a contraction has to be a multiple of this.",
      "int64_t", "getContractionMultiple", (ins), [{}], [{ return 16; }]>,
    InterfaceMethod<"Accumulation policy of a GEMM of role `role`.",
      "::mlir::fp8::Accumulate", "getAccumulate",
      (ins "::mlir::fp8::GemmRole":$role), [{}],
      [{ return ::mlir::fp8::Accumulate::Promote; }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// Whether scales come from a scaling state (amax histories).
    bool isStateful() const { return !!$_attr.getStateRecipe(); }
  }];
}

#endif // FP8_IR_FP8INTERFACES_TD

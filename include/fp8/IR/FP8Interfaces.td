//===- FP8Interfaces.td - Interfaces of the fp8 dialect ----*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8INTERFACES_TD
#define FP8_IR_FP8INTERFACES_TD

include "mlir/IR/OpBase.td"

def FP8_ScaleRuleAttrInterface : AttrInterface<"ScaleRuleAttrInterface"> {
  let cppNamespace = "::mlir::fp8";
  let description = [{
    How a scale follows from an amax: the arithmetic of `fp8.compute_scale`, of
    one block, in f32 and i32.
  }];
  let methods = [
    InterfaceMethod<[{
      Whether the rule gives scales that are stored as `scaleType`: f32 or
      f8E8M0FNU. What f8E4M3FN scales are is up to no rule.
      }],
      "bool", "hasScaleType", (ins "::mlir::Type":$scaleType), [{}],
      [{ return scaleType.isF32(); }]>,
    InterfaceMethod<[{
      The f32 factor on the way into codes of `format`, from the f32 `amax` of
      a block. The factor on the way out is its IEEE reciprocal.
      }],
      "::mlir::Value", "buildScale",
      (ins "::mlir::fp8::ScalarBuilder &":$builder, "::mlir::Value":$amax,
           "::mlir::FloatType":$format)>,
    InterfaceMethod<[{
      For `f8E8M0FNU`: the byte of the factor on the way out, as i32. The factor
      on the way in is its reciprocal, which is exact.
      }],
      "::mlir::Value", "buildScaleByte",
      (ins "::mlir::fp8::ScalarBuilder &":$builder, "::mlir::Value":$amax,
           "::mlir::FloatType":$format), [{}],
      [{ llvm_unreachable("the rule gives no f8E8M0FNU scales"); }]>,
  ];
}

def FP8_RecipeAttrInterface : AttrInterface<"RecipeAttrInterface"> {
  let cppNamespace = "::mlir::fp8";
  let description = [{
    What the passes ask a recipe. A pass never looks at the kind of a recipe:
    adding one means adding an attribute that answers these questions, in this
    dialect or another.
  }];
  let methods = [
    StaticInterfaceMethod<"Name and keys of the recipe, for text and files.",
      "const ::fp8rt::RecipeSchema &", "getSchema">,
    InterfaceMethod<"The values of the schema's keys, in its order.",
      "::llvm::SmallVector<::fp8rt::RecipeValue>", "getSettings", (ins)>,
    InterfaceMethod<"Whether the op keeps its high-precision type.",
      "bool", "isHighPrecision", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      What has to be equal for tensors to share a scaling state: this recipe
      without what it says of a single operand. Null if scales depend on nothing
      but the present tensor. One that learns from the tensors of a step is a
      `StateUpdateAttrInterface`; what the state of another is, is known.
      }],
      "::mlir::fp8::RecipeAttrInterface", "getStateRecipe", (ins), [{}],
      [{ return {}; }]>,
    InterfaceMethod<[{
      The recipe of a quantize of such an operand: this one without what is of
      no concern to it, so that operands that are quantized alike are alike.
      }],
      "::mlir::fp8::RecipeAttrInterface", "getOperandRecipe",
      (ins "::mlir::fp8::GemmRole":$role,
           "::mlir::fp8::OperandKind":$operand), [{}], [{ return $_attr; }]>,
    InterfaceMethod<[{
      Whether codes are rounded stochastically, as far as a quantize with this
      recipe goes (`getOperandRecipe`). Scales then follow from amaxes, and what
      the slot of the scaling state has is the seed: its four words, which the
      end of a step changes.
      }],
      "bool", "roundsStochastically", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      Whether both operands of a GEMM of role `role` are rotated along K before
      they are quantized: the `signs` of `fp8.hadamard`, or nothing.
      }],
      "::std::optional<int64_t>", "getHadamardSigns",
      (ins "::mlir::fp8::GemmRole":$role), [{}], [{ return std::nullopt; }]>,
    InterfaceMethod<"Whether the amax of a tensor that has a NaN is NaN.",
      "bool", "propagatesNaN", (ins), [{}], [{ return false; }]>,
    InterfaceMethod<[{
      How an operand of kind `operand` in a GEMM of role `role` is quantized.
      Only called when `isHighPrecision` is false.
      }],
      "::mlir::fp8::OperandFormat", "getOperandFormat",
      (ins "::mlir::fp8::GemmRole":$role,
           "::mlir::fp8::OperandKind":$operand)>,
    InterfaceMethod<[{
      How a scale follows from an amax, for a tensor of `sourceType` elements.
      Only called when `isHighPrecision` is false, and `isStateful` is too or
      codes are rounded stochastically.
      }],
      "::mlir::fp8::ScaleRuleAttrInterface", "getScaleRule",
      (ins "::mlir::Type":$sourceType), [{}],
      [{ llvm_unreachable("scales follow from no amax of the tensor"); }]>,
    InterfaceMethod<"K of a contraction has to be a multiple of this.",
      "int64_t", "getContractionMultiple", (ins), [{}], [{ return 16; }]>,
    InterfaceMethod<"Accumulation policy of a GEMM of role `role`.",
      "::mlir::fp8::Accumulate", "getAccumulate",
      (ins "::mlir::fp8::GemmRole":$role), [{}],
      [{ return ::mlir::fp8::Accumulate::Promote; }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// As written in recipe texts: `current`, or `dialect.mnemonic` for one of
    /// another dialect.
    ::llvm::StringRef getRecipeName() const { return $_attr.getSchema().name; }

    /// Whether scales, or seeds, come from slots of a scaling state.
    bool isStateful() const { return !!$_attr.getStateRecipe(); }
  }];
}

def FP8_StateUpdateAttrInterface : AttrInterface<"StateUpdateAttrInterface"> {
  let cppNamespace = "::mlir::fp8";
  let description = [{
    A recipe whose scaling state learns from the amaxes of a step: what a slot
    keeps beside its scale and counts, and how a step changes it.
  }];
  let methods = [
    InterfaceMethod<[{
      32-bit words that a slot keeps from step to step; all 0 in a new state.
      }],
      "int64_t", "getNumWords", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<[{
      Emits what the end of a step does with a slot, and returns the scale of
      the next step, f32. Exact arithmetic: the same bits on every target.
      }],
      "::mlir::Value", "buildUpdate",
      (ins "::mlir::fp8::SlotUpdateBuilder &":$slot)>,
    InterfaceMethod<[{
      What a program whose state is ordinary tensors holds beside the scales:
      by default `words`, slots x words.
      }],
      "::llvm::SmallVector<::mlir::fp8::StateTensor>", "getStateTensors",
      (ins "int64_t":$numSlots), [{}], [{
        return ::mlir::fp8::getWordTensors($_attr, numSlots);
      }]>,
    InterfaceMethod<[{
      The same update of all slots in such a program: the new scales and then
      the new `state`, which is what `getStateTensors` says. `maxFinite`,
      `scale` and `amax` have an f32 element for each slot: the largest finite
      value of its format, the scale and the amax of the step.
      }],
      "::llvm::SmallVector<::mlir::Value>", "buildTensorUpdate",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::Value":$maxFinite, "::mlir::Value":$scale,
           "::mlir::Value":$amax, "::mlir::ValueRange":$state), [{}], [{
        return ::mlir::fp8::buildWordUpdate($_attr, builder, loc, maxFinite,
                                            scale, amax, state);
      }]>,
  ];
}

#endif // FP8_IR_FP8INTERFACES_TD

//===- FP8OpBase.td - What all operations are made of ------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8OPBASE_TD
#define FP8_IR_FP8OPBASE_TD

include "fp8/IR/FP8Recipes.td"
include "fp8/IR/FP8Types.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// A rule of any dialect; `#fp8.scale_rule` where none is given.
def FP8_AnyScaleRule
    : Attr<FP8_ScaleRuleAttrInterface.predicate, "how scales follow from amaxes"> {
  let storageType = "::mlir::fp8::ScaleRuleAttrInterface";
  let returnType = "::mlir::fp8::ScaleRuleAttrInterface";
  let convertFromStorage = "$_self";
  let constBuilderCall =
      "::mlir::fp8::ScaleRuleAttr::get($_builder.getContext(), $0)";
}

class FP8_EffectOp<string mnemonic, list<Trait> traits = []>
    : Op<FP8_Dialect, mnemonic, traits>;
class FP8_Op<string mnemonic, list<Trait> traits = []>
    : FP8_EffectOp<mnemonic, !listconcat(traits, [Pure])>;

/// High-precision tensors that can be quantized.
def FP8_HighPrecision : AnyTypeOf<[F32, BF16, F16], "f32, bf16 or f16">;
def FP8_Tensor : RankedTensorOf<[FP8_HighPrecision]>;
def FP8_F32Tensor : RankedTensorOf<[F32]>;
def FP8_SeedTensor : 1DTensorOf<[I32]>;
def FP8_MatmulOperand : AnyTypeOf<[FP8_ScaledType, FP8_Tensor],
    "a scaled tensor, or one of f32, bf16 or f16">;
def FP8_MatmulResult
    : RankedTensorOf<[FP8_HighPrecision, F8E4M3FN, F8E5M2]>;
/// Element types that Formats.def says codes and factors may have.
def FP8_Code : Type<CPred<"::mlir::fp8::isCodeType($_self)">, "code">;
def FP8_Factor : Type<CPred<"::mlir::fp8::isFactorType($_self)">, "factor">;
def FP8_CodeTensor : RankedTensorOf<[FP8_Code]>;
def FP8_FactorTensor : RankedTensorOf<[FP8_Factor]>;

#endif // FP8_IR_FP8OPBASE_TD

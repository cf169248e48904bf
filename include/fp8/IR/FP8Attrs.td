//===- FP8Attrs.td - Enums, scale rules and states ---------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8ATTRS_TD
#define FP8_IR_FP8ATTRS_TD

include "fp8/IR/FP8Dialect.td"
include "fp8/IR/FP8Interfaces.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

class FP8_Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::fp8";
  let genSpecializedAttr = 0;

  /// The enum without LLVM.
  string plain = "enum class " # name # " { "
      # !interleave(!foreach(case, cases, case.symbol # " = " # case.value), ", ")
      # " };\n";
}

def FP8_GemmRole : FP8_Enum<"GemmRole",
    "which GEMM of a linear layer: y = x wT, dx = dy w, dw = dyT x", [
  I32EnumAttrCase<"Fprop", 0, "fprop">,
  I32EnumAttrCase<"Dgrad", 1, "dgrad">,
  I32EnumAttrCase<"Wgrad", 2, "wgrad">]>;

def FP8_GemmRoleAttr : EnumAttr<FP8_Dialect, FP8_GemmRole, "role"> {
  let assemblyFormat = "`<` $value `>`";
}

def FP8_OperandKind : FP8_Enum<"OperandKind",
    "what a GEMM operand holds", [
  I32EnumAttrCase<"Activation", 0, "activation">,
  I32EnumAttrCase<"Weight", 1, "weight">,
  I32EnumAttrCase<"Gradient", 2, "gradient">]>;

def FP8_OperandKindAttr
    : EnumAttr<FP8_Dialect, FP8_OperandKind, "operand"> {
  let assemblyFormat = "`<` $value `>`";
}

def FP8_Format : FP8_Enum<"Format",
    "8-bit format of all tensors; hybrid is E4M3 for x and w, E5M2 for gradients", [
  I32EnumAttrCase<"Hybrid", 0, "hybrid">,
  I32EnumAttrCase<"E4M3", 1, "e4m3">,
  I32EnumAttrCase<"E5M2", 2, "e5m2">]>;

def FP8_Accumulate : FP8_Enum<"Accumulate",
    "accumulator of a GEMM: f32 sum every 128 of K, or the tensor core's own", [
  I32EnumAttrCase<"Promote", 0, "promote">,
  I32EnumAttrCase<"Fast", 1, "fast">]>;

def FP8_AccumulatePolicy : FP8_Enum<"AccumulatePolicy",
    "accumulator of each GEMM; fast_fprop is fast in the forward only", [
  I32EnumAttrCase<"Promote", 0, "promote">,
  I32EnumAttrCase<"Fast", 1, "fast">,
  I32EnumAttrCase<"FastFprop", 2, "fast_fprop">]>;

def FP8_AccumulateAttr : EnumAttr<FP8_Dialect, FP8_Accumulate, "accumulate">;

def FP8_AttentionLayout : FP8_Enum<"AttentionLayout",
    "order of batches (b), positions in a sequence (s), heads (h) and elements of one (d)", [
  I32EnumAttrCase<"BSHD", 0, "bshd">,
  I32EnumAttrCase<"BHSD", 1, "bhsd">]>;

def FP8_AttentionLayoutAttr
    : EnumAttr<FP8_Dialect, FP8_AttentionLayout, "attention_layout">;

def FP8_GroupBounds : FP8_Enum<"GroupBounds",
    "what says where the groups of a grouped matmul end", [
  I32EnumAttrCase<"Offsets", 0, "offsets">,
  I32EnumAttrCase<"Counts", 1, "counts">,
  I32EnumAttrCase<"CountsK", 2, "counts_k">]>;

def FP8_GroupBoundsAttr
    : EnumAttr<FP8_Dialect, FP8_GroupBounds, "group_bounds">;

def FP8_MXMode : FP8_Enum<"MXMode", "rounding of an E8M0 scale", [
  I32EnumAttrCase<"RCeil", 0, "rceil">,
  I32EnumAttrCase<"Floor", 1, "floor">,
  I32EnumAttrCase<"Ceil", 2, "ceil">,
  I32EnumAttrCase<"Even", 3, "even">]>;

def FP8_NonFinite : FP8_Enum<"NonFinite",
    "E8M0 scale of a block whose amax is infinite", [
  I32EnumAttrCase<"Saturate", 0, "saturate">,
  I32EnumAttrCase<"NaN", 1, "nan">]>;

def FP8_ScaleStyle : FP8_Enum<"ScaleStyle",
    "whose corner cases an f32 scale follows", [
  I32EnumAttrCase<"TE", 0, "te">,
  I32EnumAttrCase<"TorchAO", 1, "torchao">]>;

def FP8_AmaxComputeAlgo : FP8_Enum<"AmaxComputeAlgo",
    "how a history becomes one amax", [
  I32EnumAttrCase<"Max", 0, "max">,
  I32EnumAttrCase<"MostRecent", 1, "most_recent">]>;

def FP8_DelayedCompat : FP8_Enum<"DelayedCompat",
    "whose update rule delayed scaling reproduces bit for bit", [
  I32EnumAttrCase<"TEFused", 0, "te_fused">,
  I32EnumAttrCase<"TEUnfused", 1, "te_unfused">,
  I32EnumAttrCase<"Flax", 2, "flax">]>;

def FP8_InitialScale : FP8_Enum<"InitialScale",
    "the scale of a tensor that delayed scaling knows no amax of", [
  I32EnumAttrCase<"Auto", 0, "auto">,
  I32EnumAttrCase<"Current", 1, "current">,
  I32EnumAttrCase<"One", 2, "one">]>;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class FP8_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<FP8_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

class FP8_EnumParameter<EnumInfo info, string default = "", string desc = "">
    : EnumParameter<info> {
  let summary = desc;
  let defaultValue = default;
}

/// An f32 that prints so that it parses back to the same bits.
class FP8_F32Parameter<string default, string desc>
    : AttrOrTypeParameter<"::mlir::fp8::Float32", desc> {
  let defaultValue = default;
}

def FP8_ScaleRuleAttr : FP8_Attr<"ScaleRule", "scale_rule",
    [DeclareAttrInterfaceMethods<FP8_ScaleRuleAttrInterface,
                                 ["hasScaleType", "buildScaleByte"]>]> {
  let summary = "how a scale follows from an amax";
  let description = [{
    Every choice that existing systems make differently, each by name:

    | parameter | applies to | meaning |
    | --- | --- | --- |
    | `pow2` | f32 scales | round the scale down to a power of two |
    | `epsilon` | f32 scales | an amax below it counts as `epsilon` |
    | `style` | f32 scales | `te`: amax 0, Inf, NaN give scale 1; `torchao`: `fp8_max / max(amax, epsilon)` in f64 with an `epsilon` of 1e-12 unless given, no further rule |
    | `overflow` | f32 scales, `te` | replaces a scale that overflows to Inf; FLT_MAX by default |
    | `mode` | f8E8M0FNU scales | `rceil`, `floor`, `ceil` or `even` |
    | `nonfinite` | f8E8M0FNU scales | amax Inf gives 0xFE (`saturate`) or 0xFF (`nan`) |

    Example: `#fp8.scale_rule<pow2 = true>`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"bool", "false">:$pow2,
    FP8_F32Parameter<"::mlir::fp8::Float32{0.0f}", "smallest amax">:$epsilon,
    FP8_EnumParameter<FP8_ScaleStyle, "::mlir::fp8::ScaleStyle::TE">:$style,
    FP8_F32Parameter<"::mlir::fp8::Float32{std::numeric_limits<float>::max()}",
                     "replaces an infinite scale">:$overflow,
    FP8_EnumParameter<FP8_MXMode, "::mlir::fp8::MXMode::RCeil">:$mode,
    FP8_EnumParameter<FP8_NonFinite, "::mlir::fp8::NonFinite::Saturate">:$nonfinite
  );
  let builders = [AttrBuilder<(ins CArg<"const ::mlir::fp8::ScaleRule &",
                                        "::mlir::fp8::ScaleRule{}">:$rule), [{
    return $_get($_ctxt, rule.pow2, rule.epsilon, rule.style, rule.overflow,
                 rule.mode, rule.nonfinite);
  }]>];
  let assemblyFormat = "(`<` struct(params)^ `>`)?";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    ::mlir::fp8::ScaleRule getRule() const {
      return {getPow2(),     getEpsilon(), getStyle(),
              getOverflow(), getMode(),    getNonfinite()};
    }
  }];
}

//===----------------------------------------------------------------------===//
// Scaling state
//===----------------------------------------------------------------------===//

def FP8_SlotAttr : FP8_Attr<"Slot", "slot"> {
  let summary = "one quantized tensor of the scaling state";
  let description = [{
    Example: `#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>`. The name is the
    contraction's with `.x`, `.w` or `.dy` and does not depend on where it
    stands; `role` and `operand` say of which contraction and what it holds.
    `cache` is the number of bytes that keep the quantized tensor from one
    micro-batch to the next, 0 for none.
  }];
  let parameters = (ins
    StringRefParameter<"stable name">:$name,
    "::mlir::Type":$format,
    FP8_EnumParameter<FP8_GemmRole>:$role,
    FP8_EnumParameter<FP8_OperandKind>:$operand,
    DefaultValuedParameter<"int64_t", "0", "bytes">:$cache
  );
  let assemblyFormat = [{
    `<` $name `:` $format `,` $role $operand (`,` `cache` `=` $cache^)? `>`
  }];
  let genVerifyDecl = 1;
}

def FP8_StateTableAttr : FP8_Attr<"StateTable", "state_table"> {
  let summary = "the slots of a program, in the order of their offsets";
  let description = [{
    The module's `fp8.state` attribute, set by `fp8-allocate-state`: the recipe
    by which all slots are updated, and the slots. Names are unique.

    Example: `#fp8.state_table<#fp8.delayed, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>`.
  }];
  let parameters = (ins
    "::mlir::fp8::RecipeAttrInterface":$recipe,
    "::mlir::ArrayAttr":$slots
  );
  let assemblyFormat = "`<` $recipe `,` $slots `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getNumSlots() const { return getSlots().size(); }
    auto getSlotRange() const { return getSlots().getAsRange<SlotAttr>(); }
    /// How slots learn; null if the recipe's state does not.
    ::mlir::fp8::StateUpdateAttrInterface getUpdate() const {
      return ::llvm::dyn_cast<::mlir::fp8::StateUpdateAttrInterface>(getRecipe());
    }
  }];
}

#endif // FP8_IR_FP8ATTRS_TD

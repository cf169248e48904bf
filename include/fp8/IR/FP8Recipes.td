//===- FP8Recipes.td - The recipes -------------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8RECIPES_TD
#define FP8_IR_FP8RECIPES_TD

include "fp8/IR/FP8Attrs.td"
include "fp8/IR/RecipeBase.td"

// Messages name recipes in the order in which they are defined here.
class FP8_Recipe<string name, string mnemonic, list<string> overridden = []>
    : FP8_RecipeAttr<FP8_Dialect, name, mnemonic, overridden>;

def FP8_FormatKey : FP8_EnumKey<FP8_Format, "Hybrid", /*inState=*/0>;
def FP8_E4M3FormatKey : FP8_EnumKey<FP8_Format, "E4M3", /*inState=*/0>;
def FP8_AccumulateKey
    : FP8_EnumKey<FP8_AccumulatePolicy, "Promote", /*inState=*/0>;
def FP8_EpsilonKey : FP8_FloatKey<"0.0", "0", "FLT_MAX", "smallest amax">;

def FP8_CurrentAttr : FP8_Recipe<"Current", "current",
    ["getScaleRule", "getAccumulate", "propagatesNaN"]> {
  let summary = "per-tensor scaling with the amax of the tensor itself";
  let description = [{
    One scale for a tensor, from its present amax: two reads of the tensor, no
    state. Example: `#fp8.current<format = e4m3, pow2 = true>`.

    - `format`: `hybrid` (default), `e4m3` or `e5m2`. With `e5m2` everywhere a
      forward tensor has the range of a gradient, and 2 mantissa bits: it is
      rounded by up to 2^-3 of an element where E4M3 rounds by 2^-4.
    - `pow2`, `amax_epsilon`, `style`: see `#fp8.scale_rule`.
    - `accumulate`: `promote` (default), `fast`, or `fast_fprop`, which is `fast`
      in the forward and `promote` for gradients.
  }];
  let parameters = (ins
    FP8_FormatKey:$format,
    FP8_BoolKey<0>:$pow2,
    FP8_EpsilonKey:$amax_epsilon,
    FP8_EnumKey<FP8_ScaleStyle, "TE">:$style,
    FP8_AccumulateKey:$accumulate
  );
}

def FP8_RowwiseAttr : FP8_Recipe<"Rowwise", "rowwise",
    ["getScaleRule", "getAccumulate", "propagatesNaN"]> {
  let summary = "one scale for every row of A and every row of B";
  let description = [{
    Each operand has one f32 scale for every index of its non-contracted
    dimension: the scale of an outlier row touches that row only. By default
    E4M3 everywhere and scales rounded down to a power of two, as torchao's
    row-wise recipe. Example: `#fp8.rowwise<pow2 = false>`.
  }];
  let parameters = (ins
    FP8_E4M3FormatKey:$format,
    FP8_BoolKey<1>:$pow2,
    FP8_EpsilonKey:$amax_epsilon,
    FP8_EnumKey<FP8_ScaleStyle, "TE">:$style,
    FP8_AccumulateKey:$accumulate
  );
}

def FP8_BlockAttr : FP8_Recipe<"Block", "block",
    ["getScaleRule", "getContractionMultiple"]> {
  let summary = "1x128 blocks for activations and gradients, 128x128 for weights";
  let description = [{
    Block scaling in f32, the scale rounded down to a power of two by default.
    `x_dim`, `w_dim` and `grad_dim` say whether a tensor is cut into 1x128 (1)
    or 128x128 (2) blocks; no GEMM may pair two 2-D operands, so at most one of
    the three may be 2. The accumulator is promoted at every block, where the
    scale changes. Example: `#fp8.block<pow2 = false>`.
  }];
  let parameters = (ins
    FP8_E4M3FormatKey:$format,
    FP8_BoolKey<1>:$pow2,
    FP8_EpsilonKey:$amax_epsilon,
    FP8_IntKey<1, 1, 2>:$x_dim,
    FP8_IntKey<2, 1, 2>:$w_dim,
    FP8_IntKey<1, 1, 2>:$grad_dim
  );
  let hasKeysVerifier = 1;
}

def FP8_MXFP8Attr : FP8_Recipe<"MXFP8", "mxfp8",
    ["getScaleRule", "getContractionMultiple", "propagatesNaN"]> {
  let summary = "OCP MX: 1x32 blocks with an E8M0 scale";
  let description = [{
    Every 32 elements along K share one power of two, stored as an E8M0 byte.
    `weight_2d` shares it over 32x32 tiles of a weight, so that the transposed
    copy needs no second quantization. `mode` and `nonfinite`: see
    `#fp8.scale_rule`. Example: `#fp8.mxfp8<mode = floor>`.
  }];
  let parameters = (ins
    FP8_E4M3FormatKey:$format,
    FP8_EnumKey<FP8_MXMode, "RCeil">:$mode,
    FP8_EnumKey<FP8_NonFinite, "Saturate">:$nonfinite,
    FP8_BoolKey<0>:$weight_2d
  );
}

def FP8_NVFP4Attr : FP8_RecipeAttr<FP8_Dialect, "NVFP4", "nvfp4",
    ["getScaleRule", "getContractionMultiple", "getStateRecipe",
     "getOperandRecipe", "roundsStochastically", "getHadamardSigns"],
    [DeclareAttrInterfaceMethods<FP8_StateUpdateAttrInterface,
                                 ["getNumWords"]>]> {
  let summary = "E2M1 with an E4M3 scale for every 16 elements and one for the tensor";
  let description = [{
    `x ~= q * scale_inv[block] * tensor_scale_inv`, with
    `tensor_scale_inv = amax / (448 * 6)`, `t = (448 * 6) / amax` and
    `scale_inv = E4M3(amax_block * (t * (1 / 6)))`, saturating; each operation
    is rounded to f32.

    - `weight_2d`: share a block scale over 16x16 tiles of a weight;
    - `stochastic_rounding`: round gradients stochastically (`fp8.quantize`),
      all else to nearest even. The seeds are state: each such tensor has a slot
      with the words of `fp8.read_seed`;
    - `hadamard`: rotate both operands of a weight gradient along K
      (`fp8.hadamard`) before they are quantized.

    Example: `#fp8.nvfp4<stochastic_rounding = true, hadamard = true>`.
  }];
  let parameters = (ins
    FP8_BoolKey<0, /*inState=*/0>:$weight_2d,
    FP8_BoolKey<0>:$stochastic_rounding,
    FP8_BoolKey<0, /*inState=*/0>:$hadamard
  );
  // It has a state with one of the keys only.
  let hasState = 0;
}

def FP8_DelayedAttr : FP8_StatefulRecipeAttr<FP8_Dialect, "Delayed", "delayed",
    ["propagatesNaN", "getAccumulate"],
    ["getNumWords", "getStateTensors", "buildTensorUpdate"]> {
  let summary = "per-tensor scaling with the amaxes of earlier steps";
  let description = [{
    The scale of step t follows from the amaxes of steps t - amax_history_len
    .. t - 1, so that quantization reads the tensor once. Needs state.
    Example: `#fp8.delayed<amax_history_len = 16, amax_compute_algo = max>`.

    - `initial`: the scale while there is no such amax: `current`, that of the
      tensor itself, for which the runtime calls a function again; `one`, 1 as
      in Transformer Engine and Flax; or `auto` (default), which is `current`
      unless `compat` names a rule that is not the default.
  }];
  let parameters = (ins
    FP8_FormatKey:$format,
    FP8_IntKey<1024, 1, 65536>:$amax_history_len,
    FP8_EnumKey<FP8_AmaxComputeAlgo, "Max">:$amax_compute_algo,
    FP8_IntKey<0, -64, 64>:$margin,
    FP8_BoolKey<1>:$reduce_amax,
    FP8_EnumKey<FP8_DelayedCompat, "TEFused">:$compat,
    FP8_BoolKey<0>:$pow2,
    FP8_EnumKey<FP8_InitialScale, "Auto">:$initial,
    FP8_AccumulateKey:$accumulate
  );
  let hasKeysVerifier = 1;
}

def FP8_StaticAttr : FP8_Recipe<"Static", "static",
    ["getStateRecipe", "getAccumulate"]> {
  let summary = "per-tensor scaling with the scales of a saved state";
  let description = [{
    The scales that delayed scaling has learned, as constants: `state` is the
    path of a file that the runtime saved, read when the program is compiled.
    Slots are found by name. Nothing is recorded; constant weights are quantized
    at compile time.
    Example: `#fp8.static<state = "model.safetensors">`.
  }];
  let parameters = (ins
    FP8_PathKey<"path of a saved state">:$state,
    FP8_FormatKey:$format,
    FP8_AccumulateKey:$accumulate
  );
}

def FP8_NoneAttr : FP8_Recipe<"None", "none", ["isHighPrecision"]> {
  let summary = "stay in high precision";
}

//===----------------------------------------------------------------------===//
// Without MLIR
//===----------------------------------------------------------------------===//

/// The keys of the one recipe that states can update by themselves, for
/// fp8/Runtime/DelayedRule.h.
def FP8_DelayedKeys {
  string text = !strconcat(
      FP8_AmaxComputeAlgo.plain, FP8_DelayedCompat.plain,
      FP8_InitialScale.plain,
      "inline constexpr RecipeKey kDelayedKeys[] = {\n    ",
      FP8_DelayedAttr.schema, "};\n",
      "inline constexpr RecipeSchema kDelayedSchema{\"",
      FP8_DelayedAttr.recipeName, "\", kDelayedKeys, ",
      !cast<string>(!size(FP8_DelayedAttr.keyNames)), "};\n");
}

#endif // FP8_IR_FP8RECIPES_TD

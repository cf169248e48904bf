//===- FP8StateOps.td - Operations on scaling state --------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8STATEOPS_TD
#define FP8_IR_FP8STATEOPS_TD

include "fp8/IR/FP8OpBase.td"

def FP8_ReadScaleOp : FP8_Op<"read_scale",
    [AllTypesMatch<["scale", "scale_inv"]>]> {
  let summary = "the scale of a slot in the present step";
  let description = [{
    The factors that a slot of the scaling state has throughout a step. They
    change between steps only, so that the operation has no effect and gives the
    same values wherever it stands: a recomputation reads what the first forward
    read.

    Constraints:
    - (C1) `scale` has one element.

    Example:

    ```mlir
    %scale, %scale_inv = fp8.read_scale %state[%slot] : tensor<1x1xf32>
    ```
  }];
  let arguments = (ins FP8_StateType:$state, Index:$slot);
  let results = (outs FP8_F32Tensor:$scale, FP8_F32Tensor:$scale_inv);
  let assemblyFormat = "$state `[` $slot `]` attr-dict `:` type($scale)";
  let hasVerifier = 1;
}

def FP8_ReadSeedOp : FP8_Op<"read_seed"> {
  let summary = "the seed of a slot in the present step";
  let description = [{
    The four words that a slot of a recipe with stochastic rounding has, with
    the slot's index added to the last, so that no two tensors of a step are
    rounded with the same numbers:

    | word | |
    | --- | --- |
    | 0, 1 | the seed, the caller's to set |
    | 2 | how many steps have ended |
    | 3 | the caller's to set, plus the slot |

    All are 0 in a new state. They change between steps only, so that the
    operation has no effect, as `fp8.read_scale`.

    Constraints:
    - (C1) `seed` has four elements.

    Example:

    ```mlir
    %seed = fp8.read_seed %state[%slot] : tensor<4xi32>
    ```
  }];
  let arguments = (ins FP8_StateType:$state, Index:$slot);
  let results = (outs FP8_SeedTensor:$seed);
  let assemblyFormat = "$state `[` $slot `]` attr-dict `:` type($seed)";
  let extraClassDeclaration = [{
    /// Words of a slot that are the seed.
    static constexpr int64_t kNumWords = 4;
  }];
  let hasVerifier = 1;
}

def FP8_ReadAmaxOp : FP8_EffectOp<"read_amax", [MemoryEffects<[MemRead]>]> {
  let summary = "the amax that a slot has so far";
  let description = [{
    What `fp8.record_amax` has made of the amax of a slot in this step, as the
    destination of a kernel that raises it: the tensor is the slot's own memory.

    Constraints:
    - (C1) `amax` has one element.

    Example:

    ```mlir
    %so_far = fp8.read_amax %state[%slot] : tensor<1x1xf32>
    ```
  }];
  let arguments = (ins FP8_StateType:$state, Index:$slot);
  let results = (outs FP8_F32Tensor:$amax);
  let assemblyFormat = "$state `[` $slot `]` attr-dict `:` type($amax)";
  let hasVerifier = 1;
}

def FP8_RecordAmaxOp : FP8_EffectOp<"record_amax",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "tell the state the amax of a tensor in this step";
  let description = [{
    ```
    state.amax[slot] = max(state.amax[slot], amax)     (NaN is the largest)
    state.underflow[slot] += counts[0];  state.saturated[slot] += counts[1]
    ```

    A maximum does not depend on the order and stays the same if it is taken
    again: layers that share a slot, the iterations of a loop and micro-batches
    all add to the one update that ends the step. When that is, is up to the
    host, so that ranks can reduce the amaxes before it.

    `counts`, underflow and saturation as `fp8.measure` found them, are given in
    programs that are compiled with statistics.

    `in_place` says that `amax` is the slot's from `fp8.read_amax`, raised
    already.

    Constraints:
    - (C1) `amax` has one element;
    - (C2) there are two `counts` or none;
    - (C3) with `in_place` there are no `counts`.

    Example:

    ```mlir
    fp8.record_amax %amax, %state[%slot] : tensor<1x1xf32>
    ```
  }];
  let arguments = (ins FP8_F32Tensor:$amax, FP8_StateType:$state, Index:$slot,
                       Variadic<F64>:$counts, UnitAttr:$in_place);
  let assemblyFormat = [{
    $amax `,` $state `[` $slot `]` (`counts` `(` $counts^ `)`)?
    (`in_place` $in_place^)? attr-dict `:` type($amax)
  }];
  let hasVerifier = 1;
}

def FP8_StoreCachedOp : FP8_EffectOp<"store_cached",
    [MemoryEffects<[MemWrite]>]> {
  let summary = "keep a quantized tensor with its slot";
  let description = [{
    Copies payload and scale_inv into the cache of the slot, for the other
    micro-batches of a step (`fp8.load_cached`).

    Constraints:
    - (C1) `source` has a static shape, one f32 factor, and codes of 8 bits.

    Example:

    ```mlir
    fp8.store_cached %q, %state[%slot]
        : !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
    ```
  }];
  let arguments = (ins FP8_ScaledType:$source, FP8_StateType:$state,
                       Index:$slot);
  let assemblyFormat =
      "$source `,` $state `[` $slot `]` attr-dict `:` type($source)";
  let hasVerifier = 1;
}

def FP8_LoadCachedOp : FP8_EffectOp<"load_cached",
    [MemoryEffects<[MemRead]>]> {
  let summary = "the quantized tensor that was kept with a slot";
  let description = [{
    What `fp8.store_cached` kept last; zeros if it never ran.

    Constraints:
    - (C1) `result` has a static shape, one f32 factor, and codes of 8 bits.

    Example:

    ```mlir
    %q = fp8.load_cached %state[%slot]
        : !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
    ```
  }];
  let arguments = (ins FP8_StateType:$state, Index:$slot);
  let results = (outs FP8_ScaledType:$result);
  let assemblyFormat =
      "$state `[` $slot `]` attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def FP8_UpdateStateOp : FP8_EffectOp<"update_state",
    [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "the update that ends a step, in place";
  let description = [{
    Every slot of the `table` gets the scale of the next step, as the table's
    recipe says; its amax goes where the last one is kept, and is 0 again; and
    the step is counted. No slot looks at another: on a GPU it is one kernel with
    a thread for each, so that a step, update included, is work in a stream.

    Constraints:
    - (C1) the recipe of the table learns, as `#fp8.delayed`.

    Example:

    ```mlir
    fp8.update_state %state
        table(<#fp8.delayed<amax_history_len = 16>,
               [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>)
    ```
  }];
  let arguments = (ins FP8_StateType:$state, FP8_StateTableAttr:$table);
  let assemblyFormat = "$state `table` `(` $table `)` attr-dict";
  let hasVerifier = 1;
}

def FP8_UpdateScalesOp : FP8_Op<"update_scales", [
    AllTypesMatch<["scale", "amax"]>, InferTypeOpAdaptor]> {
  let summary = "the update that ends a step, as a function of tensors";
  let description = [{
    What the update of a scaling state does with all slots, bit for bit, for
    programs whose state is ordinary tensors: the `table` has the recipe and the
    formats, `amax` is that of the step, 0 for a slot that was not used. What
    the `state` is beside the scales is the recipe's to say. That of
    `#fp8.delayed` are the amax histories, laid out as their system does, see
    the page on delayed scaling; row 0, which waits for the update there, is 0
    with `te_fused` and `te_unfused`.

    Constraints:
    - (C1) `scale` and `amax` have one element for each slot of the table;
    - (C2) `state` has the tensors that the recipe of the table says;
    - (C3) the recipe of the table learns, as `#fp8.delayed`.

    Example:

    ```mlir
    %new_scale, %new_history = fp8.update_scales %scale, %amax, %history
        table(#fp8.state_table<#fp8.delayed<amax_history_len = 16>,
                               [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>)
        : tensor<1xf32>, tensor<16x1xf32>
    ```
  }];
  let arguments = (ins FP8_F32Tensor:$scale, FP8_F32Tensor:$amax,
                       Variadic<AnyRankedTensor>:$state,
                       FP8_StateTableAttr:$table);
  let results = (outs FP8_F32Tensor:$new_scale,
                      Variadic<AnyRankedTensor>:$new_state);
  let assemblyFormat = [{
    $scale `,` $amax (`,` $state^)? `table` `(` $table `)` attr-dict
    `:` type($scale) (`,` type($state)^)?
  }];
  let hasVerifier = 1;
}

#endif // FP8_IR_FP8STATEOPS_TD

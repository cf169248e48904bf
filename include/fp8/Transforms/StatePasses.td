//===- StatePasses.td - Phase 3, state and scales ----------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_STATEPASSES_TD
#define FP8_TRANSFORMS_STATEPASSES_TD

include "mlir/Pass/PassBase.td"

def AllocateStatePass : Pass<"fp8-allocate-state", "::mlir::ModuleOp"> {
  let summary = "give every tensor that needs state a slot";
  let description = [{
    A quantize whose recipe has state (`delayed`) gets a slot of the scaling
    state: its scale comes from there and its amax goes there. Functions with
    slots, and those that call them, take the state as their last argument; the
    module's `fp8.state` says what the slots are.

    ```mlir
    %q = fp8.quantize %x recipe(#fp8.delayed) : tensor<32x64xbf16> -> !fp8.scaled<...>
    // becomes, with %state the last argument of the function
    %c0 = arith.constant 0 : index
    %scale, %scale_inv = fp8.read_scale %state[%c0] : tensor<1x1xf32>
    %q = fp8.quantize %x scale(%scale, %scale_inv : tensor<1x1xf32>, tensor<1x1xf32>) : ...
    %amax = fp8.amax %x block = [*, *] : tensor<32x64xbf16>
    fp8.record_amax %amax, %state[%c0] : tensor<1x1xf32>
    ```

    One that a recipe rounds stochastically (`nvfp4` with `stochastic_rounding`)
    has a seed there, and its scale is still named by the recipe:

    ```mlir
    %seed = fp8.read_seed %state[%c0] : tensor<4xi32>
    %q = fp8.quantize %dy recipe(#fp8.nvfp4<stochastic_rounding = true>) seed(%seed : tensor<4xi32>) : ...
    ```

    Slots go by name, so that unrelated code does not move them: `<gemm>.x`, `.w`
    or `.dy`, after the contraction that the tensor feeds, the forward's if there
    are several; `.a` and `.b` if both operands hold the same; or the quantize's
    own `fp8.name`.

    - A private function has slots of its own for every call, named after the
      call's `fp8.name`, else the callee's; with `fp8.slots = "shared"` one set
      for all. A public function is its own entry: others that call it share its
      slots. Public functions share slots of the same name.
    - The iterations of a loop share their slots, whose amax is the largest of
      all; an `scf.for` with constant bounds and `fp8.slots = "separate"` has a set
      for each.
    - A contraction or call with `fp8.recompute` reads the slots of the forward of
      the same name.

    In a function with an argument `fp8.first_microbatch` weights are quantized,
    and recorded, if it is true; the value is kept with the slot and taken from
    there in the other micro-batches of the step.
  }];
  let options = [
    Option<"counts", "counts", "bool", "false",
           "Count underflow and saturation in every slot">,
    Option<"cacheWeights", "cache-weights", "bool", "true",
           "Quantize weights once per step where fp8.first_microbatch says "
           "which micro-batch is the first">];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numSlots", "num-slots", "Slots allocated">,
    Statistic<"numCached", "num-cached", "Weights kept between micro-batches">];
}

def InferScalesPass : Pass<"fp8-infer-scales"> {
  let summary = "give every quantize its scale as an SSA value";
  let description = [{
    Resolves `fp8.quantize ... recipe(R)` into `fp8.amax`,
    `fp8.compute_scale` with the rule of R, and a quantize with that scale.
    A recipe whose scales depend on earlier steps is an error here: its state
    has to be allocated.

    ```mlir
    %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<...>
    // becomes
    %amax = fp8.amax %x block = [*, *] : tensor<32x64xbf16>
    %scale, %scale_inv = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
    %q = fp8.quantize %x scale(%scale, %scale_inv : tensor<1x1xf32>, tensor<1x1xf32>) : ...
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let statistics = [
    Statistic<"numResolved", "num-resolved", "Quantizes given a scale">];
}

def BindScalesPass : Pass<"fp8-bind-scales", "::mlir::ModuleOp"> {
  let summary = "bind the scales of a saved state as constants";
  let description = [{
    Under the recipe `static` the state is known when the program is compiled:
    every `fp8.read_scale` becomes the constant that the file has for the slot of
    that name, and the state is no argument any more. A slot that the file does
    not have, or of another format, is an error; one that has never recorded an
    amax gets a warning.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numBound", "num-bound", "Scales read from the file">];
}

def FunctionalizeStatePass
    : Pass<"fp8-functionalize-state", "::mlir::ModuleOp"> {
  let summary = "convert scaling state to tensor arguments and results";
  let description = [{
    For compilers that want no side effects. A public function takes, in place
    of the state, `scale: tensor<slots x f32>` and `amax_history:
    tensor<amax_history_len x slots x f32>`, and returns both as they are for
    the next step; the update (`fp8.update_scales`) is part of the program. All
    slots are columns, in the order of the module's table. Of a recipe other than
    `delayed` the second is `words: tensor<slots x words x i32>`, among them the
    seeds of stochastic rounding.

    A tensor without past amaxes has the scale that the caller gives, 1 in a new
    state: `initial=current` of the recipe, for which functions are called again,
    is an error here.

    The amaxes of the step are one tensor that is carried through private
    functions, `scf.for`, `scf.while` and `scf.if`; state in other regions or in
    functions of several blocks is an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def BuildStateUpdatePass : Pass<"fp8-build-state-update", "::mlir::ModuleOp"> {
  let summary = "build the function that ends a step of the scaling state";
  let description = [{
    A module with a scaling state that learns gets a public function of the
    state, which `fp8.state_update` on the module names:

    ```mlir
    func.func @fp8_update_state(%state: !fp8.state) attributes {llvm.emit_c_interface} {
      fp8.update_state %state
          table(<#fp8.delayed, [#fp8.slot<"l0.x" : f8E4M3FN, fprop activation>]>)
      return
    }
    ```

    Hosts call it when a step is over. It is no function of the program, and
    takes the state alone, since only hosts know when all micro-batches are done
    and all ranks have reduced their amaxes.

    `fp8.state_uses` on it has, of each public function, the slots whose amaxes
    it records. Of one that calls others or has slots by iteration it has
    nothing: such a function may record all. The runtime wants to know whether a
    call needs scales that there are not yet.
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::func::FuncDialect"];
}

def VerifyStatePass : Pass<"fp8-verify-state", "::mlir::ModuleOp"> {
  let summary = "prove that every tensor updates a slot of its own";
  let description = [{
    Follows one step of each public function, through calls, branches and loops,
    and proves that

    - every slot that is read or recorded is known and in the module's table;
    - a quantize takes scale and scale_inv of one slot, of its own format;
    - what is recorded in a slot is the amax of the tensor that is quantized with
      its scale;
    - no two tensors of a step record the same slot, but on branches that exclude
      each other. The iterations of a loop and the calls of a function may, if
      the slot does not depend on them, which is what `fp8.slots = "shared"` says;
      and so may a call with `fp8.recompute`, which repeats another.

    So the one update that ends a step sees for every slot
    the amax of one tensor, or the largest of those that share it by intent.
  }];
}

#endif // FP8_TRANSFORMS_STATEPASSES_TD

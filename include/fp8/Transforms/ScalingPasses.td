//===- ScalingPasses.td - Phase 3, scaling -----------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_SCALINGPASSES_TD
#define FP8_TRANSFORMS_SCALINGPASSES_TD

include "mlir/Pass/PassBase.td"

def FlattenRowsPass : Pass<"fp8-flatten-rows"> {
  let summary = "what surrounds matrix products of batches of rows on rows";
  let description = [{
    Frameworks have activations [batch, length, width], and reshape them to rows
    [batch * length, width] for each matrix product. Elementwise operations,
    reductions, broadcasts, transposes, slices and concatenations between such
    reshapes, in which both dimensions are neighbours wherever there is one of
    them, work on rows here too: reshapes meet and fold, and what is left of them
    are those at the ends of the function, and around what tells batches apart.
    The same becomes of every two dimensions of which a reshape makes one,
    or that a matrix product does not tell apart.

    An operation stays as it is if all that it reads, or all who read its result,
    have to: a reshape between would make two passes over memory of one. What
    reads both is on rows, and what only it reads.
    `tensor.reshape` of rows to batches, which importers use where extents are
    not known, becomes `tensor.expand_shape`.

    Sums are of the same elements in the same order.

    ```mlir
    %1 = linalg.generic {indexing_maps = [(d0, d1, d2) -> (d0, d1, d2), (d0, d1, d2) -> (d2), ...]} ins(%x, %w : tensor<4x256x512xbf16>, tensor<512xbf16>) ...
    %2 = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<4x256x512xbf16> into tensor<1024x512xbf16>
    // becomes
    %1 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x256x512xbf16> into tensor<1024x512xbf16>
    %2 = linalg.generic {indexing_maps = [(d0, d1) -> (d0, d1), (d0, d1) -> (d1), ...]} ins(%1, %w : tensor<1024x512xbf16>, tensor<512xbf16>) ...
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numFlattened", "num-flattened", "Operations on fewer dimensions">];
}

def SimplifyCastsPass : Pass<"fp8-simplify-casts"> {
  let summary = "share quantizes and move casts to where there are fewer";
  let description = [{
    - `quantize(transpose(x))` becomes `transpose(quantize(x))`, and likewise for
      reshapes where each block is of the same elements before and after, for
      `tensor.cast`, `linalg.broadcast`, and `tensor.pad` with zeros at the end
      that make no block of their own and of which nobody needs more than codes,
      so that one quantize serves every use of x (common subexpression elimination
      then merges them);
    - `quantize` of tensors that `tensor.insert_slice` puts together, one after the
      other, becomes a `quantize` of each where no block, and so no amax, is of
      two;
    - `transpose`, reshapes, casts and slices of `dequantize(q)` become
      `dequantize` of the same of q, and so do tensors put together and rows that
      are looked up in a table (`tensor.extract` in a `linalg.generic`), where
      their blocks are the table's: bytes move instead of floats, and of a table
      what is looked up is dequantised. Elements that are repeated are dequantised
      after only if it is a contraction that takes them, by its codes;
    - a `linalg.copy` that converts nothing is its source, and `quantize` of
      floats that are only widened is `quantize` of the narrow ones;
    - `quantize(dequantize(q))` is q where format and blocks agree; otherwise it
      is *double quantisation* and gets a warning: the two roundings add up,
      the tensor should be quantised from its high-precision source.

    Batches that become rows stay rows, where nothing computes or quantises the
    batches otherwise. A slice is not moved above a quantize: the amax of a tensor is not that of
    its slice, and quantising the whole for a slice costs more. The same is true of
    what is looked up. Zeros are not added to a `dequantize`'s source: a caller's
    factor may be infinite, whose product with zero is NaN.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numMoved", "num-moved", "Casts moved through data movement">,
    Statistic<"numRemoved", "num-removed", "Quantizes of dequantizes removed">,
    Statistic<"numDouble", "num-double", "Double quantisations diagnosed">];
}

def SaveCodesPass : Pass<"fp8-save-codes", "::mlir::ModuleOp"> {
  let summary = "pass codes from one function to another in place of floats";
  let description = [{
    An argument marked `fp8.saved` is the argument or result of another function
    that is marked `fp8.save` with the same name: what a forward keeps for its
    backward, or a weight that is quantised once for several calls. Where a reader
    only quantises it, that is done where the tensor comes from, together with
    other quantizes of it there: fewer bytes are kept, and none are read twice.

    ```mlir
    func.func private @forward(tensor<32x64xbf16> {fp8.save = "x"}) -> tensor<32x8xbf16>
    func.func private @backward(tensor<32x8xbf16>, tensor<32x64xbf16> {fp8.saved = "x"}) -> tensor<8x64xbf16>
    // become, if @backward reads a transposed copy under a recipe for tensors
    func.func private @new_forward(tensor<32x64xbf16>) -> (tensor<32x8xbf16>,
        tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"},
        tensor<1x1xf32> {fp8.name = "x.scale_inv"})
    func.func private @new_backward(tensor<32x8xbf16>,
        tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"},
        tensor<1x1xf32> {fp8.name = "x.scale_inv"}) -> tensor<8x64xbf16>
    ```

    Parts take the place of a marked argument of a reader and of a marked result;
    those of a marked argument of the source are results behind the others. Parts
    of further values of one tensor end with _1, _2, and so on. A reader that uses no
    part has none.

    A tensor stays as it is, with a remark, where a reader needs more of it than
    codes, where its codes take more memory than it does (of a weight, which is kept
    anyway, they may), where codes are smaller than a byte, and in functions that
    are called in the module.
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numSaved", "num-saved", "Tensors of which codes are saved">];
}

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

    In a function with an argument `fp8.first_microbatch` weights are quantised,
    and recorded, if it is true; the value is kept with the slot and taken from
    there in the other micro-batches of the step.
  }];
  let options = [
    Option<"counts", "counts", "bool", "false",
           "Count underflow and saturation in every slot">,
    Option<"cacheWeights", "cache-weights", "bool", "true",
           "Quantise weights once per step where fp8.first_microbatch says "
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
  let summary = "scales of a saved state as constants";
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
  let summary = "scaling state as ordinary tensor arguments and results";
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
  let summary = "a function that ends a step of the scaling state";
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
    - what is recorded in a slot is the amax of the tensor that is quantised with
      its scale;
    - no two tensors of a step record the same slot, but on branches that exclude
      each other. The iterations of a loop and the calls of a function may, if
      the slot does not depend on them, which is what `fp8.slots = "shared"` says;
      and so may a call with `fp8.recompute`, which repeats another.

    So the one update that ends a step sees for every slot
    the amax of one tensor, or the largest of those that share it by intent.
  }];
}

#endif // FP8_TRANSFORMS_SCALINGPASSES_TD

//===- Passes.td - Tensor-level passes ---------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_PASSES_TD
#define FP8_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Phase 1: import
//===----------------------------------------------------------------------===//

def AnnotateGemmsPass : Pass<"fp8-annotate-gemms", "::mlir::ModuleOp"> {
  let summary = "give every contraction a name and a role";
  let description = [{
    Finds every matmul-like operation, whatever its spelling
    (`linalg.matmul`, `batch_matmul`, `matvec`, `contract`, a `generic` that
    multiplies and adds, convolutions and integer products with zero points too,
    `tosa.matmul`), and attaches

    - `fp8.name`: from a name in its location, else `function.weight` where an
      operand is a weight with a name, that of an argument or a global, else
      `function.op_index`; unique in the module, and what recipe files match;
    - `fp8.role`: fprop, dgrad or wgrad, from the arguments marked `fp8.grad`
      and `fp8.weight`.

    Attributes already there stay. No value changes.

    ```mlir
    %0 = linalg.matmul ins(%x, %w : ...) outs(%c : ...) -> ...
    // becomes
    %0 = linalg.matmul {fp8.name = "main.matmul_0", fp8.role = #fp8.role<fprop>} ...
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::linalg::LinalgDialect"];
  let statistics = [
    Statistic<"numContractions", "num-contractions", "Contractions found">];
}

def FoldGlobalsPass : Pass<"fp8-fold-globals", "::mlir::ModuleOp"> {
  let summary = "loads of constant ml_program globals to constants";
  let description = [{
    `ml_program.global_load_const`, and `global_load` of a global that is not
    mutable, becomes the `arith.constant` of its value: upstream does not
    bufferise the former, and a weight that is visibly constant is known to be
    one. A private global that nothing else uses goes. A constant global without
    a value is an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numFolded", "num-folded", "Loads folded">];
}

def RaiseScalingCastsPass : Pass<"fp8-raise-scaling-casts"> {
  let summary = "arith.scaling_extf to scaled values, other such casts to arith";
  let description = [{
    MX programs of other compilers multiply codes by E8M0 factors with
    `arith.scaling_extf`, in the body of the contraction that reads both. What a
    `linalg.generic` extends so, from one code and one factor that covers whole
    dimensions, becomes an `fp8.dequantize` of an assembled value in front of
    it, which later passes know as a quantised operand. So does every extension of
    codes of 4 bits, and what is truncated to them becomes an `fp8.quantize`,
    with a factor of 1: only scaled values know how such codes lie in memory.

    All others, and `arith.scaling_truncf`, become a product (or quotient) and a
    cast in f32: upstream's expansion takes E8M0's smallest value for zero.

    ```mlir
    linalg.generic ... ins(%x, %s : tensor<16x2x32xf8E4M3FN>, tensor<16x2xf8E8M0FNU>) ... {
      %1 = arith.scaling_extf %p, %ps : f8E4M3FN, f8E8M0FNU to f32
    // becomes
    %q = fp8.assemble %x, %grid : ... -> !fp8.scaled<16x2x32xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
    %0 = fp8.dequantize %q : ... -> tensor<16x2x32xf32>
    linalg.generic ... ins(%0 : tensor<16x2x32xf32>) ... {
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numRaised", "num-raised", "Extensions that became scaled values">,
    Statistic<"numExpanded", "num-expanded", "Casts expanded">];
}

def RaiseConvolutionsPass : Pass<"fp8-raise-convolutions"> {
  let summary = "convolutions whose windows do not overlap to matrix products";
  let description = [{
    A convolution by steps of its window's extent, as the embedding of an
    image's patches is, and one whose windows are single elements read every
    element of the image at most once: the image is cut, and what is left is a
    contraction like others. Extents of windows and of what is cut have to be
    static.

    ```mlir
    %0 = linalg.conv_2d_nchw_fchw {strides = dense<16> : ...} ins(%x, %w : tensor<1x3x224x224xf32>, tensor<768x3x16x16xf32>) ...
    // becomes
    %1 = tensor.expand_shape %x [[0], [1], [2, 3], [4, 5]] : ... into tensor<1x3x14x16x14x16xf32>
    %0 = linalg.generic ins(%1, %w : ...) ...
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numRaised", "num-raised", "Convolutions that became products">];
}

//===----------------------------------------------------------------------===//
// Phase 2: recipe
//===----------------------------------------------------------------------===//

def ApplyRecipePass : Pass<"fp8-apply-recipe", "::mlir::ModuleOp"> {
  let summary = "quantise the operands of contractions as their recipes say";
  let description = [{
    The recipe of a contraction is the innermost `fp8.recipe` attribute (on the
    op, its function, the module), else what the recipe file says (its first and
    last layers, then the first matching rule), else the pass option `recipe`,
    else `#fp8.none`.

    A contraction in FP8 becomes `linalg.contract` on `[batch x] M x K` and
    `[batch x] N x K` in f32, between a quantize and a dequantize whose scales
    are still unresolved, and a cast back. K is padded with zeros to what the
    recipe needs if that adds at most `max-padding` of K; otherwise the
    contraction stays as it is. A dynamic K, of which nobody knows how much it
    adds, is padded at run time unless `max-padding` is 0.

    Every contraction gets exactly one optimisation remark of category `fp8`:
    what was decided, or why it stays in high precision and what would change
    that. With `require`, staying for any reason but `#fp8.none` is an error.

    ```mlir
    %0 = linalg.matmul {fp8.recipe = #fp8.current} ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) ...
    // becomes
    %wt = linalg.transpose ins(%w) ... permutation = [1, 0]
    %qx = fp8.quantize %x recipe(#fp8.current) : ... -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
    %qw = fp8.quantize %wt recipe(#fp8.current) : ... -> !fp8.scaled<16x64xf8E4M3FN, block = [*, *], scale = f32>
    %dx = fp8.dequantize %qx : ... -> tensor<32x64xf32>
    %dw = fp8.dequantize %qw : ... -> tensor<16x64xf32>
    %acc = linalg.contract ... ins(%dx, %dw) outs(%zero) -> tensor<32x16xf32>
    ```
  }];
  let options = [
    Option<"recipe", "recipe", "std::string", "\"\"",
           "Recipe of contractions that nothing else decides: name[,key=value...]">,
    Option<"recipeFile", "recipe-file", "std::string", "\"\"",
           "JSON file of ordered rules; see docs/Recipes/RecipeFile.md">,
    Option<"require", "require", "bool", "false",
           "Fail when a contraction stays in high precision unasked">,
    Option<"maxPadding", "max-padding", "double", "0.25",
           "Largest share of K that padding may add">];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::fp8::FP8Dialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numQuantized", "num-quantized", "Contractions in FP8">,
    Statistic<"numHighPrecision", "num-high-precision",
              "Contractions left in high precision">,
    Statistic<"numPadded", "num-padded", "Contractions with padded K">];
}

//===----------------------------------------------------------------------===//
// Phase 3: scaling
//===----------------------------------------------------------------------===//

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
    - a `linalg.copy` that converts nothing is its source;
    - `quantize(dequantize(q))` is q where format and blocks agree; otherwise it
      is *double quantisation* and gets a warning: the two roundings add up,
      the tensor should be quantised from its high-precision source.

    A slice is not moved above a quantize: the amax of a tensor is not that of
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
    slots are columns, in the order of the module's table.

    The amaxes of the step are one tensor that is carried through private
    functions, `scf.for`, `scf.while` and `scf.if`; state in other regions or in
    functions of several blocks is an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Phase 4: fusion
//===----------------------------------------------------------------------===//

def FormMatmulPass : Pass<"fp8-form-matmul"> {
  let summary = "contraction of two dequantizes to fp8.matmul";
  let description = [{
    A `linalg.contract` on `[batch x] M x K` and `[batch x] N x K` whose operands
    are both dequantized becomes `fp8.matmul`, if their formats and blocks can be
    multiplied. An initial value other than zero
    becomes an elementwise addition, which `fp8-fuse-epilogues` moves into the
    matmul.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numMatmuls", "num-matmuls", "Matmuls formed">];
}

def FormPlainMatmulPass : Pass<"fp8-form-plain-matmul"> {
  let summary = "contractions in high precision to fp8.matmul";
  let description = [{
    For GPUs: a contraction of two tensors of bf16, or two of f16, that a recipe
    left alone becomes `fp8.matmul` with plain operands, so that a kernel for
    tensor cores computes it and what follows moves into its epilogue. Tensors
    that were widened to f32 before count as what they were: the products are
    the same. An operand that lies in memory with K outermost, also one that the
    program transposes, stays so (`transpose_a`, `transpose_b`); a result that
    lies transposed is computed as the product of the operands in each other's
    place.

    Contractions of f32 stay as they are, unless `tf32` allows the tensor core
    to drop 13 of the 23 bits of their operands' mantissas. It reads them with K
    innermost only, so that others are transposed.
  }];
  let options = [
    Option<"tf32", "tf32", "bool", "false",
           "Multiply f32 as TF32, with mantissas of 10 bits">];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numMatmuls", "num-matmuls", "Matmuls formed">];
}

def FoldPowersOfTwoPass : Pass<"fp8-fold-powers-of-two"> {
  let summary = "products with powers of two into constant scales";
  let description = [{
    - `quantize(x * 2^k)` with the constant `scale` becomes `quantize(x)` with
      `scale * 2^k`: the codes are the same, and so are the factors that they
      have;
    - `dequantize(q) * 2^k` with constant factors of q becomes `dequantize` of q's
      codes with the factors times 2^k, so that a product takes codes.

    So the 1/8 of attention with heads of 64 is part of a calibrated scale
    (`static`). A product with a power of two is exact but where it overflows or is
    subnormal. With S the scale, s the factor, and of the tensor's type the
    smallest normal number n and the largest finite m, of the format the smallest
    code c and the largest M, it is folded where

    - k > 0 and `m * S >= M`: what overflows is M with either scale;
    - k < 0 and `n * S <= c / 2`: what is subnormal is a code of zero with either;
    - `c * s >= n` and `M * s <= m`, and the same of `s * 2^k`: nothing that codes
      stand for is subnormal or overflows.

    Of a scale that follows from an amax, or comes from a state at run time, that
    is not known: it is as large or small as the tensor.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect"];
  let statistics = [
    Statistic<"numFolded", "num-folded", "Products that became part of a scale">];
}

def FormStreamsPass : Pass<"fp8-form-streams"> {
  let summary = "what one pass over memory computes into fp8.stream";
  let description = [{
    Operations of a block that work on one tensor element by element become one
    `fp8.stream`: those that read the same tensor, and those that read what
    another of them computes. So the casts of a tensor, its amax, its transposed
    copies and the arithmetic that makes it read and write memory once.

    ```mlir
    %0 = linalg.generic ... ins(%gate, %up : ...) { silu, mulf, truncf }
    %1 = fp8.quantize %0 scale(%s, %si : ...) : ...
    %2 = fp8.amax %0 block = [*, *] : ...
    %3 = fp8.transpose %1 permutation = [1, 0] : ...
    // becomes
    %codes, %amax, %transposed = fp8.stream(%gate, %up, %s, %si) { ... } : ...
    %1 = fp8.assemble %codes, %si : ...
    %3 = fp8.assemble %transposed, %si : ...
    ```

    What needs a value that is only known when the whole tensor has been read,
    as a quantise with the scale of its own amax, begins another stream. A
    number that two streams need, and that light arithmetic makes of what is no
    more to read, is computed in both. Operations move; the order of effects stays what it was.
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let statistics = [
    Statistic<"numFormed", "num-formed", "Streams formed">];
}

def TileStreamsPass : Pass<"fp8-tile-streams", "::mlir::ModuleOp"> {
  let summary = "fp8.stream to its body, for each tile of the tensor";
  let description = [{
    A stream becomes a call of a function, one for all equal streams, which is an
    `scf.forall` over tiles of the domain with the body's operations on slices, so that what one computes is in the cache when the next
    reads it, and memory is passed over once. Tiles are whole blocks; of more rows
    where something is transposed; whole rows or columns where these are summed
    in their order. Each tile has its own amax of the tensor, and the amax of
    these follows: every result has the bits that it has without tiles, in
    whatever order they are computed.

    ```mlir
    %codes, %amax = fp8.stream(%x, %s, %si) { ... }
    // becomes
    %codes, %amax = call @f_stream(%x, %s, %si)
    // and in the function
    %codes, %amaxes = scf.forall (%i, %j) in (256, 2) shared_outs(...) {
      %0 = tensor.extract_slice %x[...] [8, 2048] [1, 1] : ...
      %1 = fp8.quantize %0 scale(%s, %si : ...) : ...
      %2 = fp8.amax %0 block = [*, *] : ...
      scf.forall.in_parallel { ... }
    }
    %amax = fp8.amax %amaxes block = [*, *] : ...
    ```

    Tensors that are only known to fit when the program runs are compared before
    they are cut. The loop is marked (`fp8.tiles`), so that nothing compares their
    parts again (`fp8-check-extents`). Streams that are too small to be worth
    it, or that have sums in both directions, stay.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::bufferization::BufferizationDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"elements", "elements", "int64_t", "16384",
           "Elements of a tile, about: what is computed of them stays in the "
           "cache, and takes longer than to wake a thread">];
  let statistics = [
    Statistic<"numTiled", "num-tiled", "Streams cut into tiles">,
    Statistic<"numFunctions", "num-functions", "Functions that compute them">,
    Statistic<"numWhole", "num-whole", "Streams left whole">];
}

def CheckExtentsPass : Pass<"fp8-check-extents", "::mlir::func::FuncOp"> {
  let summary = "compare at run time what types do not say";
  let description = [{
    Operations check that their operands fit (`RuntimeVerifiableOpInterface`), as
    upstream's `generate-runtime-verification` has it, but not where there is
    nothing to find: structured operations of static shape have been verified, and
    tiles are parts of tensors that have been compared before the loop
    (`fp8-tile-streams`). Each check is code with a text of its own: of a program
    with dynamic extents it would be most of it, and of a static one most of what
    the passes that follow take time for. Loops over tiles are marked with
    `fp8.tiles`, and the mark goes; what an element decides within them, such as
    the row that it reads, is checked.

    ```mlir
    %0 = tensor.extract_slice %x[%i] [8] [1] : tensor<?xf32> to tensor<8xf32>
    // becomes
    %fits = ...
    cf.assert %fits, "ERROR: Runtime op verification failed ..."
    %0 = tensor.extract_slice %x[%i] [8] [1] : tensor<?xf32> to tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numChecked", "num-checked", "Operations that are checked">];
}

def FuseCastsPass : Pass<"fp8-fuse-casts"> {
  let summary = "casts of a matmul's result into its epilogue";
  let description = [{
    A quantise with a given scale that is the only use of a matmul's result is
    computed by its epilogue: the result are the codes, and is never in memory in
    high precision. The amax of a result is the matmul's second one.

    ```mlir
    %0 = fp8.matmul %a, %b : ... -> tensor<32x64xbf16>
    %1 = fp8.quantize %0 scale(%s, %si : ...) : ...
    %2 = fp8.amax %0 block = [*, *] : tensor<32x64xbf16>
    // becomes
    %codes, %2 = fp8.matmul %a, %b epilogue(%s : tensor<1x1xf32>) {
    ^bb0(%acc: f32, %scale: f32):
      ...
      fp8.yield %code, %wide : f8E4M3FN, f32
    } : ... -> tensor<32x64xf8E4M3FN>, tensor<1x1xf32>
    %1 = fp8.assemble %codes, %si : ...
    ```

    Roundings stay: what is quantised and measured is the result as it would have
    been stored. A quantise stays where a transposed copy of its codes is needed,
    which one pass over memory makes of the same read, and where its blocks are
    not the whole tensor.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect"];
  let statistics = [
    Statistic<"numAmaxes", "num-amaxes", "Amaxes moved into an epilogue">,
    Statistic<"numQuantizes", "num-quantizes",
              "Quantizes moved into an epilogue">];
}

def FuseElementwisePass : Pass<"fp8-fuse-elementwise"> {
  let summary = "chains of elementwise operations to one linalg.generic";
  let description = [{
    Named elementwise and broadcast operations become `linalg.generic`, and an
    elementwise operation with one elementwise user is computed inside it.
    Unlike upstream's `linalg-fuse-elementwise-ops` it leaves contractions and
    other reductions alone: their operands are computed once, not once for
    every use in the reduction. What rounds a matmul's result to 16 bits stays
    apart too: in that matmul's epilogue it is free, and in a user that goes to
    the epilogue of another matmul the result would be stored with 32 bits.
    Who reads a tensor that is only widened reads the narrow one, and widens it
    for himself; unit dimensions that a reshape adds or removes are read
    through.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def FuseEpiloguesPass : Pass<"fp8-fuse-epilogues"> {
  let summary = "elementwise users of a matmul into its epilogue";
  let description = [{
    An elementwise `linalg.generic` that is the only user of a matmul's result
    is computed on the accumulator instead, if it is in the same block and its
    other operands are scalars or broadcast to the result.

    ```mlir
    %0 = fp8.matmul %a, %b : ... -> tensor<32x64xf32>
    %1 = linalg.generic ... ins(%0, %bias : tensor<32x64xf32>, tensor<64xbf16>) { add, truncf }
    // becomes
    %1 = fp8.matmul %a, %b epilogue(%bias : tensor<64xbf16>) {
    ^bb0(%acc: f32, %b0: bf16):
      ...
      fp8.yield %2 : bf16
    } : ... -> tensor<32x64xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numFused", "num-fused",
              "Elementwise operations moved into an epilogue">];
}

def InstrumentQuantizePass : Pass<"fp8-instrument-quantize", "::mlir::ModuleOp"> {
  let summary = "report amax, underflow, saturation and noise of quantized tensors";
  let description = [{
    After every `fp8.quantize` the program measures what it did (`fp8.measure`)
    and hands the numbers to `fp8rt_stats_record` of the runtime, with the
    number of the slot. The names of the slots, after the matmul that the tensor
    feeds, become the module attribute `fp8.stats_slots`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::tensor::TensorDialect"];
}

//===----------------------------------------------------------------------===//
// Leaving for the CPU
//===----------------------------------------------------------------------===//

def WidenContractionsPass : Pass<"fp8-widen-contractions"> {
  let summary = "bf16 and f16 contractions to f32 ones";
  let description = [{
    A contraction that stays in high precision is rewritten to
    `linalg.contract` with f32 operands and accumulator and a cast of the
    result; one with several M, N, K or batch loops is first collapsed to
    `[batch x] M x K` times `[batch x] N x K`. Products of bf16 or f16
    are exact in f32 (but for f16 x f16 below 2^-149); the sum is rounded once
    at the end instead of at every step, as every framework does it.
  }];
  let dependentDialects = [
    "::mlir::affine::AffineDialect", "::mlir::arith::ArithDialect",
    "::mlir::linalg::LinalgDialect", "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numWidened", "num-widened", "Contractions widened">];
}

def DecomposeAggregatesPass : Pass<"fp8-decompose-aggregates"> {
  let summary = "decompose softmax, pack and other aggregate linalg operations";
  let description = [{
    Upstream bufferises and lowers only structured operations; aggregates
    (`linalg.softmax`, `winograd_*`) are first decomposed through their own
    interface, `linalg.pack` and `linalg.unpack` into padding, reshapes and
    transposes, or a gather where the extents of tiles show at run time, and
    `tensor.reshape` into a collapse and an expansion.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::cf::ControlFlowDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def LowerDynamicExpandShapePass : Pass<"fp8-lower-dynamic-expand-shape"> {
  let summary = "memref.expand_shape to several unknown extents, as a cast";
  let description = [{
    Upstream's `expand-strided-metadata` allows one unknown extent for each
    dimension that is expanded, and crashes if there are more. These become
    `memref.reinterpret_cast`, with the extents that the operation gives.
  }];
  let dependentDialects = ["affine::AffineDialect", "arith::ArithDialect",
                           "memref::MemRefDialect"];
}

def ShareComputationsPass : Pass<"fp8-share-computations", "::mlir::ModuleOp"> {
  let summary = "compute what is equal by one function";
  let description = [{
    Layers of a model are the same again and again. Structured operations on
    tensors that are equal but for their operands become calls of one private
    function, so that each is bufferized, lowered and compiled once. It is given the
    memory that they write, fills it itself, and has its own constants and slices
    and reshapes of what they read, whose memory may not be in one piece.
    What writes into a tensor that another operation made stays where it is, and so
    do operations in loops and branches, and those that nothing is equal to, unless
    the function has so many (`max-in-place`) that LLVM would take long for it.

    ```mlir
    %1 = linalg.exp ins(%x : tensor<64xf32>) outs(%0 : tensor<64xf32>) -> tensor<64xf32>
    %3 = linalg.exp ins(%1 : tensor<64xf32>) outs(%2 : tensor<64xf32>) -> tensor<64xf32>
    // becomes
    %1 = call @f_exp(%x, %0) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %3 = call @f_exp(%1, %2) : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    ```
  }];
  let dependentDialects = ["::mlir::func::FuncDialect",
                           "::mlir::LLVM::LLVMDialect"];
  let options = [
    Option<"maxInPlace", "max-in-place", "unsigned", /*default=*/"128",
           "Computations that nothing is equal to which a function may have">];
  let statistics = [
    Statistic<"numFunctions", "num-functions", "Functions that were made">,
    Statistic<"numCalls", "num-calls", "Operations that are calls now">];
}

def FreeBuffersPass : Pass<"fp8-free-buffers", "::mlir::func::FuncOp"> {
  let summary = "free memory after its last use, where that is seen";
  let description = [{
    Upstream's deallocation frees what a block has allocated at its end, all at
    once, after it has compared each buffer with each other for those that may be
    the same. Memory whose every use, by itself or through a view, is in the block
    that allocates it, that nothing returns and whose address nothing keeps
    is no other's: it is freed after the last of them, and marked as done
    (`bufferization.manual_deallocation`).
  }];
  let dependentDialects = ["::mlir::bufferization::BufferizationDialect",
                           "::mlir::memref::MemRefDialect"];
  let statistics = [Statistic<"numFreed", "num-freed", "Buffers that are freed">];
}

def SeparateBuffersPass : Pass<"fp8-separate-buffers", "::mlir::func::FuncOp"> {
  let summary = "give each result memory of its own, when it is computed";
  let description = [{
    Equal `tensor.empty` have been merged, and so have equal `linalg.fill` of them.
    Bufferization makes one buffer of them wherever their contents do not overlap
    in time: it is allocated for the first of its uses and freed after the last,
    although it may hold nothing for most of the program; what is filled once is
    copied for all uses but one; and each use is compared with each other, which
    takes time with the square of their number. Here every use in the block gets a
    `tensor.empty` just before it, filled if it was, and who allocates in stream
    order finds the memory that another one has left.

    ```mlir
    %0 = tensor.empty() : tensor<64x64xf32>
    %1 = linalg.exp ins(%x : ...) outs(%0 : ...)
    %2 = linalg.abs ins(%y : ...) outs(%0 : ...)
    // becomes
    %0 = tensor.empty() : tensor<64x64xf32>
    %1 = linalg.exp ins(%x : ...) outs(%0 : ...)
    %2 = tensor.empty() : tensor<64x64xf32>
    %3 = linalg.abs ins(%y : ...) outs(%2 : ...)
    ```
  }];
  let statistics = [
    Statistic<"numSeparated", "num-separated",
              "Uses that got memory of their own">];
}

def SinkProducersPass : Pass<"fp8-sink-producers"> {
  let summary = "make tensors just before they are needed, to save memory";
  let description = [{
    An operation without effects moves to before the first that needs its results
    where that lowers the peak of what is allocated in between and raises it
    nowhere: it makes more than it frees, as the cast of a weight does, which is an
    argument, and what it frees needs no more room than what that user makes after
    it. Where there is more in memory at the user than anywhere in between, the
    order stays. An amax that is recorded is recorded where its tensor is now made.

    The order in which kernels are launched costs nothing, and what was just
    written is in the cache. Nothing moves into a loop or a branch. Bytes are
    those of a model: what is no view is allocated when it is computed and freed
    after its last use, which is what bufferization and
    `optimize-allocation-liveness` make of it. In a block with extents that are not
    known nothing moves.
  }];
  let statistics = [
    Statistic<"numSunk", "num-sunk", "Operations moved to their first user">];
}

def ProtectArgumentsPass : Pass<"fp8-protect-arguments", "::mlir::ModuleOp"> {
  let summary = "keep bufferization from writing to what callers pass";
  let description = [{
    A tensor is a value, and its memory the caller's: a result that would be
    computed in the memory of an argument, such as a sum that a matmul adds to,
    is computed in a copy, which is then the result. Bufferization takes
    arguments for writable where nothing is said; this pass says of every tensor
    argument of a public function that it is not, unless the program says that
    it is (`bufferization.writable = true`).
  }];
  let dependentDialects = ["bufferization::BufferizationDialect"];
}

def StripAttributesPass : Pass<"fp8-strip-attributes", "::mlir::ModuleOp"> {
  let summary = "drop attributes of functions that LLVM has no use for";
  let description = [{
    Names, weights and what other compilers attach to functions, arguments and
    results has served by now; LLVM's translation would warn about each. The
    module's table of scaling state becomes the manifest that the runtime takes,
    a string, which tools that do not know the dialect can read.
  }];
}

//===----------------------------------------------------------------------===//
// Contracts
//===----------------------------------------------------------------------===//

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

def VerifyStagePass : Pass<"fp8-verify-stage", "::mlir::ModuleOp"> {
  let summary = "check what a phase promises to the next";
  let description = [{
    | stage | contract |
    | --- | --- |
    | `import` | every contraction has a name and a role |
    | `recipe` | quantizes are fed from high precision, contractions with a recipe from dequantizes |
    | `scaling` | no unresolved quantize |
    | `fusion` | no contraction with a recipe; at most one quantize per value, scale and type |
    | `buffers` | no tensors |
    | `kernels` | no operation of the fp8 dialect, no 8-bit float arithmetic |
    | `host` | only the llvm dialect |
  }];
  let options = [
    Option<"stage", "stage", "std::string", "\"\"", "Name of the phase">];
}

#endif // FP8_TRANSFORMS_PASSES_TD

//===- RecipePasses.td - Phase 2, recipe -------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_RECIPEPASSES_TD
#define FP8_TRANSFORMS_RECIPEPASSES_TD

include "mlir/Pass/PassBase.td"

def MarkInvariantPass : Pass<"fp8-mark-invariant", "::mlir::ModuleOp"> {
  let summary = "ask for rows whose bits depend on nothing else";
  let description = [{
    Gives the module the attribute `fp8.invariant`. The bits of a row of what its
    operations compute then depend on that row alone: not on how many rows there
    are, on the others, on groups, or on which kernel is chosen. Those who
    decide obey:

    - `fp8-apply-recipe` refuses recipes whose scales of activations and
      gradients depend on other rows, but for sums over rows (role `wgrad`);
    - kernels of matmuls add up K in one part (`fp8-select-kernels`,
      `fp8-group-matmuls`, `fp8-dispatch-by-rows`), and a config of a table or
      of the program that does not is not taken;
    - kernels of fusions add up rows in an order that follows from the number
      of columns alone, and so do loops.

    A remark says where a kernel is another one than without it, and what that
    is expected to cost. The attribute may also stand on a function, or on an
    operation, for these alone.
  }];
}

def ApplyRecipePass : Pass<"fp8-apply-recipe", "::mlir::ModuleOp"> {
  let summary = "quantize the operands of contractions as their recipes say";
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

    Products that surround a softmax are attention's: those of a program that
    spells it, forward and backward, and `fp8.attention`. They have a recipe
    where one is for attention: `fp8.recipe` on the operation itself, else the
    innermost `fp8.attention_recipe`, else the first matching rule of the file
    that has a `role`, else the pass option `attention-recipe`. In FP8 the
    operands of `fp8.attention` are codes with a factor for the tensor, and so
    are those of `fp8.attention_backward` of the same tensors.

    Every contraction gets exactly one optimization remark of category `fp8`:
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
    Option<"attentionRecipe", "attention-recipe", "std::string", "\"\"",
           "Recipe of attention's products that nothing else decides">,
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

#endif // FP8_TRANSFORMS_RECIPEPASSES_TD

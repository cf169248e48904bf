//===- FP8Dialect.td - The fp8 dialect ---------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8DIALECT_TD
#define FP8_IR_FP8DIALECT_TD

include "mlir/IR/OpBase.td"

def FP8_Dialect : Dialect {
  let name = "fp8";
  let cppNamespace = "::mlir::fp8";
  let summary = "computation on scaled 8-bit (and 4-bit) floating point tensors";
  let description = [{
    An 8-bit float alone covers 5 (E5M2) or 4 (E4M3) bits of exponent: too few
    for the tensors of a network. It becomes useful with a *scale*: a tensor
    `x` is stored as codes `q` and one dequantization factor `scale_inv` for
    every block of elements,

    ```
    scale     = fp8_max / amax(block of x)          (quantization factor)
    q         = round_to_fp8(x * scale)              (saturating)
    scale_inv = 1 / scale                            (dequantization factor)
    x        ~= q * scale_inv
    ```

    The dialect makes the pair (q, scale_inv) one typed value, `!fp8.scaled`,
    so that codes and factors cannot get out of step; it describes how factors
    are chosen by *recipe* attributes; and its operations say where tensors are
    quantized and multiplied. Granularity is a property of the type: the block
    that shares one factor can be the whole tensor, a row, 1x128, 128x128, 1x32
    (MXFP8) or 1x16 (NVFP4).

    The words are those of Transformer Engine: `scale` always multiplies on the
    way in, `scale_inv` always multiplies on the way out, `amax` is the largest
    magnitude of the elements that share a factor.

    Discardable attributes understood by the passes:

    | attribute | on | meaning |
    | --- | --- | --- |
    | `fp8.recipe` | module, function, contraction | recipe; the innermost wins |
    | `fp8.role` | contraction | `#fp8.role<fprop>`, `dgrad` or `wgrad` |
    | `fp8.name` | contraction, quantize, call, loop, function argument or result | stable name |
    | `fp8.grad` | function argument | the argument is a gradient |
    | `fp8.weight` | function argument | the argument is a weight |
    | `fp8.save` | function argument or result | name of a tensor that other functions take, such as a backward |
    | `fp8.saved` | function argument | the tensor that another function marks `fp8.save` with this name |
    | `fp8.first_microbatch` | function argument, i1 | whether this is the first micro-batch of a step: weights with scaling state are quantized then, and taken from a cache in the others |
    | `fp8.recompute` | contraction, call | repeats the forward of the same name: it reads the scales of its slots and records nothing |
    | `fp8.slots` | private function, `scf.for` | `"separate"`: slots of its own for every call or iteration; `"shared"`: the same for all. Default: separate for calls, shared for iterations |
    | `fp8.accumulate` | canonical contraction | set by `fp8-apply-recipe`, read by `fp8-form-matmul` |
    | `fp8.operands` | canonical contraction, `fp8.matmul` | what A and B hold, e.g. `[#fp8.operand<activation>, #fp8.operand<weight>]`; set by `fp8-apply-recipe`, read to name their slots and statistics |
    | `fp8.state` | module | `#fp8.state_table` of the scaling state, set by `fp8-allocate-state` |
    | `fp8.state_update` | module | symbol of the function that ends a step of the scaling state, set by `fp8-build-state-update` |
    | `fp8.state_uses` | function that ends a step | the slots that calls of each function record, by its name; set by `fp8-build-state-update` |
    | `fp8.state_manifest` | module | the same as `fp8.state` in JSON, as the runtime takes it; set by `fp8-strip-attributes`, with which the dialect ends |
    | `fp8.stats_slots` | module | names of the statistics, set by `fp8-instrument-quantize` |
    | `fp8.invariant` | module, function, operation | bits of a row depend on that row alone, not on how many there are, on the others or on the kernel that is chosen; set by `fp8-mark-invariant` |
    | `fp8.exact` | module, function, `fp8.fusion` | quotients are rounded correctly in fusions, and functions are a CPU's, where they else [approximate](../Kernels.md#precision) them; no attention is raised. Epilogues of matmuls do not obey it |
    | `fp8.amax_group` | module, function | the innermost wins: a group of ranks, by name, that share the amaxes of whole tensors, by `fp8.all_reduce_amax` or in the end of a step |
    | `fp8.tiles` | `scf.forall` | a loop over tiles, in which nothing has to be checked; set by `fp8-tile-fusions`, read by `fp8-check-extents` |

    Any other name that begins with `fp8.` is an error.
  }];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let extraClassDeclaration = [{
    /// Operations under the names that they had before.
    std::optional<ParseOpHook>
    getParseOperationHook(::llvm::StringRef name) const override;

    /// Makes recipes known to recipe texts by their names. Other dialects do
    /// so in an extension of this one:
    ///
    ///   registry.addExtension(+[](MLIRContext *context, FP8Dialect *fp8) {
    ///     context->getOrLoadDialect<MyDialect>();
    ///     fp8->addRecipes<MyRecipeAttr>();
    ///   });
    template <typename... RecipeAttrs>
    void addRecipes() {
      (recipes.push_back(&RecipeAttrs::getSchema()), ...);
    }

    ::llvm::ArrayRef<const ::fp8rt::RecipeSchema *> getRecipes() const {
      return recipes;
    }

  private:
    void registerAttributes();
    void registerTypes();

    ::llvm::SmallVector<const ::fp8rt::RecipeSchema *> recipes;

  public:
  }];
}

#endif // FP8_IR_FP8DIALECT_TD

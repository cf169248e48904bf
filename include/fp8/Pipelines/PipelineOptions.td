//===- PipelineOptions.td - Options of the pipeline --------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The members of PipelineOptions (Pipelines.h), which says more of each.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PIPELINES_PIPELINEOPTIONS_TD
#define FP8_PIPELINES_PIPELINEOPTIONS_TD

include "fp8/Support/KeyedOption.td"

class PipelineOption<string key, string member, string value, string help>
    : KeyedOption<"PipelineOptions", key, member, value, help>;
def PipelineOptionTable
    : KeyedOptionTable<"PipelineOptions", "PipelineOption">;

def Recipe
    : PipelineOption<"recipe", "recipe", "RECIPE",
                     "current, rowwise, block, mxfp8, nvfp4, delayed, static "
                     "or none[,key=value...]: the recipe of contractions "
                     "without one of their own">;
def RecipeFile
    : PipelineOption<"recipe-file", "recipeFile", "FILE",
                     "JSON rules that give recipes to contractions by name">;
def AttentionRecipe
    : PipelineOption<"attention-recipe", "attentionRecipe", "RECIPE",
                     "The same of attention's products, which recipe is not "
                     "for">;
def Target : PipelineOption<"target", "target", "TARGET",
                            "cpu (the default), sm_80, sm_89, sm_90a, sm_100a, "
                            "sm_120a or sm_121a; of a "
                            "program several with commas, or portable, sm_89's "
                            "kernels as PTX for later GPUs">;
def Machine
    : PipelineOption<"machine", "machine", "MACHINE",
                     "Whose numbers kernels are chosen by: h200 (sm_90a's "
                     "default), h100, b200 (sm_100a's), rtx3090 "
                     "(sm_80's), a100, rtx4090 (sm_89's), "
                     "l40s, l4, rtx5090 (sm_120a's), rtxpro6000 or dgxspark "
                     "(sm_121a's), the FILE of another machine, or device:NAME, as the driver calls a GPU">;
def From : PipelineOption<"from", "from", "PHASE",
                          "The first phase: the program is what the one before "
                          "left">;
def To : PipelineOption<"to", "to", "PHASE",
                        "The last phase: import, recipe, scaling, fusion, "
                        "buffers, kernels or host (the default)">;
def Require
    : PipelineOption<"require", "require", "",
                     "Fail when a contraction stays in high precision although "
                     "its recipe is not none">;
def MaxPadding
    : PipelineOption<"max-padding", "maxPadding", "SHARE",
                     "Pad K where that adds at most this share of it (0.25)">;
def KernelFormat
    : PipelineOption<"kernel-format", "kernelFormat", "FORMAT",
                     "How kernels are embedded: cubin, ptx, or auto (the "
                     "default), a cubin if there is a ptxas">;
def KernelCache
    : PipelineOption<"kernel-cache", "kernelCache", "DIR",
                     "Where cubins are kept for later compilations, or off; "
                     "without it, fp8/kernels in XDG_CACHE_HOME or ~/.cache">;
def KernelTable
    : PipelineOption<"kernel-table", "kernelTable", "FILE",
                     "Kernel configs that fp8-tune measured; without it, and "
                     "for matmuls that it lacks, a heuristic chooses">;
def FusionReport
    : PipelineOption<"fusion-report", "fusionReport", "FILE",
                     "Write what each kernel of a GPU reads and writes, and why "
                     "it is not fused further; JSON if FILE ends in .json, - "
                     "for the standard output">;
def MemoryPrice
    : PipelineOption<"memory-price", "memoryPrice", "US",
                     "Microseconds that a GPU program may take longer for each "
                     "megabyte that its peak of memory falls (0)">;
def KeepPeak
    : PipelineOption<"keep-peak", "keepPeak", "BOOL",
                     "Make copies of FP8 codes late on a GPU where its peak of "
                     "memory would be above that in high precision (the "
                     "default)">;
def TransposedCodes
    : PipelineOption<"transposed-codes", "transposedCodes", "WAY",
                     "What becomes of FP8 operands that Hopper's tensor cores "
                     "want in the other order: copy (the default), kernel, "
                     "which transposes one of them, or cost, what is expected "
                     "to take less">;
def Accumulation
    : PipelineOption<"accumulate", "accumulate", "SUMS",
                     "How a CPU adds up products: f32 (the default), or "
                     "tensor-core, with a GPU's bits, slowly">;
def AccumulationOf
    : PipelineOption<"accumulation-of", "accumulationOf", "TARGET",
                     "Which GPU's bits accumulate=tensor-core has: sm_90a (the "
                     "default), sm_100a, sm_89, sm_120a, sm_121a or sm_80"> {
  let FormerKey = "sums-of";
}
def Invariant
    : PipelineOption<"invariant", "invariant", "",
                     "Rows' bits depend on neither the number of rows, nor on "
                     "other rows, nor on which kernels are chosen; a CPU then "
                     "adds up products as a tensor core does">;
def Tf32
    : PipelineOption<"tf32", "tf32", "",
                     "Multiply f32 that no recipe quantizes as TF32, with "
                     "mantissas of 10 bits, on a GPU">;
def RaiseAttention
    : PipelineOption<"raise-attention", "raiseAttention", "BOOL",
                     "Compute products and the softmax between them by a GPU's "
                     "attention kernel, which does not round scores (the "
                     "default)">;
def FunctionalState
    : PipelineOption<"functional-state", "functionalState", "",
                     "Functions take and return the scales and past amaxes of "
                     "delayed scaling as tensors, in place of a state">;
def EvaluateConstants
    : PipelineOption<"evaluate-constants", "evaluateConstants", "BOOL",
                     "Quantize constant weights while compiling (the default), "
                     "not in every call">;
def Stats
    : PipelineOption<"stats", "stats", "",
                     "Record amax, underflow, saturation and SQNR of every "
                     "quantized tensor while the program runs">;

#endif // FP8_PIPELINES_PIPELINEOPTIONS_TD

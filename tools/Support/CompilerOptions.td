//===- CompilerOptions.td - Options of tools that compile --*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "llvm/Option/OptParser.td"
include "fp8/Compiler/CompileOptions.td"
include "fp8/Pipelines/PipelineOptions.td"

class J<string name, string meta, string help>
    : Joined<["--"], name # "=">, MetaVarName<meta>, HelpText<help>;
class F<string name, string help> : Flag<["--"], name>, HelpText<help>;

// An option of the compiler under its key, or under another name that
// parseCompilerOption knows.
class Keyed<KeyedOption option> : J<option.Key, option.Value, option.Help>;
class FormerKeyed<KeyedOption option>
    : Joined<["--"], option.FormerKey # "=">, Flags<[HelpHidden]>;
class KeyedFlag<KeyedOption option, string name = option.Key>
    : F<name, option.Help>;

def recipe : Keyed<Recipe>;
def attention_recipe : Keyed<AttentionRecipe>;
def recipe_file : Keyed<RecipeFile>;
def target : Keyed<Target>;
def machine : Keyed<Machine>;
def fp8_require : KeyedFlag<Require, "fp8-require">;
def max_padding : Keyed<MaxPadding>;
def no_evaluate_constants
    : F<"no-evaluate-constants", "Quantize constant weights in every call, not "
                                 "while compiling">;
def kernel_cache : Keyed<KernelCache>;
def kernel_table : Keyed<KernelTable>;
def tune : F<"tune", Tune.Help>;
def tune_EQ : J<"tune", "FILE", "The same, in FILE">;
def invariant : KeyedFlag<Invariant>;
def memory_price : Keyed<MemoryPrice>;
def transposed_codes : Keyed<TransposedCodes>;
def no_keep_peak
    : F<"no-keep-peak", "Make all copies of FP8 codes at once, even if a GPU's "
                        "peak of memory is then above that in high precision">;
def fp8_remarks : J<"fp8-remarks", "FORMAT:FILE",
                    "Write what was decided about every contraction: json:FILE "
                    "or text:FILE, - for the standard output">;
def fp8_fusion_report : J<"fp8-fusion-report", FusionReport.Value,
                          FusionReport.Help>;
def load_dialect_plugin
    : J<"load-dialect-plugin", "FILE",
        "Know the dialects and recipes of this shared object; may be repeated">;
def mlir_timing : F<"mlir-timing", "Print how long each step and each pass of "
                                   "the compilation took">;
def help : F<"help", "Print this">;

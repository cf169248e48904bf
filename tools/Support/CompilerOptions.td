//===- CompilerOptions.td - Options of tools that compile --*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "llvm/Option/OptParser.td"

class J<string name, string meta, string help>
    : Joined<["--"], name # "=">, MetaVarName<meta>, HelpText<help>;
class F<string name, string help> : Flag<["--"], name>, HelpText<help>;

def recipe : J<"recipe", "RECIPE",
               "current, rowwise, block, mxfp8, nvfp4, delayed, static or "
               "none[,key=value...]: the recipe of contractions without one of their own">;
def recipe_file : J<"recipe-file", "FILE",
                    "JSON rules that give recipes to contractions by name">;
def target : J<"target", "TARGET", "cpu (the default) or sm_90a">;
def fp8_require : F<"fp8-require", "Fail when a contraction stays in high "
                                   "precision although its recipe is not none">;
def max_padding : J<"max-padding", "SHARE",
                    "Pad K where that adds at most this share of it (0.25)">;
def no_evaluate_constants
    : F<"no-evaluate-constants", "Quantise constant weights in every call, not "
                                 "while compiling">;
def kernel_table : J<"kernel-table", "FILE",
                     "Kernel configs that fp8-tune measured; without it, and "
                     "for matmuls that it lacks, a heuristic chooses">;
def fp8_remarks : J<"fp8-remarks", "FORMAT:FILE",
                    "Write what was decided about every contraction: json:FILE "
                    "or text:FILE, - for the standard output">;
def help : F<"help", "Print this">;

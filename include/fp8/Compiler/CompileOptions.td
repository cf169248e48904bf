//===- CompileOptions.td - Options of a compilation --------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The members that CompileOptions (Compile.h) has beside those of
// PipelineOptions.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_COMPILEOPTIONS_TD
#define FP8_COMPILER_COMPILEOPTIONS_TD

include "fp8/Support/KeyedOption.td"

class CompileOption<string key, string member, string value, string help>
    : KeyedOption<"CompileOptions", key, member, value, help>;
def CompileOptionTable : KeyedOptionTable<"CompileOptions", "CompileOption">;

def Name : CompileOption<"name", "name", "NAME",
                         "What names in C begin with; that of the output">;
def Cpu : CompileOption<"cpu", "cpu", "NAME",
                        "The processor of the host code: native (the default), "
                        "or one that LLVM knows, such as x86-64-v3">;
def OptLevel : CompileOption<"opt-level", "optLevel", "0|1|2|3",
                             "How far LLVM optimizes the host code: 3 (the "
                             "default) runs fastest, 0 compiles fastest; kernels "
                             "and results are the same">;
def Linker : CompileOption<"linker", "linker", "FILE",
                           "In place of ld.lld or ld of PATH">;
def Rpath : CompileOption<"rpath", "rpaths", "DIR",
                          "One more place where the loader looks for libfp8rt; "
                          "it may be given several times">;
def Tune : CompileOption<"tune", "tune", "on|FILE",
                         "For a GPU: measure the best few configs of each kernel "
                         "on this machine at first use, and remember the fastest "
                         "in FILE, or fp8/tuned in XDG_CACHE_HOME or ~/.cache">;

#endif // FP8_COMPILER_COMPILEOPTIONS_TD

//===- Options.td - Command line of fp8-compile ------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "../Support/CompilerOptions.td"
include "fp8/Compiler/CompileOptions.td"

def o : JoinedOrSeparate<["-"], "o">, MetaVarName<"FILE">,
        HelpText<"What to write, - for the standard output; text goes there "
                 "without it">;
def emit : J<"emit", "KIND",
             "so, a shared object and its C header (the default); obj, an "
             "object and its header; llvm, ptx, cubin; or mlir">;
def compile_to : J<"compile-to", "PHASE",
                   "With --emit=mlir, stop after import, recipe, scaling, "
                   "fusion, buffers, kernels or host (the default)">;
def header : J<"header", "FILE",
               "Where to write the header; beside the output, as .h">;
def name : Keyed<Name>;
def accumulate : Keyed<Accumulation>;
def accumulation_of : Keyed<AccumulationOf>;
def sums_of : FormerKeyed<AccumulationOf>;
def functional_state : KeyedFlag<FunctionalState>;
def kernel_format : Keyed<KernelFormat>;
def cpu : Keyed<Cpu>;
def opt_level : Keyed<OptLevel>;
def linker : Keyed<Linker>;
def rpath : Keyed<Rpath>;

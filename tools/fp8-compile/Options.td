//===- Options.td - Command line of fp8-compile ------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "../Support/CompilerOptions.td"

def o : JoinedOrSeparate<["-"], "o">, MetaVarName<"FILE">,
        HelpText<"What to write, - for the standard output; text goes there "
                 "without it">;
def emit : J<"emit", "KIND",
             "so, a shared object and its C header (the default); obj, an "
             "object and its header; llvm, ptx, cubin; or mlir">;
def compile_to : J<"compile-to", "PHASE",
                   "With --emit=mlir, stop after import, recipe, scaling, "
                   "fusion, buffers, kernels or host (the default)">;
def name : J<"name", "NAME", "What names in C begin with; that of the output">;
def header : J<"header", "FILE",
               "Where to write the header; beside the output, as .h">;
def functional_state : KeyedFlag<FunctionalState>;
def kernels : J<"kernels", "NAME",
                "Of several gpu.modules, the one to emit as ptx or cubin">;
def kernel_format : Keyed<KernelFormat>;
def cpu : J<"cpu", "NAME",
            "The processor of the host code: native (the default), or one that "
            "LLVM knows, such as x86-64-v3">;
def linker : J<"linker", "FILE", "In place of ld.lld or ld of PATH">;
def rpath : J<"rpath", "DIR",
              "One more place where the loader looks for libfp8rt; it may be "
              "given several times">;

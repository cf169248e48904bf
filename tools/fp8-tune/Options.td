//===- Options.td - Command line of fp8-tune ---------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "../Support/CompilerOptions.td"

def o : JoinedOrSeparate<["-"], "o">, MetaVarName<"FILE">,
        HelpText<"The table to write, - for the standard output (the default); "
                 "entries of --kernel-table are kept">;
def shape : J<"shape", "[BATCHES x]M x N x K",
              "In place of a file: extents of a matmul, as in 64x4096x4096; it "
              "may be given several times">;
def a : J<"a", "TYPE", "With --shape, elements of A: e4m3 (the default) or e5m2">;
def b : J<"b", "TYPE", "With --shape, elements of B: e4m3 (the default) or e5m2">;
def result : J<"result", "TYPE",
               "With --shape, elements of the result: bf16 (the default), f16 "
               "or f32">;
def scales : J<"scales", "KIND",
               "With --shape, what shares a factor: tensor (the default), row, "
               "or block, 1x128 by 128x128">;
def accumulate : J<"accumulate", "MODE",
                   "With --shape, promote (the default) or fast">;
def rounds : J<"rounds", "N",
               "How often each config is timed, of which the median counts (9)">;
def costs : F<"costs",
              "Measure nothing: print, as JSON, what the compiler expects each "
              "config of each kernel to take, in clocks">;
def costs_EQ
    : J<"costs", "FILE",
        "The same of the configs of FILE alone, whose lines are FUNCTION "
        "CONFIG, as often as a machine's file follows on the standard input, "
        "which a line '// -----' ends: a little-endian f64 for each config">;
def exhaustive : F<"exhaustive",
                   "Try other decisions of each config's schedule too, "
                   "which are made by rule without a table">;

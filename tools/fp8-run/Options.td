//===- Options.td - Command line of fp8-run ----------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "../Support/CompilerOptions.td"

def accumulate : Keyed<Accumulation>;
def accumulation_of : Keyed<AccumulationOf>;
def sums_of : FormerKeyed<AccumulationOf>;
def entry : J<"entry", "NAME", "Function to run; needed if several are public">;
def compare : J<"compare", "TARGET",
                "Run the program for this target too (cpu), print the largest "
                "difference of each result, and fail beyond the tolerance">;
def tolerance : J<"tolerance", "SHARE",
                  "Of the largest magnitude of a result, what --compare allows "
                  "(0.01)">;
def device : J<"device", "DEVICE",
               "Where kernels run: gpu (the default), or emulator, a model of "
               "a GPU, as with FP8_CUDA_DRIVER=emulator">;
def check : J<"check", "LIST",
              "Run kernels on the emulator and look for races, proxies, "
              "uninitialized, registers, launches, global, unwritten, or all, "
              "as with FP8_EMULATOR_CHECK">;
def inputs : J<"inputs", "FILE",
               "Arguments: a .safetensors file with one tensor for each, named "
               "by its fp8.name, else arg0, arg1, ...">;
def ignore_extra_inputs : F<"ignore-extra-inputs",
                            "Take no notice of tensors in --inputs that are no "
                            "argument's">;
def outputs : J<"outputs", "FILE",
                "Write the results to this .safetensors file, named by their "
                "fp8.name, else result0, ...; without it they are summarized">;
def compile_to : J<"compile-to", "PHASE",
                   "Print the program after import, recipe, scaling, fusion, "
                   "buffers, kernels or host, and stop">;
def steps : J<"steps", "N",
              "Run N times: an input with one more dimension of size N in "
              "front gives one slice to each step, results gain it">;
def microbatches : J<"microbatches", "K",
                     "Every K of the N runs are a step of the scaling state, "
                     "which is updated once at its end (1)">;
def state_in : J<"state-in", "FILE",
                 "Begin with this scaling state; without it, with a new one">;
def state_out : J<"state-out", "FILE",
                  "Write the state after the last step, whole or not at all">;
def state_strict : F<"state-strict", "Fail where --state-in lacks a slot, has "
                                     "another one or another history length">;
def freeze : F<"freeze", "Use the scales of the state and record nothing">;
def time : F<"time", "Print the time to compile and to run, over several runs "
                     "or the steps">;
def profile : F<"profile", "Time each kernel on the GPU, over several runs or "
                           "the steps, and print a table">;
def profile_EQ : J<"profile", "FILE",
                   "The same, and write a trace for chrome://tracing or "
                   "Perfetto, - for the standard output">;
def stats : F<"stats", "Print amax, underflow, saturation and SQNR of every "
                       "quantized tensor">;

//===- FusionPasses.td - Passes on fusions -----------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_FUSIONPASSES_TD
#define FP8_KERNELS_FUSIONPASSES_TD

include "mlir/Pass/PassBase.td"

def ShareTransposesPass : Pass<"fp8-share-transposes", "::mlir::ModuleOp"> {
  let summary = "choose when a transposed copy of codes is made";
  let description = [{
    Codes that are needed in two orders are written in both by the fusion that
    quantizes, from one read of the tensor. The copy that is needed later, as a
    weight's is that only the backward reads, is in memory until then. There are
    two other ways:

    - the codes are transposed before that use: they stay in memory until then,
      and are read once more. The factors allow it where the copy is the transpose
      of other results of the fusion, as those of one scale or of square blocks
      are, and not where blocks run along K in both;
    - the tensor is quantized again before that use, which reads it once more. It
      has to be in memory then anyway, as arguments are.

    Both bring the same bits. They are taken where the peak of what the function
    allocates falls by enough: a megabyte (10^6 bytes) less is worth
    `memory-price` microseconds, and each way takes the bytes that it reads at the
    target's `memory_peak`, and its `launch_time`. The price is 0 if
    nothing is said, and all copies are made at once. Of two ways that are worth
    it the one that saves more for its time is taken. With `keep-peak` they are
    taken at any price, the cheapest first, until the peak is not above what it
    would be in high precision, with the tensors that are quantized in place of
    their codes, if the target's `memory_peak` is known. Each has a remark that says what it saves and takes.

    ```mlir
    %c, %t = fp8.fusion(%w, %s, %si) { ... } : ... // codes in both orders
    ...                                            // the forward
    %0 = fp8.assemble %t, %si : ...
    // becomes
    %c = fp8.fusion(%w, %s, %si) { ... } : ...
    ...
    %t = fp8.fusion(%w, %s, %si) { ... } : ...
    %0 = fp8.assemble %t, %si : ...
    ```
  }];
  let options = [
    Option<"memoryPrice", "memory-price", "double", "0",
           "Microseconds that a program may take longer for each megabyte that "
           "its peak of memory falls">,
    Option<"keepsPeak", "keep-peak", "bool", "false",
           "Take whatever time it takes until the peak of memory is not above "
           "that in high precision">];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::fp8::FP8GPUDialect"];
  let statistics = [
    Statistic<"numTransposed", "num-transposed",
              "Copies that are transposed when they are needed">,
    Statistic<"numQuantizedAgain", "num-quantized-again",
              "Copies that are quantized again when they are needed">];
}

def SplitFusionsPass : Pass<"fp8-split-fusions", "::mlir::ModuleOp"> {
  let summary = "split fusions that one kernel does not hold";
  let description = [{
    Takes a `fp8.fusion` that no kernel of the module's target computes apart,
    with a remark that says why, until each part has a kernel or is what none
    computes:

    - what is measured of whole columns, or of rows that are too long, is
      measured of 128 rows or columns first, or of 32 beside whole rows, and then of these;
    - what does not depend on whole rows goes its own way;
    - whole rows are measured in one pass, and read again in another by what
      waits for that;
    - results that no kernel computes leave the others.

    What parts have in common is computed in each: it is arithmetic, and the
    tensors that it reads are.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::fp8::FP8Dialect",
    "::mlir::fp8::FP8GPUDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numSplit", "num-split", "Fusions that became several">
  ];
}

def FuseScalesPass : Pass<"fp8-fuse-scales", "::mlir::ModuleOp"> {
  let summary = "compute scales where their amaxes are measured";
  let description = [{
    A `fp8.compute_scale` of what a `fp8.fusion` measures becomes part of that
    fusion, if a kernel of the module's target then computes it. These are scales
    of whole columns: they wait for all rows, and no fusion is formed with them,
    but the last one that measures, of parts perhaps, holds whole columns of
    these. What only the scale was made of is no result any more.

    ```mlir
    %amax = fp8.fusion(%parts) { fp8.amax ... block = [*, 1] ... }
    %scale, %scale_inv = fp8.compute_scale %amax ...
    // becomes
    %scale, %scale_inv = fp8.fusion(%parts) { fp8.amax ... fp8.compute_scale ... }
    ```
  }];
  let dependentDialects = [
    "::mlir::fp8::FP8Dialect", "::mlir::fp8::FP8GPUDialect"];
  let statistics = [
    Statistic<"numFused", "num-fused", "Scales computed where they are measured">
  ];
}

#endif // FP8_KERNELS_FUSIONPASSES_TD

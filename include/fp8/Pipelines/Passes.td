//===- Passes.td - Passes that run the pipeline ------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PIPELINES_PASSES_TD
#define FP8_PIPELINES_PASSES_TD

include "mlir/Pass/PassBase.td"

def EvaluateConstantsPass
    : Pass<"fp8-evaluate-constants", "::mlir::ModuleOp"> {
  let summary = "quantize constant weights while compiling";
  let description = [{
    Codes and factors that follow from constants alone become constants, and the
    weights that they came from leave the program. What computes them is taken
    out, compiled through the rest of the pipeline for this machine, and run:
    the bytes are those that the program would have computed, because it is the
    program that computes them.

    Evaluated are the operations of the dialect but `fp8.matmul`, and between
    them data movement and elementwise arithmetic. Computed in every call as
    before are

    - the high-precision values on the way (a dequantized weight, a widened
      one), which are larger than the codes, and transposed copies of codes;
    - contractions and other reductions of `linalg`, whose sums may differ from
      one machine to another;
    - codes that would take more than twice the bytes of the constants that they
      follow from, such as those of a broadcast scalar.

    More than 4096 bytes become a `dense_resource`. Codes and factors of a splat
    are splats, computed of a few elements. What is made of splats of more than
    4 GiB in another way is left to the program.

    ```mlir
    %w = arith.constant dense_resource<w> : tensor<128x64xbf16>
    %amax = fp8.amax %w block = [*, *] : tensor<128x64xbf16>
    %scale, %scale_inv = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
    %q = fp8.quantize %w scale(%scale, %scale_inv : tensor<1x1xf32>, tensor<1x1xf32>)
        : tensor<128x64xbf16> -> !fp8.scaled<128x64xf8E4M3FN, block = [*, *], scale = f32>
    // becomes
    %codes = arith.constant dense_resource<fp8_constant> : tensor<128x64xf8E4M3FN>
    %scale_inv = arith.constant dense<2.500000e-03> : tensor<1x1xf32>
    %q = fp8.assemble %codes, %scale_inv : tensor<128x64xf8E4M3FN>, tensor<1x1xf32>
        -> !fp8.scaled<128x64xf8E4M3FN, block = [*, *], scale = f32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::bufferization::BufferizationDialect",
    "::mlir::fp8::FP8Dialect", "::mlir::func::FuncDialect",
    "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numEvaluated", "num-evaluated", "Values evaluated">,
    Statistic<"numFunctions", "num-functions", "Functions compiled for it">,
    Statistic<"bytesRemoved", "bytes-removed",
              "Bytes of constants that left the program">,
    Statistic<"bytesAdded", "bytes-added",
              "Bytes of codes and factors in their place">];
}

def SerializeKernelsPass : Pass<"fp8-serialize-kernels", "::mlir::ModuleOp"> {
  let summary = "compile kernels to machine code";
  let description = [{
    Takes every `gpu.module` through the LLVM dialect to PTX for the module's
    `fp8_gpu.target` and, with ptxas, to a cubin, and puts a `gpu.binary` in its
    place, whose table of kernels keeps their `fp8_gpu.launch`. Modules are
    compiled in the context's threads, several at a time, and a cubin that the
    cache has is taken from there. Kernels with exact
    math compute as the CPU does: no fused multiply-add, divisions and square
    roots rounded correctly, subnormal numbers kept.
  }];
  let options = [
    Option<"format", "format", "std::string", /*default=*/"\"auto\"",
           "cubin, ptx, or auto: a cubin if there is a ptxas">,
    Option<"cache", "cache", "std::string", /*default=*/"",
           "directory of assembled kernels, or off; the user's own without it">];
  let statistics = [
    Statistic<"numAssembled", "num-assembled", "Modules that ptxas assembled">,
    Statistic<"numCached", "num-cached", "Modules whose cubin was in the cache">];
  let dependentDialects = ["::mlir::fp8::FP8GPUDialect",
                           "::mlir::gpu::GPUDialect",
                           "::mlir::LLVM::LLVMDialect",
                           "::mlir::NVVM::NVVMDialect"];
}

def ReportFusionPass : Pass<"fp8-report-fusion", "::mlir::ModuleOp"> {
  let summary = "write what each kernel moves, and why it is not fused further";
  let description = [{
    Writes the report that docs/FusionReport.md describes to `file`, as text, or
    as JSON where its name ends in `.json`: each launch, copy and loop of the
    program with its bytes and the least time that it can take; what stands
    between kernels that share a tensor; what the program cannot do without.

    Goes after `fp8-select-kernels`, whose choices it reports. What is launched
    is taken from a copy of the program, which the rest of the phase lowers to
    buffers. Why two kernels are two is asked of the passes and kernels that
    would make them one: the patterns of `fp8-fuse-casts` and
    `fp8-fuse-epilogues` say why they do not match, and the generator of fusions
    why it has no kernel for both.

    Changes nothing.
  }];
  let options = [
    Option<"file", "file", "std::string", "\"-\"",
           "What to write, - for the standard output">
  ];
  let statistics = [
    Statistic<"numLaunches", "num-launches", "Launches, copies and loops">,
    Statistic<"numTried", "num-tried", "Fusions tried in vain">
  ];
}

def SelectAccumulationPass : Pass<"fp8-select-accumulation", "::mlir::ModuleOp"> {
  let summary = "decide how matmuls accumulate, as a GPU's kernels would";
  let description = [{
    For a CPU that computes what a GPU does: every matmul for which the chip has
    a kernel gets the attribute `tensor_core_accumulation`, which says how that kernel
    adds up its products, as the chip's architecture has it: types of A and B,
    the K of a block, into how many parts K is cut, whether blocks are added in
    f32, and whose tensor cores: 0 for Hopper's, 1 for Blackwell's. Where a block
    has several sums that are, each with its factors, the K of one comes last.
    `convert-fp8-to-linalg` and `fp8-convert-gemms-to-runtime` obey it.

    Kernels are selected on a copy of the program, as the chip's pipeline does
    it. If M shows at run time it is the kernel for many rows that counts. What
    else a config of a matmul says is of no use to a CPU, and is removed.

    ```mlir
    %y = fp8.matmul %a, %b {tensor_core_accumulation = array<i64: 0, 0, 128, 1, 1, 0>}
        : !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>,
          !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xbf16>
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"sm_90a\"",
           "Whose kernels">,
    Option<"table", "table", "std::string", "",
           "Tuning table of kernel configs">,
    Option<"machine", "machine", "std::string", "",
           "Whose numbers kernels are chosen by, as of fp8-set-target">
  ];
  let statistics = [
    Statistic<"numSelected", "num-selected", "Matmuls with a kernel">
  ];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
}

#endif // FP8_PIPELINES_PASSES_TD

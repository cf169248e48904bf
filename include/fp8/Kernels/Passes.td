//===- Passes.td - Selection and generation of kernels -----*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_PASSES_TD
#define FP8_KERNELS_PASSES_TD

include "mlir/Pass/PassBase.td"
include "fp8/Kernels/FusionPasses.td"
include "fp8/Kernels/MatmulPasses.td"

def SetTargetPass : Pass<"fp8-set-target", "::mlir::ModuleOp"> {
  let summary = "decide which GPU kernels are for";
  let description = [{
    Gives the module `fp8_gpu.target`, the attribute that all decisions about
    kernels follow from, unless it has one of that chip already: numbers of a
    particular GPU stay. Those of the chip's usual GPU are given if `machine` is
    empty; else it is the name of one of lib/Kernels/Machines, `device:` and the
    driver's name of a GPU, which is looked up among these, or a file such as
    they are.

    ```mlir
    module attributes {fp8_gpu.target = #fp8_gpu.target<
        chip = "sm_90a", compute_capability = 90, features = "+ptx90",
        multiprocessors = 132, shared_bytes = 232448, registers = 65536,
        mma_rate = 4096, l2_rate = 40, memory_rate = 30>} {}
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "A chip that kernels are generated for, e.g. sm_90a">,
    Option<"machine", "machine", "std::string", "\"\"",
           "Whose numbers kernels are chosen by: e.g. h100, device:NAME or a "
           "file">
  ];
  let dependentDialects = ["::mlir::fp8::FP8GPUDialect"];
}

def SelectKernelsPass : Pass<"fp8-select-kernels", "::mlir::ModuleOp"> {
  let summary = "decide how each kernel is built";
  let description = [{
    Writes `fp8_gpu.config` on every operation that a kernel can compute
    (`KernelOpInterface`) and that has none: whatever the generator of the
    module's target decides from the extents that are known, and from what is
    computed. Later passes obey. A config that is there already is only checked,
    so that tests and tables of measurements can pin one.

    An operation that no kernel computes stays as it is, with a remark that says
    why; so do `fp8.hadamard` and an `fp8.quantize` with a seed that are in no
    fusion.

    `every-candidate` repeats each operation with every config of the generator's
    table that fits it, instead of choosing: for tests of the table. With
    `sample=n` it is each n-th config, of each operation beginning with another.

    `table` is a file that `fp8-tune` wrote. What it has gets the config that was
    fastest there; what it has not, or whose config no longer fits, is chosen for
    as without it, the latter with a remark.
  }];
  let options = [
    Option<"table", "table", "std::string", "\"\"",
           "File of measured choices, written by fp8-tune">,
    Option<"everyCandidate", "every-candidate", "bool", "false",
           "Repeat each operation with every config that fits">,
    Option<"sample", "sample", "unsigned", "1",
           "Of every candidate take each n-th">
  ];
  let dependentDialects = ["::mlir::fp8::FP8GPUDialect"];
  let statistics = [
    Statistic<"numSelected", "num-selected", "Number of kernels chosen">,
    Statistic<"numTuned", "num-tuned", "Number of kernels from the table">
  ];
}

def BuildKernelsPass : Pass<"fp8-build-kernels", "::mlir::ModuleOp"> {
  let summary = "generate the kernels that were chosen";
  let description = [{
    Puts kernels for the operations that have a `fp8_gpu.config` into the
    `gpu.module` `@fp8_kernels` and writes their symbols on the operations, as
    `fp8_gpu.kernel`. Equal kernels are one. What a kernel takes and how it is
    launched is its `fp8_gpu.launch`.

    A kernel is built of `scf`, `arith`, `math`, `llvm` and `nvvm` operations:
    `fp8-lower-kernels` takes it to the LLVM dialect.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::fp8::FP8GPUDialect",
    "::mlir::gpu::GPUDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::math::MathDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::scf::SCFDialect"];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Number of kernels generated">
  ];
}

def RaiseAttentionPass : Pass<"fp8-raise-attention", "::mlir::ModuleOp"> {
  let summary = "two products and the softmax between them become fp8.attention";
  let description = [{
    `softmax(scale * Q K^T + mask) V`, as programs of other compilers spell it,
    becomes one `fp8.attention`. What moves data is looked through, in any
    order: transposes, reshapes, broadcasts of heads of K and V, and generics
    that do the same. So are conversions between types of floats, and constant
    factors of Q, K and scores. Keys that comparisons of their numbers and the
    query's hide, added or chosen, are those outside of a window. A mask that is
    a tensor stays one.

    Numbers are those of `fp8.attention`: scores are not rounded, and shares to
    the type of V before they are divided by their sum. Nothing else is rounded
    that the program does not round, so that one that keeps shares in f32 has to
    round its result to 16 bits. Keys hidden by a finite score of -30000 or less,
    such as the lowest bf16, have no share at all, and a query that sees no key
    has zeros, in place of the NaN of a softmax of -inf.

    What is nearly attention stays, with a remark that says why: the scores or
    the softmax are needed elsewhere, as by a backward, products are quantized
    by a recipe, a finite score may hide all keys of a query, scores go through
    something else, or the chip has no kernel for it.

    ```mlir
    %s = linalg.batch_matmul ins(%q, %kt : ...) ...
    ... // times 0.125, a softmax of rows, and rounded
    %o = linalg.batch_matmul ins(%p, %v : tensor<8x64x64xbf16>, tensor<8x64x64xbf16>) ...
    // becomes
    %o = fp8.attention %q4, %k4, %v4 scale = 1.250000e-01 layout = bhsd : ...
    ```
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "What kernels are for; without one all attention is raised">,
    Option<"onlyWithRecipe", "only-with-recipe", "bool", "false",
           "Raise what has `fp8.attention_recipe` on it or around it, no other">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numRaised", "num-raised", "Attentions that were products">
  ];
}

def DecomposeAttentionPass : Pass<"fp8-decompose-attention", "::mlir::ModuleOp"> {
  let summary = "attention without a kernel becomes products and a softmax";
  let description = [{
    Every `fp8.attention` for which the chip has no kernel, and without a chip
    every one, becomes a batch of `fp8.matmul` for each head, a softmax of rows
    in linalg, and a second batch. Scores are in memory, so that it takes more
    of it the longer the sequences are. Before matmuls get their epilogues and
    fusions are formed. `fp8.attention_backward` becomes its definition, in
    linalg.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "What kernels are for; a CPU has none">
  ];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numDecomposed", "num-decomposed", "Attentions without a kernel">
  ];
}

def LaunchKernelsPass : Pass<"fp8-launch-kernels", "::mlir::ModuleOp"> {
  let summary = "replace operations that have a kernel by launches of it";
  let description = [{
    Every operation with a `fp8_gpu.kernel` becomes a `fp8_gpu.launch`, which
    has its results in destinations and so bufferizes.

    ```mlir
    %y = fp8.matmul %a, %b {fp8_gpu.kernel = @fp8_kernels::@matmul}
        : !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>,
          !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xbf16>
    // becomes
    %payload, %scale_inv = fp8.disassemble %a
    %payload_0, %scale_inv_0 = fp8.disassemble %b
    %d = tensor.empty() : tensor<32x64xbf16>
    %y = fp8_gpu.launch @fp8_kernels::@matmul #launch
        ins(%payload, %scale_inv, %payload_0, %scale_inv_0 : ...)
        outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
    ```

    One with other kernels for few rows (`fp8_gpu.few_rows`) becomes an `scf.if` of
    launches, all with the same destinations, one for each kernel. Where a kernel is
    in the list more than once, rows first become its number, by a chain of
    `arith.select`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8GPUDialect",
                           "::mlir::scf::SCFDialect",
                           "::mlir::tensor::TensorDialect"];
}

def RecordInPlacePass : Pass<"fp8-record-in-place"> {
  let summary = "let kernels raise amaxes in the scaling state";
  let description = [{
    Where an amax that a kernel raises from zero (`access = raise`) is only
    recorded, the kernel raises that of the slot: a maximum may begin with any
    of its terms.

    ```mlir
    %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<1x1xf32>) -> tensor<1x1xf32>
    %codes, %amax = fp8_gpu.launch @kernels::@cast #launch ins(%x : tensor<8x8xbf16>)
        outs(%d, %zeros : tensor<8x8xf8E4M3FN>, tensor<1x1xf32>) -> ...
    fp8.record_amax %amax, %state[%slot] : tensor<1x1xf32>
    // becomes
    %so_far = fp8.read_amax %state[%slot] : tensor<1x1xf32>
    %codes, %amax = fp8_gpu.launch @kernels::@cast #launch ins(%x : tensor<8x8xbf16>)
        outs(%d, %so_far : tensor<8x8xf8E4M3FN>, tensor<1x1xf32>) -> ...
    fp8.record_amax %amax, %state[%slot] in_place : tensor<1x1xf32>
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::fp8::FP8GPUDialect"];
  let statistics = [
    Statistic<"numInPlace", "num-in-place", "Amaxes raised in the state">
  ];
}

#endif // FP8_KERNELS_PASSES_TD

//===- MatmulPasses.td - Passes on matmuls -----------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_MATMULPASSES_TD
#define FP8_KERNELS_MATMULPASSES_TD

include "mlir/Pass/PassBase.td"

def ReportCopiesPass : Pass<"fp8-report-copies", "::mlir::ModuleOp"> {
  let summary = "say which operands of matmuls are copied for their kernels";
  let description = [{
    Makes a remark for each operand of a `fp8.matmul` with a kernel
    (`fp8_gpu.config`) that is transposed on the way there: as codes, or before
    it is quantized. The remark names the matmul, the operand, the type of the
    copy and its bytes if they are known, the other matmuls that read the same
    copy, what the kernel expects, and what would make the copy unnecessary. A
    copy that several matmuls read has a remark for each.

    Changes nothing. What is transposed although a kernel would read it in
    either order has no remark.
  }];
  let statistics = [
    Statistic<"numCopies", "num-copies", "Number of operands that are copies">
  ];
}

def GroupMatmulsPass : Pass<"fp8-group-matmuls", "::mlir::ModuleOp"> {
  let summary = "fuse matmuls that share an operand horizontally, into one "
                "launch";
  let description = [{
    Matmuls that have a config (`fp8_gpu.config`), the same A or the same B, and
    otherwise equal types, K and epilogues, become an `fp8.sibling_matmuls` with a
    config of its own, where the model of their time says that one launch takes
    no longer than several: the projections of an attention, the halves of a
    gated MLP, the gradients of their weights. Where extents are not known, they
    do if the group would have the config that each has by itself. Where nothing
    but the epilogue of one reads another's result, as the gate of a gated MLP is
    read, both are computed in each tile and that result is never stored, if the
    model finds it faster. A matmul whose
    config is not the one that would be selected, from a table or given, stays
    as it is; so do those of which one needs another's result. A group that came
    with the program is taken apart if it has no config.
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let statistics = [
    Statistic<"numGroups", "num-groups", "Launches of several matmuls">,
    Statistic<"numGrouped", "num-grouped", "Matmuls in them">,
    Statistic<"numPairs", "num-pairs", "Pairs that meet in a tile">
  ];
}

def FoldTransposesPass : Pass<"fp8-fold-transposes", "::mlir::ModuleOp"> {
  let summary = "fold transposes into matmuls whose tensor cores read either "
                "order";
  let description = [{
    A scaled `fp8.matmul`, or `fp8.grouped_matmul`, of an operand that
    `fp8.transpose` gives the other order reads what is transposed, with
    `transpose_a` or `transpose_b`, if the target has a kernel for it: those for
    Blackwell read FP8 in either order. No copy of the codes is made then.
    Tensor cores of Hopper read 8 bits with K innermost alone, and its kernels
    transpose an operand in registers. `codes` says when they do: never
    (`copy`), wherever there is such a kernel (`kernel`), or where it is
    expected to take less time than with the copy (`cost`), which a remark says.

    ```mlir
    %t = fp8.transpose %w permutation = [1, 0] : ...
    %0 = fp8.matmul %a, %t : ...
    // becomes
    %0 = fp8.matmul %a, %w transpose_b : ...
    ```

    Runs where transposes can still be told from the passes that would make
    the copies, before there is a `fp8_gpu.target`: `chip` says which one it
    will be.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "A chip that kernels are generated for, e.g. sm_100a">,
    Option<"codes", "codes", "std::string", "\"copy\"",
           "How tensor cores get codes that they do not transpose: copy, "
           "kernel or cost">
  ];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::fp8::FP8GPUDialect"];
  let statistics = [
    Statistic<"numFolded", "num-folded", "Transposes that matmuls read through">
  ];
}

def FoldLiftsPass : Pass<"fp8-fold-lifts", "::mlir::ModuleOp"> {
  let summary = "let matmuls read packed weights";
  let description = [{
    Marks an `fp8.lift` as `folded` if nothing but matmuls, grouped or not, reads
    it, each as the codes of its B, and the target has a kernel for each that
    reads packed weights in their place. Those for Hopper do. Weights of others
    are lifted in memory, before each product, and a remark says so.

    So it does with an `fp8.dequantize` to bf16 or f16, by which `fp8-decode-operands`
    has operands of MXFP8, MXFP4 and NVFP4 decoded, or of E4M3 with factors of
    tensors, rows or 128x128: kernels for Hopper read codes and factors. That is done where it is expected to take less time than bf16 in
    memory, and wherever rows are not counted before the program runs. What
    the program quantizes itself is decoded with that.

    ```mlir
    %codes = fp8.lift %packed, %exponents : ...
    %b = fp8.assemble %codes, %scale_inv : ...
    %0 = fp8.matmul %a, %b : ...
    // becomes
    %codes = fp8.lift %packed, %exponents folded : ...
    ```

    Weights that are `fp8.arranged` lie as kernels read them that lift in
    registers. Any other reader of them is an error.

    `chip` says what the target will be, as for `fp8-fold-transposes`. Without
    one, as for a CPU, nothing is folded.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "A chip that kernels are generated for, e.g. sm_90a">
  ];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::fp8::FP8GPUDialect"];
  let statistics = [
    Statistic<"numFolded", "num-folded", "Lifts that matmuls read through">
  ];
}

def NarrowScalesPass : Pass<"fp8-narrow-scales", "::mlir::ModuleOp"> {
  let summary = "convert power-of-two scales to UE8M0";
  let description = [{
    A matmul, grouped or not, of operands with factors of 1x128 or 128x128 in
    f32 reads the same powers of two for each row and 32 of K in E8M0, if the
    target has a kernel for those: tensor cores of Blackwell multiply them, while sums of each 128 of K are
    taken out of them to be multiplied by the former. Factors of tiles of 32x32
    (`mxfp8`) and of 16x16 (`nvfp4`), as `weight_2d` has them, are repeated for each
    row.

    ```mlir
    %0 = fp8.matmul %a, %b : !fp8.scaled<.., block = [1, 128], scale = f32>, ...
    // becomes
    %codes, %factors = fp8.disassemble %a
    %bytes = linalg.generic ...  // each factor's exponent, four times
    %fitting = fp8.assemble %codes, %bytes
    %0 = fp8.matmul %fitting, ... : !fp8.scaled<.., block = [1, 32], scale = f8E8M0FNU>
    ```

    Factors in f32 are known to be powers of two, and not below 2^-127, where they are
    constants, or those of `fp8.compute_scale` with `pow2 = true` and Transformer
    Engine's rule. Others stay. `chip` says what the target will be, as for
    `fp8-fold-transposes`.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "A chip that kernels are generated for, e.g. sm_100a">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::fp8::FP8Dialect",
    "::mlir::fp8::FP8GPUDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numFitted", "num-fitted", "Matmuls that read other factors">
  ];
}

def DecodeOperandsPass : Pass<"fp8-decode-operands", "::mlir::ModuleOp"> {
  let summary = "multiply in bf16 what no kernel multiplies as it is";
  let description = [{
    The operands of a matmul, grouped or not, whose factors are powers of two
    (E8M0, as MXFP8 and MXFP4 have them) or E4M3 of E2M1 (NVFP4), become bf16
    before the product, if the target has a kernel for that and none for the
    operands as they are. That is the case on Hopper. What is read in
    the other order is not transposed: a remark says what is decoded.

    Where a kernel multiplies sums of some products by their factors, outside of
    the tensor core, it stays if it is expected to take less time, which a remark
    says: of MXFP8 on Hopper, with few rows. It depends on no more than extents:
    of unknown ones, and of an `fp8.invariant` matmul, operands become bf16.

    ```mlir
    %0 = fp8.matmul %a, %b : !fp8.scaled<.., block = [1, 32], scale = f8E8M0FNU>, ...
    // becomes
    %1 = fp8.dequantize %a : ... -> tensor<..xbf16>
    %2 = fp8.dequantize %b : ... -> tensor<..xbf16>
    %0 = fp8.matmul %1, %2 accumulate = fast : ...
    ```

    That is exact, but of values below 2^-126, of which a bf16 has fewer bits.
    The f32 of a whole tensor, as NVFP4 has it, multiplies the sum in the epilogue: before
    all else that it does, and that of A by that of B first.

    `chip` says what the target will be, as for `fp8-fold-transposes`. It comes after
    `fp8-narrow-scales`, by which more operands have kernels.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "A chip that kernels are generated for, e.g. sm_90a">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::fp8::FP8Dialect",
    "::mlir::fp8::FP8GPUDialect", "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numDecoded", "num-decoded", "Matmuls that became ones of bf16">
  ];
}

def BranchByRowsPass : Pass<"fp8-branch-by-rows", "::mlir::ModuleOp"> {
  let summary = "multiply few rows as codes, and many in bf16";
  let description = [{
    A matmul of bf16 whose operands `fp8-decode-operands` has decoded, or whose B
    kernels read as codes, and whose number of rows shows at run time, becomes two
    or three in the branches of `scf.if`. Up to 16, 32, 48 or 64 rows multiply
    codes, as known few rows do, if that is expected to take less time. From 1024,
    1536, 2048 or 4096 rows on a pass makes bf16 of B first, if kernels that read
    codes are expected to take as long, and if that bf16 has no more than 256 MiB. What is between the two reads codes. N, K and the number of batches
    must be known. Remarks say how many rows are few and many.

    ```mlir
    %1 = fp8.dequantize %a : ... -> tensor<?x4096xbf16>
    %2 = fp8.dequantize %b {fp8.folded} : ... -> tensor<1024x4096xbf16>
    %0 = fp8.matmul %1, %2 accumulate = fast : ...
    // becomes
    %0 = scf.if %few -> (tensor<?x1024xbf16>) {
      %3 = fp8.matmul %a, %b {fp8_gpu.rows = array<i64: 0, 32>} : !fp8.scaled<?x4096x.., block = [1, 32], scale = f8E8M0FNU>, ...
      scf.yield %3 : tensor<?x1024xbf16>
    } else {
      ...
    }
    ```

    Matmuls of the same A have one `scf.if`, where their operands allow that. It comes
    after epilogues were fused, and before passes over memory are formed: one that
    quantizes A writes codes and bf16. Matmuls that are `fp8.invariant`, or have
    an amax, are left.

    `chip` says what the target will be, as for `fp8-decode-operands`.
  }];
  let options = [
    Option<"chip", "chip", "std::string", "\"\"",
           "A chip that kernels are generated for, e.g. sm_90a">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::fp8::FP8Dialect",
    "::mlir::fp8::FP8GPUDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect"
  ];
  let statistics = [
    Statistic<"numBranched", "num-branched", "Matmuls with a branch for few rows">
  ];
}

def DispatchByRowsPass : Pass<"fp8-dispatch-by-rows", "::mlir::ModuleOp"> {
  let summary = "select a kernel for few rows and one for many at run time";
  let description = [{
    A matmul whose M shows at run time, with N, K and the batch known, has a kernel
    for up to 16 rows, one for up to 32, and so on to 1024 and beyond, where they
    differ: the list `fp8_gpu.few_rows` beside its config. `fp8-launch-kernels` makes
    an `scf.if` of it, which chooses when the program runs.

    Where kernels decode codes, that is where they begin. Configs for numbers in
    between are added, the best first, up to 16 in all, as long as one lowers the
    expected times enough. Each 8 rows up to 512, 16 up to 1024 and 32 up to 4096
    then have the config that is expected to take least, so that a config may be in
    the list more than once. A matmul that is `fp8.invariant` has those of its
    numbers alone.

    ```mlir
    fp8_gpu.few_rows = [..., #fp8_gpu.few_rows<most = 640, config = #fp8_sm90.gemm<tile_m = 160, ...>>,
                        #fp8_gpu.few_rows<most = 768, config = #fp8_sm90.gemm<tile_m = 192, ...>>, ...,
                        #fp8_gpu.few_rows<most = 1280, config = #fp8_sm90.gemm<tile_m = 160, ...>>, ...]
    ```

    A config from a table, or given, stays; so does that of a matmul whose epilogue
    measures an amax, which a launch records in place, of those in a group, and of
    one with an N, K or batch of 0.
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect"];
  let statistics = [
    Statistic<"numChosen", "num-chosen", "Matmuls with several kernels">];
}

def ChooseScaleLayoutPass : Pass<"fp8-choose-scale-layout", "::mlir::ModuleOp"> {
  let summary = "choose the scale layout that matmuls read (MN-major)";
  let description = [{
    Factors of blocks of 1 by some of K, as of 1x128, that a fusion with a kernel
    makes for nothing but matmuls with kernels (`fp8_gpu.config`) have rows
    innermost from here on: a matmul reads those of neighbouring rows together.
    The fusion yields the transpose, and a matmul reads through the
    `linalg.transpose` that is put between them, which nobody computes.

    ```mlir
    %codes, %factors = fp8.fusion(%x) { ... } : ... -> (..., tensor<64x2xf32>)
    %a = fp8.assemble %codes, %factors : ...
    // becomes
    %codes, %stored = fp8.fusion(%x) { ... } : ... -> (..., tensor<2x64xf32>)
    %factors = linalg.transpose ins(%stored : tensor<2x64xf32>) permutation = [1, 0]
    %a = fp8.assemble %codes, %factors : ...
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numOrdered", "num-ordered", "Factors stored in another order">
  ];
}

#endif // FP8_KERNELS_MATMULPASSES_TD

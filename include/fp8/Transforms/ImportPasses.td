//===- ImportPasses.td - Phase 1, import -------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_IMPORTPASSES_TD
#define FP8_TRANSFORMS_IMPORTPASSES_TD

include "mlir/Pass/PassBase.td"

def AnnotateGemmsPass : Pass<"fp8-annotate-gemms", "::mlir::ModuleOp"> {
  let summary = "give every contraction a name and a role";
  let description = [{
    Finds every matmul-like operation, whatever its spelling
    (`linalg.matmul`, `batch_matmul`, `matvec`, `contract`, a `generic` that
    multiplies and adds, convolutions and integer products with zero points too,
    `tosa.matmul`), and attaches

    - `fp8.name`: from a name in its location, else `function.weight` where an
      operand is a weight with a name, that of an argument or a global, else
      `function.op_index`; unique in the module, and what recipe files match;
    - `fp8.role`: fprop, dgrad or wgrad, from the arguments marked `fp8.grad`
      and `fp8.weight`.

    Attributes already there stay. No value changes.

    ```mlir
    %0 = linalg.matmul ins(%x, %w : ...) outs(%c : ...) -> ...
    // becomes
    %0 = linalg.matmul {fp8.name = "main.matmul_0", fp8.role = #fp8.role<fprop>} ...
    ```
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect", "::mlir::linalg::LinalgDialect"];
  let statistics = [
    Statistic<"numContractions", "num-contractions", "Contractions found">];
}

def FoldGlobalsPass : Pass<"fp8-fold-globals", "::mlir::ModuleOp"> {
  let summary = "fold loads of constant ml_program globals";
  let description = [{
    `ml_program.global_load_const`, and `global_load` of a global that is not
    mutable, becomes the `arith.constant` of its value: upstream does not
    bufferize the former, and a weight that is visibly constant is known to be
    one. A private global that nothing else uses goes. A constant global without
    a value is an error.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect"];
  let statistics = [Statistic<"numFolded", "num-folded", "Loads folded">];
}

def RaiseScalingCastsPass : Pass<"fp8-raise-scaling-casts"> {
  let summary = "raise arith.scaling_extf to scaled values, and other such "
                "casts to arith";
  let description = [{
    MX programs of other compilers multiply codes by E8M0 factors with
    `arith.scaling_extf`, in the body of the contraction that reads both. What a
    `linalg.generic` extends so, from one code and one factor that covers whole
    dimensions, becomes an `fp8.dequantize` of an assembled value in front of
    it, which later passes know as a quantized operand. So does every extension of
    codes of 4 bits, and what is truncated to them becomes an `fp8.quantize`,
    with a factor of 1: only scaled values know how such codes lie in memory.

    All others, and `arith.scaling_truncf`, become a product (or quotient) and a
    cast in f32: upstream's expansion takes E8M0's smallest value for zero.

    ```mlir
    linalg.generic ... ins(%x, %s : tensor<16x2x32xf8E4M3FN>, tensor<16x2xf8E8M0FNU>) ... {
      %1 = arith.scaling_extf %p, %ps : f8E4M3FN, f8E8M0FNU to f32
    // becomes
    %q = fp8.assemble %x, %grid : ... -> !fp8.scaled<16x2x32xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
    %0 = fp8.dequantize %q : ... -> tensor<16x2x32xf32>
    linalg.generic ... ins(%0 : tensor<16x2x32xf32>) ... {
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numRaised", "num-raised", "Extensions that became scaled values">,
    Statistic<"numExpanded", "num-expanded", "Casts expanded">];
}

def RaiseConvolutionsPass : Pass<"fp8-raise-convolutions"> {
  let summary = "raise convolutions whose windows do not overlap to matrix "
                "products";
  let description = [{
    A convolution by steps of its window's extent, as the embedding of an
    image's patches is, and one whose windows are single elements read every
    element of the image at most once: the image is cut, and what is left is a
    contraction like others. Extents of windows and of what is cut have to be
    static.

    ```mlir
    %0 = linalg.conv_2d_nchw_fchw {strides = dense<16> : ...} ins(%x, %w : tensor<1x3x224x224xf32>, tensor<768x3x16x16xf32>) ...
    // becomes
    %1 = tensor.expand_shape %x [[0], [1], [2, 3], [4, 5]] : ... into tensor<1x3x14x16x14x16xf32>
    %0 = linalg.generic ins(%1, %w : ...) ...
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numRaised", "num-raised", "Convolutions that became products">];
}

def RaiseTransposesPass : Pass<"fp8-raise-transposes"> {
  let summary = "raise copies in another order to linalg.transpose";
  let description = [{
    A `linalg.generic` that yields what it reads, and reads or writes it in the
    order of a permutation, is a `linalg.transpose`: JAX's conversion writes
    transposes so. One of other dimensions than the last two stays where an
    elementwise operation reads it, which can read in that order itself. Passes that follow look for transposes by that name, to move
    casts through them and have kernels read what is not transposed. Those that
    undo each other go, and so does a copy in the same order.

    ```mlir
    %0 = linalg.generic {indexing_maps = [affine_map<(d0, d1) -> (d1, d0)>, affine_map<(d0, d1) -> (d0, d1)>], ...}
        ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) { ... linalg.yield %in : f32 } -> tensor<8x4xf32>
    // becomes
    %0 = linalg.transpose ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) permutation = [1, 0]
    ```
  }];
  let dependentDialects = ["::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numRaised", "num-raised", "Copies that became transposes">];
}

#endif // FP8_TRANSFORMS_IMPORTPASSES_TD

//===- FusionPasses.td - Phase 4, fusion -------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_FUSIONPASSES_TD
#define FP8_TRANSFORMS_FUSIONPASSES_TD

include "mlir/Pass/PassBase.td"

def ExchangeOperandsPass : Pass<"fp8-exchange-operands"> {
  let summary = "compute a transposed product by exchanging its operands";
  let description = [{
    The transpose of a product is the product of its operands in the other
    order, transposed. Where nobody but a transpose of the last two dimensions
    reads a product, its operands are exchanged, or, if no recipe has made it
    canonical, its result's map is transposed. So it is written as it is wanted,
    and what follows moves into its epilogue. Casts and other functions of single
    elements may stand between both. JAX's gradients of weights are such.

    ```mlir
    %0 = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%a, %b : tensor<8x32xf32>, tensor<16x32xf32>) outs(%zero : tensor<8x16xf32>) -> tensor<8x16xf32>
    %1 = linalg.transpose ins(%0 : tensor<8x16xf32>) outs(%e : tensor<16x8xf32>) permutation = [1, 0]
    // becomes
    %1 = linalg.contract indexing_maps = [#mk, #nk, #mn] ins(%b, %a : tensor<16x32xf32>, tensor<8x32xf32>) outs(%zeros : tensor<16x8xf32>) -> tensor<16x8xf32>
    ```

    Each element is the sum of the same products in the same order.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numExchanged", "num-exchanged", "Products with exchanged operands">];
}

def FormMatmulPass : Pass<"fp8-form-matmul"> {
  let summary = "form an fp8.matmul of a contraction of two dequantizes";
  let description = [{
    A `linalg.contract` on `[batch x] M x K` and `[batch x] N x K` whose operands
    are both dequantized becomes `fp8.matmul`, if their formats and blocks can be
    multiplied. An initial value other than zero
    becomes an elementwise addition, which `fp8-fuse-epilogues` moves into the
    matmul.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numMatmuls", "num-matmuls", "Matmuls formed">];
}

def FormPlainMatmulPass : Pass<"fp8-form-plain-matmul"> {
  let summary = "form an fp8.matmul of a contraction in high precision";
  let description = [{
    For GPUs: a contraction of two tensors of bf16, or two of f16, that a recipe
    left alone becomes `fp8.matmul` with plain operands, so that a kernel for
    tensor cores computes it and what follows moves into its epilogue. Tensors
    that were widened to f32 before count as what they were: the products are
    the same. An operand that lies in memory with K outermost, also one that the
    program transposes, stays so (`transpose_a`, `transpose_b`); a result that
    lies transposed is computed as the product of the operands in each other's
    place. Rows that are known not to be whole 16 bytes, which no kernel reads,
    are copied: K is innermost in the copy, and filled up with zeros.

    Contractions of f32 stay as they are, unless `tf32` allows the tensor core
    to drop 13 of the 23 bits of their operands' mantissas. It reads them with K
    innermost only, so that others are transposed.
  }];
  let options = [
    Option<"tf32", "tf32", "bool", "false",
           "Multiply f32 as TF32, with mantissas of 10 bits">];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numMatmuls", "num-matmuls", "Matmuls formed">];
}

def FoldPowersOfTwoPass : Pass<"fp8-fold-powers-of-two"> {
  let summary = "fold products with powers of two into constant scales";
  let description = [{
    - `quantize(x * 2^k)` with the constant `scale` becomes `quantize(x)` with
      `scale * 2^k`: the codes are the same, and so are the factors that they
      have;
    - `dequantize(q) * 2^k` with constant factors of q becomes `dequantize` of q's
      codes with the factors times 2^k, so that a product takes codes.

    So the 1/8 of attention with heads of 64 is part of a calibrated scale
    (`static`). A product with a power of two is exact but where it overflows or is
    subnormal. With S the scale, s the factor, and of the tensor's type the
    smallest normal number n and the largest finite m, of the format the smallest
    code c and the largest M, it is folded where

    - k > 0 and `m * S >= M`: what overflows is M with either scale;
    - k < 0 and `n * S <= c / 2`: what is subnormal is a code of zero with either;
    - `c * s >= n` and `M * s <= m`, and the same of `s * 2^k`: nothing that codes
      stand for is subnormal or overflows.

    Of a scale that follows from an amax, or comes from a state at run time, that
    is not known: it is as large or small as the tensor.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect"];
  let statistics = [
    Statistic<"numFolded", "num-folded", "Products that became part of a scale">];
}

def FuseCastsPass : Pass<"fp8-fuse-casts"> {
  let summary = "fuse casts of a matmul's result into its epilogue";
  let description = [{
    A quantize with a given scale that is the only use of a matmul's result is
    computed by its epilogue: the result are the codes, and is never in memory in
    high precision. The amax of a result is the matmul's second one, also of one
    that is itself in high precision.

    ```mlir
    %0 = fp8.matmul %a, %b : ... -> tensor<32x64xbf16>
    %1 = fp8.quantize %0 scale(%s, %si : ...) : ...
    %2 = fp8.amax %0 block = [*, *] : tensor<32x64xbf16>
    // becomes
    %codes, %2 = fp8.matmul %a, %b epilogue(%s : tensor<1x1xf32>) {
    ^bb0(%acc: f32, %scale: f32):
      ...
      fp8.yield %code, %wide : f8E4M3FN, f32
    } : ... -> tensor<32x64xf8E4M3FN>, tensor<1x1xf32>
    %1 = fp8.assemble %codes, %si : ...
    ```

    Roundings stay: what is quantized and measured is the result as it would have
    been stored. A quantize stays where a transposed copy of its codes is needed,
    which one pass over memory makes of the same read, and where its blocks are
    not the whole tensor.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect"];
  let statistics = [
    Statistic<"numAmaxes", "num-amaxes", "Amaxes moved into an epilogue">,
    Statistic<"numQuantizes", "num-quantizes",
              "Quantizes moved into an epilogue">];
}

def FuseElementwisePass : Pass<"fp8-fuse-elementwise"> {
  let summary = "fuse chains of elementwise operations into one linalg.generic";
  let description = [{
    Named elementwise and broadcast operations become `linalg.generic`, and an
    elementwise operation with one elementwise user is computed inside it.
    Unlike upstream's `linalg-fuse-elementwise-ops` it leaves contractions and
    other reductions alone: their operands are computed once, not once for
    every use in the reduction. What rounds a matmul's result to 16 bits stays
    apart too: in that matmul's epilogue it is free, and in a user that goes to
    the epilogue of another matmul the result would be stored with 32 bits.
    Who reads a tensor that is only widened reads the narrow one, and widens it
    for himself, and who reads one whose elements are few numbers repeated, as a
    row's factor for all of its columns, repeats these; unit dimensions that a
    reshape adds or removes are read through.

    Powers by a constant integer (`math.fpowi`) become products, and so
    arithmetic that epilogues and fusions have.
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
}

def FuseEpiloguesPass : Pass<"fp8-fuse-epilogues"> {
  let summary = "fuse elementwise users of a matmul into its epilogue";
  let description = [{
    An elementwise `linalg.generic` that is the only user of a matmul's result
    is computed on the accumulator instead, if it is in the same block and its
    other operands are scalars or broadcast to the result.

    ```mlir
    %0 = fp8.matmul %a, %b : ... -> tensor<32x64xf32>
    %1 = linalg.generic ... ins(%0, %bias : tensor<32x64xf32>, tensor<64xbf16>) { add, truncf }
    // becomes
    %1 = fp8.matmul %a, %b epilogue(%bias : tensor<64xbf16>) {
    ^bb0(%acc: f32, %b0: bf16):
      ...
      fp8.yield %2 : bf16
    } : ... -> tensor<32x64xbf16>
    ```

    What such an operation reads, and others read as well, is computed again in
    the epilogue if that reads fewer bytes: the derivative of an activation has
    steps in common with its function, each of 32 bits an element, and both
    begin at the same numbers of 16 bits.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numFused", "num-fused",
              "Elementwise operations moved into an epilogue">,
    Statistic<"numRecomputed", "num-recomputed",
              "Operations of epilogues that compute operands again">];
}

def InstrumentQuantizePass : Pass<"fp8-instrument-quantize", "::mlir::ModuleOp"> {
  let summary = "report amax, underflow, saturation and noise of quantized tensors";
  let description = [{
    After every `fp8.quantize` the program measures what it did (`fp8.measure`)
    and hands the numbers to `fp8rt_stats_record` of the runtime, with the
    number of the slot. The names of the slots, after the matmul that the tensor
    feeds, become the module attribute `fp8.stats_slots`.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::func::FuncDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // FP8_TRANSFORMS_FUSIONPASSES_TD

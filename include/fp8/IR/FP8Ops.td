//===- FP8Ops.td - Operations of the fp8 dialect -----------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8OPS_TD
#define FP8_IR_FP8OPS_TD

include "fp8/IR/FP8OpBase.td"
include "fp8/IR/FP8StateOps.td"
include "fp8/IR/FP8AttentionOp.td"
include "fp8/IR/FP8GroupedMatmulOp.td"
include "fp8/IR/FP8SiblingMatmulsOp.td"
include "fp8/IR/FP8FusionOp.td"

//===----------------------------------------------------------------------===//
// Scales
//===----------------------------------------------------------------------===//

def FP8_AmaxOp : FP8_Op<"amax",
    [InferTypeOpAdaptor]> {
  let summary = "largest magnitude of every block";
  let description = [{
    ```
    amax[b] = max over the elements x of block b of |x|      (0 if there are none)
    ```

    NaN elements are ignored unless `propagate_nan` is given. The maximum is
    exact and does not depend on the order of the elements.

    Constraints:
    - (C1) `block` has one entry for each dimension of `source`, each at least
      1 or `*`.

    Example:

    ```mlir
    %0 = fp8.amax %x block = [1, 128] : tensor<32x768xbf16>   // tensor<32x6xf32>
    ```
  }];
  let arguments = (ins FP8_Tensor:$source, DenseI64ArrayAttr:$block,
                       UnitAttr:$propagate_nan);
  let results = (outs FP8_F32Tensor:$amax);
  let assemblyFormat = [{
    $source `block` `=` custom<Block>($block) (`propagate_nan` $propagate_nan^)?
    attr-dict `:` type($source)
  }];
  let hasVerifier = 1;
}

def FP8_ComputeScaleOp : FP8_Op<"compute_scale", [
    InferTypeOpAdaptor]> {
  let summary = "scale and scale_inv of every block from its amax";
  let description = [{
    With M the largest finite value of `format` (448, 57344 or 6):

    - `scale_type = f32`: `scale` is what the `rule` gives, which is
      `M / amax`, one IEEE division, with the corners that `#fp8.scale_rule`
      names; `scale_inv = 1 / scale`, one IEEE division.
    - `scale_type = f8E8M0FNU`: `scale_inv` is the E8M0 byte that the `rule`
      gives, `scale = 1 / scale_inv`, exact.
    - `scale_type = f8E4M3FN`: needs `tensor_amax`. With
      `t = (448 * M) / tensor_amax`, FLT_MAX if that overflows,
      `scale_inv = E4M3(amax * (t * (1 / M)))`, saturating,
      `scale = 1 / (scale_inv * (1 / t))`, and
      `tensor_scale_inv = tensor_amax / (448 * M)`, at least 1 / FLT_MAX; each
      step rounds to f32. Where the tensor's amax is not finite and positive,
      `t` and tensor_scale_inv are 1; a block whose factor rounds to zero has
      scale 0, and a scale that overflows is FLT_MAX.

    Constraints:
    - (C1) `format` is f8E4M3FN, f8E5M2 or f4E2M1FN;
    - (C2) `scale_type` is f32, f8E8M0FNU or f8E4M3FN;
    - (C3) `tensor_amax` is given exactly when `scale_type` is f8E4M3FN, and
      has one element;
    - (C4) `rule` has scales of `scale_type`, unless that is f8E4M3FN.

    Example:

    ```mlir
    %scale, %scale_inv = fp8.compute_scale %amax
        format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
    ```
  }];
  let arguments = (ins FP8_F32Tensor:$amax, Optional<FP8_F32Tensor>:$tensor_amax,
                       TypeAttr:$format, TypeAttr:$scale_type,
                       DefaultValuedAttr<FP8_AnyScaleRule,
                         "::mlir::fp8::ScaleRule{}">:$rule);
  let results = (outs FP8_F32Tensor:$scale, FP8_FactorTensor:$scale_inv,
                      Optional<FP8_F32Tensor>:$tensor_scale_inv);
  let assemblyFormat = [{
    $amax (`tensor_amax` `(` $tensor_amax^ `:` type($tensor_amax) `)`)?
    `format` `=` $format `scale_type` `=` $scale_type (`rule` `(` $rule^ `)`)?
    attr-dict `:` type($amax)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Casts
//===----------------------------------------------------------------------===//

def FP8_HadamardOp : FP8_Op<"hadamard", [
    AllTypesMatch<["source", "result"]>]> {
  let summary = "rotate every 16 neighbours of the last dimension";
  let description = [{
    A random Hadamard transform, which spreads what is large in a block over the
    block. With s[j] = -1 where bit j of `signs` is set, else 1, every x[0..15]
    becomes

    ```
    y[i] = T(1/4 * sum over j of (-1)^popcount(i & j) * s[j] * f32(x[j]))
    ```

    T being the element type, to which one rounding is made. The matrix is
    orthogonal: a product over the dimension is what it was, up to rounding, if
    both operands are rotated with the same signs. The sum is in f32, in the order
    of the fast transform: with v[0] = s * x, for b = 0, 1, 2, 3

    ```
    v[b + 1][i, k] = v[b][i, 2k] + (-1)^(bit b of i) * v[b][i, 2k + 1]
    ```

    where k goes over 8, 4, 2 and 1 numbers; y[i] is T(v[4][i, 0] * 1/4). So an
    Inf or a NaN reaches all 16, and f16 has no room for a sum of 4 times its
    largest.

    Constraints:
    - (C1) `source` has a last dimension, and it is a multiple of 16, or dynamic;
      of a block that is not whole at run time the rest counts as zeros;
    - (C2) `signs` is 0 to 65535.

    Example:

    ```mlir
    %0 = fp8.hadamard %x signs = 55272 : tensor<32x768xbf16>
    ```
  }];
  let arguments = (ins FP8_Tensor:$source, I64Attr:$signs);
  let results = (outs FP8_Tensor:$result);
  let assemblyFormat =
      "$source `signs` `=` $signs attr-dict `:` type($source)";
  let extraClassDeclaration = [{
    /// What is rotated together.
    static constexpr int64_t kSize = 16;
  }];
  let hasVerifier = 1;
}

def FP8_QuantizeOp : FP8_Op<"quantize", [AttrSizedOperandSegments]> {
  let summary = "high precision to scaled";
  let description = [{
    ```
    payload[i] = round_to_nearest_even(clamp(f32(x[i]) * scale[block of i], -M, M))
    ```

    where M is the largest finite value of the element type; NaN stays NaN
    (0x7F; E2M1 has none and gives 6). One f32 product, one rounding.

    With a `seed`, four words w, E2M1 is rounded stochastically: a magnitude
    v between two neighbours lo and lo + step becomes the upper one if

    ```
    u < (v - lo) / step,   u = (r >> 8) * 2^-24
    ```

    and the lower one if not; all of that is exact. r is word j mod 4 of
    Philox4x32-10 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3,
    2011) with the key (w[0], w[1]) at the counter (j / 4, i, w[2], w[3]), where
    j is the element's index in the last dimension and i that in all others,
    row-major. So a value that E2M1 has stays, and the mean over all r is v to
    within 2^-24 of a step. What is clamped, and NaN, is as without a seed.

    A quantize says either which `recipe` its scale follows (as inserted by
    `fp8-apply-recipe` and resolved by `fp8-infer-scales`), or has the scale
    itself.

    Constraints:
    - (C1) `source` and `result` have the same shape;
    - (C2) exactly one of `recipe` and `scale` is given;
    - (C3) `scale` has the grid shape of the result, and is f32;
    - (C4) `scale_inv` has the grid shape and the scale type of the result;
    - (C5) `tensor_scale_inv` is given exactly when the result has one;
    - (C6) `recipe` is not `#fp8.none`;
    - (C7) `seed` has four elements, and goes with codes of f4E2M1FN.

    Example:

    ```mlir
    %0 = fp8.quantize %x recipe(#fp8.current)
        : tensor<32x768xbf16> -> !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
    %1 = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>)
        : tensor<32x768xbf16> -> !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
    ```
  }];
  let arguments = (ins FP8_Tensor:$source, Optional<FP8_F32Tensor>:$scale,
                       Optional<FP8_FactorTensor>:$scale_inv,
                       Optional<FP8_F32Tensor>:$tensor_scale_inv,
                       Optional<FP8_SeedTensor>:$seed,
                       OptionalAttr<FP8_RecipeAttrInterface>:$recipe);
  let results = (outs FP8_ScaledType:$result);
  let assemblyFormat = [{
    $source (`recipe` `(` $recipe^ `)`)?
    (`scale` `(` $scale^ `,` $scale_inv `:` type($scale) `,` type($scale_inv) `)`)?
    (`tensor_scale_inv` `(` $tensor_scale_inv^ `:` type($tensor_scale_inv) `)`)?
    (`seed` `(` $seed^ `:` type($seed) `)`)?
    attr-dict `:` type($source) `->` type($result)
  }];
  let builders = [OpBuilder<(ins "Type":$result, "Value":$source,
                                 "Value":$scale, "Value":$scaleInv,
                                 "Value":$tensorScaleInv,
                                 "RecipeAttrInterface":$recipe), [{
    build($_builder, $_state, result, source, scale, scaleInv, tensorScaleInv,
          /*seed=*/Value(), recipe);
  }]>];
  let extraClassDeclaration = [{
    /// Whether the scale is still only named by a recipe.
    bool isUnresolved() { return !getScale(); }
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def FP8_DequantizeOp : FP8_Op<"dequantize"> {
  let summary = "scaled to high precision";
  let description = [{
    `result[i] = f32(payload[i]) * f32(scale_inv[block of i])`, one f32 product,
    then rounded to nearest even if the result is not f32. With a tensor scale
    the factor is the f32 product `scale_inv * tensor_scale_inv`.

    Constraints:
    - (C1) `source` and `result` have the same shape.

    Example:

    ```mlir
    %0 = fp8.dequantize %q
        : !fp8.scaled<32x768xf8E4M3FN, block = [1, 128], scale = f32> -> tensor<32x768xf32>
    ```
  }];
  let arguments = (ins FP8_ScaledType:$source);
  let results = (outs FP8_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
}

def FP8_MeasureOp : FP8_Op<"measure"> {
  let summary = "what quantization did to a tensor";
  let description = [{
    Compares a tensor with its quantized form, in f64, over its finite elements:

    - `amax`: largest magnitude of the source (NaN ignored);
    - `underflow`: number of non-zero elements that became zero;
    - `saturated`: number of elements that an unsaturated rounding would have
      taken beyond the largest finite value, infinite ones included;
    - `signal`, `noise`: sum of squares of the source and of the difference;
      their ratio is the signal-to-quantization-noise ratio.

    Constraints:
    - (C1) `source` and `quantized` have the same shape.

    Example:

    ```mlir
    %amax, %underflow, %saturated, %signal, %noise = fp8.measure %x, %q
        : tensor<32x768xbf16>, !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
    ```
  }];
  let arguments = (ins FP8_Tensor:$source, FP8_ScaledType:$quantized);
  let results = (outs F64:$amax, F64:$underflow, F64:$saturated, F64:$signal,
                      F64:$noise);
  let assemblyFormat = [{
    $source `,` $quantized attr-dict `:` type($source) `,` type($quantized)
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def FP8_TransposeOp : FP8_Op<"transpose",
    [InferTypeOpAdaptor]> {
  let summary = "permute the dimensions of payload and factors together";
  let description = [{
    Dimension i of the result is dimension `permutation[i]` of the source, for
    the payload, the factors and the block. No value changes.

    Constraints:
    - (C1) `permutation` is a permutation of the dimensions of `source`.

    Example:

    ```mlir
    %0 = fp8.transpose %q permutation = [1, 0]
        : !fp8.scaled<32x768xf8E4M3FN, block = [1, *], scale = f32>
    ```
  }];
  let arguments = (ins FP8_ScaledType:$source, DenseI64ArrayAttr:$permutation);
  let results = (outs FP8_ScaledType:$result);
  let assemblyFormat =
      "$source `permutation` `=` $permutation attr-dict `:` type($source)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

def FP8_AssembleOp : FP8_Op<"assemble"> {
  let summary = "payload and factors to one scaled value";
  let description = [{
    Constraints:
    - (C1) `payload`, `scale_inv` and `tensor_scale_inv` have the types that the
      result is made of; `tensor_scale_inv` is given exactly when it has one.

    Example:

    ```mlir
    %0 = fp8.assemble %payload, %scale_inv : tensor<32x768xf8E4M3FN>, tensor<32x6xf32>
        -> !fp8.scaled<32x768xf8E4M3FN, block = [1, 128], scale = f32>
    ```
  }];
  let arguments = (ins FP8_CodeTensor:$payload, FP8_FactorTensor:$scale_inv,
                       Optional<FP8_F32Tensor>:$tensor_scale_inv);
  let results = (outs FP8_ScaledType:$result);
  let assemblyFormat = [{
    $payload `,` $scale_inv (`,` $tensor_scale_inv^)? attr-dict
    `:` type($payload) `,` type($scale_inv) (`,` type($tensor_scale_inv)^)?
    `->` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def FP8_LiftOp : FP8_Op<"lift"> {
  let summary = "codes of E2M1 with exponents to codes of E4M3";
  let description = [{
    `codes` are `[batch x] N x K`. Each 32 of K of a row share an exponent, and
    those of each 128 share a word of `exponents`, which are
    `[batch x] ceil(K / 128) x N`. With e for bits 8 i to 8 i + 3 of the word,
    i being `(k / 32) mod 4`:

    ```
    result[n, k] = E4M3(codes[n, k] * 2^(e - 8))
    ```

    That is exact for e from 0 to 14, the 15 exponents for which each E2M1 is an
    E4M3. For 15 what is larger than 448 becomes 448. So MXFP4 is E4M3 with one
    f32 for each row where the E8M0 of its groups differ by 14 binades at most.

    A kernel that multiplies E4M3 may read codes and exponents in place of the
    result: `fp8-fold-lifts` says with `folded` that all do.

    Constraints:
    - (C1) `codes` have 2 or 3 dimensions; `exponents` and `result` have theirs.

    Example:

    ```mlir
    %0 = fp8.lift %codes, %exponents : tensor<64x256xf4E2M1FN>, tensor<2x64xi32>
        -> tensor<64x256xf8E4M3FN>
    ```
  }];
  let arguments = (ins RankedTensorOf<[F4E2M1FN]>:$codes,
                       RankedTensorOf<[I32]>:$exponents, UnitAttr:$folded);
  let results = (outs RankedTensorOf<[F8E4M3FN]>:$result);
  let assemblyFormat = [{
    $codes `,` $exponents (`folded` $folded^)? attr-dict
    `:` type($codes) `,` type($exponents) `->` type($result)
  }];
  let extraClassDeclaration = [{
    /// Elements along K that a word of exponents is for, and one of them.
    static constexpr int64_t kWordK = 128, kGroupK = 32;
    /// What is added to an exponent that is stored.
    static constexpr int64_t kBias = 8;

    /// The operation whose result is the payload of `operand`, if the kernels
    /// that read it fold it.
    static LiftOp getFolded(::mlir::Value operand);
  }];
  let hasVerifier = 1;
}

def FP8_DisassembleOp : FP8_Op<"disassemble",
    [InferTypeOpAdaptor]> {
  let summary = "a scaled value to payload and factors";
  let description = [{
    Example:

    ```mlir
    %payload, %scale_inv = fp8.disassemble %q
        : !fp8.scaled<32x768xf8E4M3FN, block = [1, 128], scale = f32>
    ```
  }];
  let arguments = (ins FP8_ScaledType:$source);
  let results = (outs FP8_CodeTensor:$payload, FP8_FactorTensor:$scale_inv,
                      Optional<FP8_F32Tensor>:$tensor_scale_inv);
  let assemblyFormat = "$source attr-dict `:` type($source)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Matmul
//===----------------------------------------------------------------------===//

def FP8_MatmulOp : FP8_Op<"matmul", [SingleBlock]> {
  let summary = "product of two tensors, scaled or in high precision";
  let description = [{
    A is `[batch x] M x K`, B is `[batch x] N x K`:

    ```
    acc[m, n]    = sum over k of value(A)[m, k] * value(B)[n, k]      (f32)
    result[m, n] = epilogue(acc[m, n], operands[m, n]...)
    ```

    `accumulate = promote` (the default) sums every 128 of K in f32, `fast`
    leaves the whole sum to the tensor core's own accumulator. A CPU sums in f32
    either way.

    A and B are scaled, or both in one of f32, bf16 and f16: what a recipe leaves
    in high precision, of which tensor cores multiply f32 as TF32, with 10 bits of
    mantissa. They may be given with the other dimension innermost,
    `transpose_a` as `[batch x] K x M` and `transpose_b` as `[batch x] K x N`,
    which tensor cores read as well, Hopper's of 16-bit elements alone.

    The optional epilogue region works on one f32 accumulator and one element of
    each epilogue operand and yields an element of the result. Epilogue operands
    are broadcast to the result as in NumPy: aligned at the last dimension, a
    missing or unit dimension is repeated. Without a region the accumulator is
    rounded to the element type of the result.

    An 8-bit result holds codes: its epilogue multiplies by a scale, clamps and
    rounds, as fp8.quantize does. With a second result, `amax`, the epilogue
    yields a second value, an f32 in high precision, and `amax` is the largest
    magnitude of all of them, NaN ignored.

    Constraints:
    - (C1) A and B have the same rank, 2 or 3;
    - (C2) A and B agree in K and in the batch dimension;
    - (C3) the result is `[batch x] M x N`;
    - (C4) E2M1 goes with E2M1 only;
    - (C5) in K, A and B have the same block extent, or `*` in both; and no
      batch dimension shares a factor unless the tensor has only one;
    - (C6) 2-D blocks go with 1-D blocks only: at most one operand has blocks
      that span more than 1 and less than all of its rows;
    - (C7) block scaling accumulates with `promote`;
    - (C8) the epilogue takes f32 and one scalar for each epilogue operand, and
      yields the element type of the result, and an f32 if there is an `amax`;
    - (C9) epilogue operands can be broadcast to the result;
    - (C10) an 8-bit result and an `amax` need an epilogue; `amax` has one
      element and the rank of the result;
    - (C11) A and B are scaled, or tensors of the same element type, which
      accumulate with `fast`.

    Example:

    ```mlir
    %0 = fp8.matmul %a, %b epilogue(%bias : tensor<64xbf16>) {
    ^bb0(%acc: f32, %b0: bf16):
      %1 = arith.extf %b0 : bf16 to f32
      %2 = arith.addf %acc, %1 : f32
      %3 = arith.truncf %2 : f32 to bf16
      fp8.yield %3 : bf16
    } : !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>,
        !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xbf16>
    ```
  }];
  let arguments = (ins FP8_MatmulOperand:$a, FP8_MatmulOperand:$b,
                       Variadic<AnyRankedTensor>:$epilogue_operands,
                       DefaultValuedAttr<FP8_AccumulateAttr,
                         "::mlir::fp8::Accumulate::Promote">:$accumulate,
                       UnitAttr:$transpose_a, UnitAttr:$transpose_b);
  let results = (outs FP8_MatmulResult:$result,
                      Optional<FP8_F32Tensor>:$amax);
  let regions = (region MaxSizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    $a `,` $b (`transpose_a` $transpose_a^)? (`transpose_b` $transpose_b^)?
    (`accumulate` `=` `` $accumulate^)?
    `` custom<Epilogue>($epilogue_operands, type($epilogue_operands), $epilogue)
    `` custom<NamedAttributes>(attr-dict)
    `:` type($a) `,` type($b) `->` type($result) (`,` type($amax)^)?
  }];
  let builders = [OpBuilder<(ins "Type":$result, "Value":$a, "Value":$b,
                                 "ValueRange":$epilogueOperands,
                                 "Accumulate":$accumulate,
                                 CArg<"bool", "false">:$transposeA,
                                 CArg<"bool", "false">:$transposeB), [{
    build($_builder, $_state, result, /*amax=*/Type(), a, b, epilogueOperands,
          accumulate, transposeA, transposeB);
  }]>];
  let extraClassDeclaration = [{
    /// Whether the accumulator goes through a region before it is stored.
    bool hasEpilogue() { return !getEpilogue().empty(); }

    /// Whether A and B are scaled, and not in high precision.
    bool isScaled() { return ::llvm::isa<ScaledType>(getA().getType()); }
    /// [batch x] M x K and [batch x] N x K, whichever way they are given.
    ScaledType getScaledA();
    ScaledType getScaledB();
    ::llvm::SmallVector<int64_t> getShapeOfA();
    ::llvm::SmallVector<int64_t> getShapeOfB();
    ::mlir::Type getElementTypeOfA();
    ::mlir::Type getElementTypeOfB();

    /// Why the scaled `a` and `b` cannot be multiplied (C1, C2, C4 to C7); empty
    /// if they can.
    static std::string describeMismatch(ScaledType a, ScaledType b,
                                        Accumulate accumulate);
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def FP8_YieldOp : FP8_Op<"yield", [Terminator, ReturnLike,
                                   ParentOneOf<["GroupedMatmulOp", "SiblingMatmulsOp",
                                                "MatmulOp", "FusionOp"]>]> {
  let summary = "results of an epilogue, a fusion or a group";
  let arguments = (ins Variadic<AnyType>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

#endif // FP8_IR_FP8OPS_TD

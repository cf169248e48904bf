//===- CastPasses.td - Phase 3, casts ----------------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_CASTPASSES_TD
#define FP8_TRANSFORMS_CASTPASSES_TD

include "mlir/Pass/PassBase.td"

def FlattenRowsPass : Pass<"fp8-flatten-rows"> {
  let summary = "flatten batch dimensions of the operations around matmuls";
  let description = [{
    Frameworks have activations [batch, length, width], and reshape them to rows
    [batch * length, width] for each matrix product. Elementwise operations,
    reductions, broadcasts, transposes, slices and concatenations between such
    reshapes, in which both dimensions are neighbours wherever there is one of
    them, work on rows here too: reshapes meet and fold, and what is left of them
    are those at the ends of the function, and around what tells batches apart.
    The same becomes of every two dimensions of which a reshape makes one,
    or that a matrix product does not tell apart.

    An operation stays as it is if all that it reads, or all who read its result,
    have to: a reshape between would make two passes over memory of one. What
    reads both is on rows, and what only it reads.
    `tensor.reshape` of rows to batches, which importers use where extents are
    not known, becomes `tensor.expand_shape`.

    Sums are of the same elements in the same order.

    ```mlir
    %1 = linalg.generic {indexing_maps = [(d0, d1, d2) -> (d0, d1, d2), (d0, d1, d2) -> (d2), ...]} ins(%x, %w : tensor<4x256x512xbf16>, tensor<512xbf16>) ...
    %2 = tensor.collapse_shape %1 [[0, 1], [2]] : tensor<4x256x512xbf16> into tensor<1024x512xbf16>
    // becomes
    %1 = tensor.collapse_shape %x [[0, 1], [2]] : tensor<4x256x512xbf16> into tensor<1024x512xbf16>
    %2 = linalg.generic {indexing_maps = [(d0, d1) -> (d0, d1), (d0, d1) -> (d1), ...]} ins(%1, %w : tensor<1024x512xbf16>, tensor<512xbf16>) ...
    ```
  }];
  let dependentDialects = ["::mlir::affine::AffineDialect",
                           "::mlir::arith::ArithDialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numFlattened", "num-flattened", "Operations on fewer dimensions">];
}

def SimplifyCastsPass : Pass<"fp8-simplify-casts"> {
  let summary = "share quantizes and move casts to where there are fewer";
  let description = [{
    - `quantize(transpose(x))` becomes `transpose(quantize(x))`, and likewise for
      reshapes where each block is of the same elements before and after, for
      `tensor.cast`, `linalg.broadcast`, and `tensor.pad` with zeros at the end
      that make no block of their own and of which nobody needs more than codes,
      so that one quantize serves every use of x (common subexpression elimination
      then merges them);
    - `quantize` of tensors that `tensor.insert_slice` puts together, one after the
      other, becomes a `quantize` of each where no block, and so no amax, is of
      two;
    - `transpose`, reshapes, casts and slices of `dequantize(q)` become
      `dequantize` of the same of q, and so do tensors put together and rows that
      are looked up in a table (`tensor.extract` in a `linalg.generic`), where
      their blocks are the table's: bytes move instead of floats, and of a table
      what is looked up is dequantized. Elements that are repeated are dequantized
      after only if it is a contraction that takes them, by its codes;
    - a `linalg.copy` that converts nothing is its source, and `quantize` of
      floats that are only widened is `quantize` of the narrow ones;
    - `quantize(dequantize(q))` is q where format and blocks agree; otherwise it
      is *double quantization* and gets a warning: the two roundings add up,
      the tensor should be quantized from its high-precision source.

    Batches that become rows stay rows, where nothing computes or quantizes the
    batches otherwise. A slice is not moved above a quantize: the amax of a tensor is not that of
    its slice, and quantizing the whole for a slice costs more. The same is true of
    what is looked up. Zeros are not added to a `dequantize`'s source: a caller's
    factor may be infinite, whose product with zero is NaN.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::fp8::FP8Dialect",
                           "::mlir::linalg::LinalgDialect",
                           "::mlir::tensor::TensorDialect"];
  let statistics = [
    Statistic<"numMoved", "num-moved", "Casts moved through data movement">,
    Statistic<"numRemoved", "num-removed", "Quantizes of dequantizes removed">,
    Statistic<"numDouble", "num-double", "Double quantizations diagnosed">];
}

def SaveQuantizedPass : Pass<"fp8-save-quantized", "::mlir::ModuleOp"> {
  let summary = "save quantized activations for the backward in place of "
                "floats";
  let description = [{
    An argument marked `fp8.saved` is the argument or result of another function
    that is marked `fp8.save` with the same name: what a forward keeps for its
    backward, or a weight that is quantized once for several calls. Where a reader
    only quantizes it, that is done where the tensor comes from, together with
    other quantizes of it there: fewer bytes are kept, and none are read twice.

    ```mlir
    func.func private @forward(tensor<32x64xbf16> {fp8.save = "x"}) -> tensor<32x8xbf16>
    func.func private @backward(tensor<32x8xbf16>, tensor<32x64xbf16> {fp8.saved = "x"}) -> tensor<8x64xbf16>
    // become, if @backward reads a transposed copy under a recipe for tensors
    func.func private @new_forward(tensor<32x64xbf16>) -> (tensor<32x8xbf16>,
        tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"},
        tensor<1x1xf32> {fp8.name = "x.scale_inv"})
    func.func private @new_backward(tensor<32x8xbf16>,
        tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"},
        tensor<1x1xf32> {fp8.name = "x.scale_inv"}) -> tensor<8x64xbf16>
    ```

    Parts take the place of a marked argument of a reader and of a marked result;
    those of a marked argument of the source are results behind the others. Parts
    of further values of one tensor end with _1, _2, and so on. A reader that uses no
    part has none.

    A tensor stays as it is, with a remark, where a reader needs more of it than
    codes, where its codes take more memory than it does (of a weight, which is kept
    anyway, they may), where codes are smaller than a byte, and in functions that
    are called in the module.

    With `one-order` codes that are only transposed for a reader are saved as they
    are for others, the source among them, where there are such: the reader
    transposes them itself, with a remark. So a forward writes one copy, and of a
    weight there is one. That is so where both have the same factors, as with one
    for a tensor or for squares of 128x128.
  }];
  let dependentDialects = ["::mlir::fp8::FP8Dialect",
                           "::mlir::tensor::TensorDialect"];
  let options = [
    Option<"oneOrder", "one-order", "bool", "false",
           "Save codes in one order, and transpose them where they are read">];
  let statistics = [
    Statistic<"numSaved", "num-saved", "Tensors of which codes are saved">];
}

#endif // FP8_TRANSFORMS_CASTPASSES_TD

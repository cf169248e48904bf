//===- FP8Types.td - Types of the fp8 dialect --------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8TYPES_TD
#define FP8_IR_FP8TYPES_TD

include "fp8/IR/FP8Dialect.td"
include "mlir/IR/AttrTypeBase.td"

def FP8_ScaledType : TypeDef<FP8_Dialect, "Scaled"> {
  let mnemonic = "scaled";
  let summary = "a quantized tensor with its dequantization factors";
  let description = [{
    Codes (the *payload*) and dequantization factors (`scale_inv`) as one value:

    ```
    value[i, j] = payload[i, j] * scale_inv[i / block[0], j / block[1]]
                                * tensor_scale_inv          (if present)
    ```

    `block` gives the extent of a block in each dimension, `*` the whole
    dimension. The grid of factors has the rank of the tensor and
    `ceildiv(dim, block)` entries in each dimension; a block at the upper edge
    may be partial.

    ```
    !fp8.scaled<8192x4096xf8E4M3FN, block = [*, *], scale = f32>      // per tensor
    !fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>      // per row
    !fp8.scaled<8192x4096xf8E4M3FN, block = [1, 128], scale = f32>
    !fp8.scaled<?x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>  // MXFP8
    !fp8.scaled<8192x4096xf4E2M1FN, block = [1, 16], scale = f8E4M3FN,
                tensor_scale = f32>                                   // NVFP4
    ```

    In memory two codes of f4E2M1FN are a byte, neighbours in the last
    dimension.

    Constraints:
    - (C1) the element type is f8E4M3FN, f8E5M2 or f4E2M1FN;
    - (C2) `block` has one entry for each dimension, each at least 1 or `*`;
    - (C3) `scale` is f32, f8E8M0FNU or f8E4M3FN;
    - (C4) `scale = f8E4M3FN` goes with element type f4E2M1FN and with
      `tensor_scale = f32`, and only with them.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    ArrayRefParameter<"int64_t">:$block,
    "::mlir::Type":$scaleType,
    "bool":$hasTensorScale
  );
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Extent of a block that spans its dimension; printed as `*`.
    static constexpr int64_t kWhole = 0;

    int64_t getRank() const { return getShape().size(); }
    /// tensor<shape x element>.
    ::mlir::RankedTensorType getPayloadType() const;
    /// tensor<grid x scale>.
    ::mlir::RankedTensorType getScaleInvType() const;
    /// tensor<1x..x1xf32>, of the rank of the payload; the type of the
    /// tensor-wide factor where there is one.
    ::mlir::RankedTensorType getTensorScaleInvType() const;
    /// ceildiv(dim, block) in each dimension, kDynamic for a dynamic one.
    ::llvm::SmallVector<int64_t> getGridShape() const;
    /// Bytes of a cache of the value: codes, then the factor at the next
    /// multiple of 4. Nothing if it cannot be cached: unless the shape is
    /// static, the factor is one f32, and codes have 8 bits.
    std::optional<int64_t> getCacheSize() const;
    /// Whether one factor serves the whole tensor.
    bool isPerTensor() const;
    /// Whether dimension `dim` is cut into more than one block.
    bool isBlocked(int64_t dim) const { return getBlock()[dim] != kWhole; }
    /// The same encoding for another shape and block.
    ScaledType cloneWith(::llvm::ArrayRef<int64_t> shape,
                         ::llvm::ArrayRef<int64_t> block) const;
    /// The type after dimension i of the result is dimension
    /// `permutation[i]` of this one.
    ScaledType permute(::llvm::ArrayRef<int64_t> permutation) const;
  }];
}

def FP8_StateType : TypeDef<FP8_Dialect, "State"> {
  let mnemonic = "state";
  let summary = "the scaling state of one instance of a model";
  let description = [{
    Scales and amaxes of a step, by slot: what the functions of a program that
    uses delayed scaling take as their last argument. What the slots are is the
    module's `fp8.state` attribute. Compiled, it is a pointer to the runtime's
    `fp8rt_state_rows`.
  }];
}

#endif // FP8_IR_FP8TYPES_TD

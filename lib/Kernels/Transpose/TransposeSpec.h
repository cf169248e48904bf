//===- TransposeSpec.h - What a transposing kernel computes -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSESPEC_H
#define FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSESPEC_H

#include "fp8/Kernels/KernelSpec.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fp8 {

/// The last two of two or three dimensions in each other's place.
struct TransposeSpec : KernelSpec {
  static constexpr StringLiteral kKind = "transpose";

  TransposeSpec() : KernelSpec(kKind) {}
  static bool classof(const KernelSpec *spec) {
    return spec->getKind() == kKind;
  }

  Type elementType;
  bool batched = false;
  /// Extents of the source, kDynamic where unknown.
  int64_t batch = 1, rows, columns;

  int64_t getElementBytes() const {
    return elementType.getIntOrFloatBitWidth() / 8;
  }
  int64_t getRank() const { return batched ? 3 : 2; }
  /// Whether rows of source and result are known to start at words; the kernel
  /// moves nothing smaller.
  bool startsAtWords() const;

  bool hasKnownExtents() const override;
  /// "b1 1x4096x14336": bytes of an element, batch, rows and columns.
  std::string describe() const override;

  /// Says why if no kernel transposes a tensor of this type so.
  static FailureOr<TransposeSpec> get(RankedTensorType source,
                                      ArrayRef<int64_t> permutation,
                                      std::string &reason);
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_TRANSPOSE_TRANSPOSESPEC_H

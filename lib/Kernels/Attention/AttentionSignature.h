//===- AttentionSignature.h - What attention kernels take -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_ATTENTION_ATTENTIONSIGNATURE_H
#define FP8_LIB_KERNELS_ATTENTION_ATTENTIONSIGNATURE_H

#include "../Blocks/KernelSignature.h"
#include "AttentionSpec.h"
#include "SwizzledMatrix.h"

namespace mlir::fp8 {

/// The signature of a forward of attention on any GPU, while it is made.
struct AttentionSignature {
  const AttentionSpec &spec;
  KernelSignature signature;
  AffineExpr batch, queries, keys;

  /// With the arguments and extents.
  AttentionSignature(MLIRContext *context, const AttentionSpec &spec);

  /// A map of bulk copies of `rows` positions of `name`, which lie as those of
  /// `matrix`; L2 fetches `l2` bytes.
  void addMap(StringRef name, const SwizzledMatrix &matrix, int64_t rows,
              int64_t l2);
  /// The parameters that all kernels have.
  void addParams();
  AffineExpr getFlops() const;
};

/// Says why if tensor cores, bulk copies or rows do not fit the extents, of
/// which the configs' dialect says more.
LogicalResult checkAttentionExtents(const AttentionSpec &spec, int64_t tileK,
                                    std::string &reason);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_ATTENTION_ATTENTIONSIGNATURE_H

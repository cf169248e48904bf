//===- Transpose.h - Transposes by squares of vectors -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_LINALGTOLOOPS_TRANSPOSE_H
#define FP8_LIB_CONVERSION_LINALGTOLOOPS_TRANSPOSE_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// A transpose of the last two dimensions of memrefs by squares, which vectors
/// hold: an element at a time, each would take a line of the cache. Fails for
/// other permutations, for elements that are not of 8, 16 or 32 bits, and for
/// strided rows.
LogicalResult lowerTranspose(RewriterBase &b, linalg::TransposeOp op);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_LINALGTOLOOPS_TRANSPOSE_H

//===- GatherTiles.h - Loops that gather elements ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_BUFFERS_GATHERTILES_H
#define FP8_LIB_TRANSFORMS_BUFFERS_GATHERTILES_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {

/// Replace the operation by a gather, element by element: upstream expands
/// tensors into tiles of static extents only.
void gatherPack(RewriterBase &rewriter, linalg::PackOp op);
void gatherUnPack(RewriterBase &rewriter, linalg::UnPackOp op);

/// Replaces a tensor.gather, which upstream does not bufferize, by such a loop.
void gatherSlices(RewriterBase &rewriter, tensor::GatherOp op);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_BUFFERS_GATHERTILES_H

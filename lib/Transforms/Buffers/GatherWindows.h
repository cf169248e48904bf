//===- GatherWindows.h - Tensors within tensors in one loop -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_BUFFERS_GATHERWINDOWS_H
#define FP8_LIB_TRANSFORMS_BUFFERS_GATHERWINDOWS_H

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

namespace mlir::fp8 {

/// Whether one loop that writes each element once is to take the place of
/// several: borders and what is between them, or a copy of a tensor that may
/// not be written and what is written into the copy.
bool isWindow(tensor::PadOp op);
bool isWindow(tensor::InsertSliceOp op);

/// Replace the operation, which is a window, by such a loop.
void gatherWindow(RewriterBase &rewriter, tensor::PadOp op);
void gatherWindow(RewriterBase &rewriter, tensor::InsertSliceOp op);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_BUFFERS_GATHERWINDOWS_H

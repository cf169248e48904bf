//===- BufferizeCollectives.h - Reductions on memrefs -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TRANSFORMS_BUFFERIZECOLLECTIVES_H
#define FP8_TRANSFORMS_BUFFERIZECOLLECTIVES_H

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::fp8 {

/// Lets one-shot bufferization take fp8.all_reduce_amax to memrefs.
void registerCollectivesBufferization(DialectRegistry &registry);

} // namespace mlir::fp8

#endif // FP8_TRANSFORMS_BUFFERIZECOLLECTIVES_H

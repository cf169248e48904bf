//===- StridedKernels.h - Kernels of strided loops --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_LINALGTOGPU_STRIDEDKERNELS_H
#define FP8_LIB_CONVERSION_LINALGTOGPU_STRIDEDKERNELS_H

#include "LaunchBuilder.h"
#include "StridedLoops.h"

namespace mlir::fp8 {

class Combiner;

/// A warp for some results of a sum of products. `lowerOther` is called with
/// the copies of inputs that are read in another order.
void lowerContraction(RewriterBase &b, LaunchBuilder &launches,
                      linalg::LinalgOp op, const Combiner &combiner,
                      llvm::function_ref<void(linalg::LinalgOp)> lowerOther);

/// Threads take neighbours of the innermost parallel loop, and run the others
/// in their order: sums are those of the CPU's loops, bit by bit.
void lowerElements(RewriterBase &b, LaunchBuilder &launches,
                   linalg::LinalgOp op, const StridedLoops &loops);

/// Where an input lies in another order than what is written, blocks have tiles
/// of two loops, which go through shared memory: both are read and written in
/// the order that they lie in. False if there is none.
bool lowerTiles(RewriterBase &b, LaunchBuilder &launches, linalg::LinalgOp op,
                const StridedLoops &loops);

/// Threads share what is reduced, where results are too few for a thread each
/// or terms lie side by side; false if they need not, or the order of terms
/// matters. Sums are in another order than the CPU's, always the same.
/// `lowerRest` is called with what is left to reduce.
bool lowerReduction(RewriterBase &b, LaunchBuilder &launches,
                    linalg::LinalgOp op, const StridedLoops &loops,
                    const Combiner &combiner,
                    llvm::function_ref<void(linalg::LinalgOp)> lowerRest);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_LINALGTOGPU_STRIDEDKERNELS_H

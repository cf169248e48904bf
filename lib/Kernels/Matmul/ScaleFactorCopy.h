//===- ScaleFactorCopy.h - Factors along K to shared memory -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_SCALEFACTORCOPY_H
#define FP8_LIB_KERNELS_MATMUL_SCALEFACTORCOPY_H

#include "MatmulParams.h"

namespace mlir::fp8 {

/// What a warp copies of one operand's factors along K, f32 or words of four
/// E8M0: those of a tile, for one K block at a time, to a stage of shared
/// memory. Each of its lanes copies some, asynchronously.
class ScaleFactorCopy {
public:
  /// The operand: A or B, and its tensor `number`, of which it has one or, of a
  /// pair's B, two. A K block has `blockK` elements.
  struct Source {
    bool ofA;
    int64_t number, blockK;
  };
  /// How many lie where in the first stage, and bytes to the next one.
  struct Stages {
    Value shared;
    int64_t offset, stride, count;
  };

  ScaleFactorCopy(const MatmulParams &kernel, const Tile &tile, Source source,
                  Stages stages, Value lane);

  /// Lane l copies factors l, l + 32, ... of K block `k`, or as many fours;
  /// beyond the operand they are zero, like its rows.
  void copy(Value k, Value stage) const;

private:
  KernelBuilder &b;
  Stages stages;
  /// How many are copied at once.
  int64_t width;
  /// The lane's first one at K block 0, bytes to the next K block and to those
  /// that the lane copies next, rows that the lane has left.
  Value lane, first, strideK, step, left;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_SCALEFACTORCOPY_H

//===- TransposeFragments.h - Codes with rows innermost ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_TRANSPOSEFRAGMENTS_H
#define FP8_LIB_KERNELS_SM90_TRANSPOSEFRAGMENTS_H

#include "MatmulContext.h"

namespace mlir::fp8::sm90 {

/// Whether an operand has 8 bits and rows innermost, which wgmma reads from
/// registers alone.
inline bool isTransposedCodes(const OperandSpec &operand) {
  return operand.major == Major::MN && operand.getElementBytes() == 1;
}

/// Whether consumers transpose the operand of the tensor core's M side.
inline bool transposesRows(const MatmulSpec &spec, bool swapped) {
  return isTransposedCodes(swapped ? spec.b : spec.a);
}

/// Makes the words that wgmma takes of A from registers of codes that lie with
/// rows innermost in a stage: a thread has rows 16 w + 2 (l / 4) and the next
/// of each 64 (FragmentLayout::ofNeighbours), and the program's order of K.
class FragmentTransposer {
public:
  /// `slice` is the warpgroup's number among those that share a tile.
  FragmentTransposer(const MatmulContext &kernel, Value slice);

  /// Words of subtile `subtile` of a stage: four for each instruction.
  SmallVector<Value> load(Value stage, int64_t subtile);

private:
  const MatmulContext &kernel;
  KernelBuilder &b;
  const OperandTile &tile;
  /// Where in the first stage the lane's line of the first K is; in which order
  /// it has bytes of four K.
  Value place, evenBytes, oddBytes;
};

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_TRANSPOSEFRAGMENTS_H

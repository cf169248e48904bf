//===- MatmulLayout.h - Where a matmul kernel keeps what --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM89_MATMULLAYOUT_H
#define FP8_LIB_KERNELS_SM89_MATMULLAYOUT_H

#include "../Blocks/OperandTile.h"
#include "SM89Dialect.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"

namespace mlir::fp8::sm89 {

/// Whether each K block's sums are added to others in f32.
bool promotesSums(const MatmulSpec &spec);

/// Fails, with the reason, if no config multiplies such operands.
LogicalResult checkOperands(const MatmulSpec &spec, std::string &reason);

/// Shared memory of a block, and how many of them a multiprocessor has room
/// for.
class MatmulLayout {
public:
  static FailureOr<MatmulLayout> get(const MatmulSpec &spec,
                                     GemmConfigAttr config,
                                     GPUTargetAttr target, std::string &reason);

  /// The instruction's rows and columns of a stage, and of these what comes
  /// from one tensor.
  OperandTile rows, cols, colsPart;
  int64_t offsetRows = 0, offsetCols, offsetFlag, offsetGroups, sharedBytes;
  int64_t resident;

private:
  MatmulLayout(const MatmulSpec &spec, GemmConfigAttr config);
};

} // namespace mlir::fp8::sm89

#endif // FP8_LIB_KERNELS_SM89_MATMULLAYOUT_H

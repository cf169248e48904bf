//===- EpilogueOperands.h - What an epilogue reads --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_FUSION_EPILOGUEOPERANDS_H
#define FP8_LIB_TRANSFORMS_FUSION_EPILOGUEOPERANDS_H

#include "fp8/IR/FP8Ops.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/Statistic.h"

namespace mlir::fp8 {

/// The matmul of which `op` alone reads the result, in its own block: in
/// another, a loop perhaps, the matmul would run more often. Null if there is
/// none.
MatmulOp getOnlyReadMatmul(linalg::GenericOp op);

/// Adds a pattern by which an operation that goes to a matmul's epilogue
/// computes again what others compute as well, element by element, where that
/// reads fewer bytes; each match is counted.
void populateEpilogueOperandsPatterns(RewritePatternSet &patterns,
                                      llvm::Statistic &numRecomputed);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_FUSION_EPILOGUEOPERANDS_H

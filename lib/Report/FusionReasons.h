//===- FusionReasons.h - Why two kernels are two ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_REPORT_FUSIONREASONS_H
#define FP8_LIB_REPORT_FUSIONREASONS_H

#include "KernelGraph.h"
#include "fp8/Kernels/Architecture.h"
#include "llvm/ADT/Statistic.h"

namespace mlir::fp8 {

/// Asks those who would make one kernel of two why they do not: on a copy, or
/// on an operation beside the program, which stays what it is.
class FusionReasons {
public:
  /// `numTried` counts what was asked.
  FusionReasons(const KernelGraph &graph, const Architecture &architecture,
                GPUTargetAttr target, llvm::Statistic &numTried)
      : graph(graph), architecture(architecture), target(target),
        numTried(numTried) {}

  /// Why the two of a pair are not one kernel. `describe` names a node.
  std::string explain(const KernelPair &pair,
                      llvm::function_ref<std::string(unsigned)> describe) const;

  /// Why no kernel computes `op`, which loops do.
  std::string explainLoop(Operation *op) const;

private:
  std::string getKernelReason(Operation *op) const;
  /// What the patterns that extend a matmul say of what reads its result.
  std::string askEpilogue(MatmulOp matmul, Operation *reader) const;
  /// What the kernels of fusions say of both in one.
  std::string askFusion(const KernelPair &pair) const;

  const KernelGraph &graph;
  const Architecture &architecture;
  GPUTargetAttr target;
  llvm::Statistic &numTried;
};

} // namespace mlir::fp8

#endif // FP8_LIB_REPORT_FUSIONREASONS_H

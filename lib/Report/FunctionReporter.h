//===- FunctionReporter.h - The report of a function ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_REPORT_FUNCTIONREPORTER_H
#define FP8_LIB_REPORT_FUNCTIONREPORTER_H

#include "FusionReasons.h"
#include "FusionReport.h"
#include "LaunchedKernels.h"

namespace mlir::fp8 {

/// Makes the report of a function.
class FunctionReporter {
public:
  /// What is `launched` came from nodes of `graph`, whose tags are their
  /// numbers from `firstTag` on.
  FunctionReporter(const KernelGraph &graph, ArrayRef<LaunchedKernel> launched,
                   unsigned firstTag, const FusionReasons &reasons,
                   GPUTargetAttr target);

  FusionReport::Function report();

private:
  /// Microseconds; nothing where the target's peaks are not known.
  std::optional<double> getFloor(std::optional<double> bytes, double flops,
                                 int64_t bits, unsigned numLaunches) const;
  std::optional<double> getFlops(const KernelNode &node) const;
  int64_t getBits(const KernelNode &node) const;

  std::string describeRoot(Value root) const;
  std::string describeNode(unsigned node) const;
  /// Its name, or what it reads and makes.
  std::string describeWork(unsigned node) const;
  std::string getKind(const LaunchedKernel &kernel,
                      std::optional<unsigned> node) const;
  FusionReport::Kernel reportKernel(const LaunchedKernel &kernel);
  void addRefusals(FusionReport::Function &function) const;
  void addFloor(FusionReport::Function &function) const;

  const KernelGraph &graph;
  ArrayRef<LaunchedKernel> launched;
  unsigned firstTag;
  const FusionReasons &reasons;
  GPUTargetAttr target;
  /// For each node the number of the kernel that computes it, or the first of
  /// its loops; 0 for none.
  SmallVector<size_t> numbers;
};

} // namespace mlir::fp8

#endif // FP8_LIB_REPORT_FUNCTIONREPORTER_H

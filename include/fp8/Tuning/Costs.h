//===- Costs.h - What the compiler expects of kernels -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TUNING_COSTS_H
#define FP8_TUNING_COSTS_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>

namespace mlir::fp8 {

/// Writes, as a line of JSON, what the machine's model says of every operation
/// of a module with `fp8_gpu.target` that has a kernel, in order: an array with
/// an object for each, of its function, its kernel as tuning tables call it,
/// and the clocks of each candidate, the best first, or of the config that it
/// is pinned to.
void printCosts(ModuleOp module, raw_ostream &os);

struct TunedKernel;

/// What machines' models say of given configs of a program's kernels, for fits:
/// as often as constants are tried.
class CostTable {
public:
  /// The configs that `text` has for operations of a module as above: in each
  /// line a function's name, whose only operation with a kernel is meant, and a
  /// config of such kernels. Reports what is wrong as of `name`.
  static FailureOr<CostTable>
  get(ModuleOp module, const llvm::MemoryBuffer &text, StringRef name);
  CostTable(CostTable &&);
  ~CostTable();

  /// Clocks of each config on a target of the module's chip.
  std::vector<double> getClocks(GPUTargetAttr target) const;

private:
  struct Row {
    const TunedKernel *kernel;
    KernelConfigAttrInterface config;
  };
  CostTable();

  std::vector<std::unique_ptr<TunedKernel>> kernels;
  std::vector<Row> rows;
};

} // namespace mlir::fp8

#endif // FP8_TUNING_COSTS_H

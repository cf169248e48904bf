//===- Tuner.h - Measured choices of kernels --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TUNING_TUNER_H
#define FP8_TUNING_TUNER_H

#include "fp8/Kernels/TuningTable.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <optional>

namespace mlir::fp8 {

struct TunerOptions {
  /// How often each config is timed, of which the median counts.
  int64_t rounds = 9;
  /// Measure also what selection decides by rule.
  bool exhaustive = false;
  /// How many configs of a kernel are measured, those first that selection puts
  /// first; all without.
  std::optional<size_t> most;
  /// Leave alone what the table has.
  bool onlyMissing = false;
  /// The pipeline's option.
  std::string kernelCache;
};

/// What was measured of one kernel.
struct TunedChoice {
  /// As TuningTable::describe has it.
  std::string kernel;
  TuningTable::Entry fastest;
  /// Time of the config that selection would take; none if not measured.
  std::optional<double> selectedMicroseconds;
  size_t configs = 0;
};

/// Measures kernels of the operations of `module`, a program with a target at
/// the end of `fusion`, on this machine's first GPU, on random operands, and
/// puts the fastest of each into `table`; tells `report` of each. Remarks say
/// which operations no table can have an entry for. An error if there is no GPU
/// of the target, or no kernel; without anything to measure no GPU is needed.
llvm::Error tuneKernels(ModuleOp module, const TunerOptions &options,
                        TuningTable &table,
                        llvm::function_ref<void(const TunedChoice &)> report);

} // namespace mlir::fp8

#endif // FP8_TUNING_TUNER_H

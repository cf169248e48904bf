//===- Report.h - What fp8-run prints ---------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_REPORT_H
#define FP8_TOOLS_FP8RUN_REPORT_H

#include "fp8/Compiler/Comparison.h"
#include "fp8/Compiler/HostTensor.h"
#include "fp8/Compiler/Profile.h"
#include "fp8/Runtime/ScalingState.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fp8 {

/// One line: name, dtype, shape, range and first values.
void printSummary(const HostTensor &tensor, llvm::raw_ostream &os);

/// One line: the largest difference from the reference, also as a share.
void printDifference(const Difference &difference, llvm::raw_ostream &os);

/// The slots of a state, with their statistics.
llvm::Error printState(fp8rt_state state, llvm::raw_ostream &os);

/// The seconds that `making` the program took, and minimum, median and maximum
/// of `runs`.
void printTimes(StringRef making, double seconds, std::vector<double> runs,
                llvm::raw_ostream &os);

/// The table of what ran on a GPU, the longest first: how often, the mean time
/// and the share of all times; and of what is known to move bytes or to
/// compute, the rate. `copyRate`, in bytes in a second, is that of a copy.
void printProfile(ArrayRef<ProfileEntry> entries, double copyRate,
                  llvm::raw_ostream &os);

/// The table of statistics that the program has recorded, one row for each of
/// `names`, which number the runtime's slots.
void printStats(ArrayRef<std::string> names, llvm::raw_ostream &os);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_REPORT_H

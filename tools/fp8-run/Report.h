//===- Report.h - What fp8-run prints ---------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8RUN_REPORT_H
#define FP8_TOOLS_FP8RUN_REPORT_H

#include "HostTensor.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fp8 {

/// The value of element `index`; 64-bit integers are rounded.
double getElement(const HostTensor &tensor, int64_t index);

/// One line: name, dtype, shape, range and first values.
void printSummary(const HostTensor &tensor, llvm::raw_ostream &os);

/// The seconds that `making` the program took, and minimum, median and maximum
/// of `runs`.
void printTimes(StringRef making, double seconds, std::vector<double> runs,
                llvm::raw_ostream &os);

/// The table of statistics that the program has recorded, one row for each of
/// `names`, which number the runtime's slots.
void printStats(ArrayRef<std::string> names, llvm::raw_ostream &os);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8RUN_REPORT_H

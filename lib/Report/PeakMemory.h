//===- PeakMemory.h - The most that is allocated at a time ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_REPORT_PEAKMEMORY_H
#define FP8_LIB_REPORT_PEAKMEMORY_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <optional>

namespace mlir::fp8 {

/// Bytes that each function of a module has allocated at most, by its name,
/// with its results and what the functions that it calls allocate, and without
/// its arguments. Allocations and deallocations must be explicit (phase 5).
/// Nothing where an extent is not known, or control flow is not structured.
llvm::StringMap<std::optional<double>> getPeakMemory(ModuleOp module);

} // namespace mlir::fp8

#endif // FP8_LIB_REPORT_PEAKMEMORY_H

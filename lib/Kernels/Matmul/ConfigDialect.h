//===- ConfigDialect.h - Dialects of matmuls' configs -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_CONFIGDIALECT_H
#define FP8_LIB_KERNELS_MATMUL_CONFIGDIALECT_H

#include "mlir/IR/Diagnostics.h"

namespace mlir::fp8 {

/// A parameter's name and value, and the range that it is in.
struct ConfigRange {
  StringRef name;
  int64_t value, low, high;
};

/// Reports the first parameter that is not in its range.
inline LogicalResult
checkRanges(llvm::function_ref<InFlightDiagnostic()> emitError,
            ArrayRef<ConfigRange> ranges) {
  for (const ConfigRange &range : ranges)
    if (range.value < range.low || range.value > range.high)
      return emitError() << "expected " << range.name << " to be in "
                         << range.low << ".." << range.high << ", but got "
                         << range.value;
  return success();
}

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_CONFIGDIALECT_H

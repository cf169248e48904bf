//===- Remarks.h - What was decided about every contraction -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PIPELINES_REMARKS_H
#define FP8_PIPELINES_REMARKS_H

#include "mlir/Support/LLVM.h"
#include <string>

namespace mlir {
class MLIRContext;
}

namespace mlir::fp8 {

/// Makes `context` write the remarks of category `fp8` as `spec` says:
/// `json:FILE` or `text:FILE`, with `-` for the standard output. The file is
/// written when the context is destroyed, whole or not at all. On failure
/// `error` says what was expected.
LogicalResult enableRemarks(MLIRContext *context, StringRef spec,
                            std::string &error);

} // namespace mlir::fp8

#endif // FP8_PIPELINES_REMARKS_H

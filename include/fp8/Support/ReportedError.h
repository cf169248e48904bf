//===- ReportedError.h - An error that has been told ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_REPORTEDERROR_H
#define FP8_SUPPORT_REPORTEDERROR_H

#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::fp8 {

/// What is wrong with a program has been said through MLIR's diagnostics, and
/// is not to be said again.
class ReportedError : public llvm::ErrorInfo<ReportedError> {
public:
  static char ID;

  void log(llvm::raw_ostream &os) const override {
    os << "the program has errors";
  }
  std::error_code convertToErrorCode() const override {
    return llvm::inconvertibleErrorCode();
  }
};

inline llvm::Error makeReportedError() {
  return llvm::make_error<ReportedError>();
}

} // namespace mlir::fp8

#endif // FP8_SUPPORT_REPORTEDERROR_H

//===- RewriteLog.h - Why patterns did not match ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_REWRITELOG_H
#define FP8_SUPPORT_REWRITELOG_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/Support/DebugLog.h"

namespace mlir::fp8 {

/// Logs what patterns tell notifyMatchFailure, as LDBG() of the pass whose flag
/// is `type` would. Drivers log it only if MLIR was built with assertions.
class RewriteLog : public RewriterBase::Listener {
public:
  explicit RewriteLog(StringRef type) : type(type) {}

  void notifyMatchFailure(
      [[maybe_unused]] Location loc,
      [[maybe_unused]] function_ref<void(Diagnostic &)> reason) override {
    LDBG_OS(type, [&](raw_ostream &os) {
      Diagnostic diagnostic(loc, DiagnosticSeverity::Remark);
      reason(diagnostic);
      os << "not rewritten, for " << diagnostic.str() << ": " << loc;
    });
  }

private:
  [[maybe_unused]] StringRef type;
};

} // namespace mlir::fp8

#endif // FP8_SUPPORT_REWRITELOG_H

//===- Messages.h - What is said of a source --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CAPI_MESSAGES_H
#define FP8_LIB_CAPI_MESSAGES_H

#include "fp8-c/Compiler.h"
#include "fp8/Report/Remarks.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace mlir::fp8::capi {

/// Collects diagnostics, as long as it lives, with the lines of the source.
class DiagnosticCollector : public SourceMgrDiagnosticHandler {
public:
  DiagnosticCollector(llvm::SourceMgr &sources, MLIRContext *context);

  /// In one line, `file:line:column: message`; empty if there was no error.
  std::string describeFirstError() const;
  void send(fp8c_diagnostic_handler handler, void *data) const;

private:
  struct Entry {
    int32_t severity;
    unsigned line, column;
    std::string file, message, text;
  };

  void add(Diagnostic &diagnostic);

  std::string text;
  llvm::raw_string_ostream stream;
  std::vector<Entry> entries;
};

void send(const GemmRemark &remark, fp8c_remark_handler handler, void *data);

} // namespace mlir::fp8::capi

#endif // FP8_LIB_CAPI_MESSAGES_H

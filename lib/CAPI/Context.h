//===- Context.h - What contexts and sources are ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CAPI_CONTEXT_H
#define FP8_LIB_CAPI_CONTEXT_H

#include "Status.h"

#include "fp8-c/Compiler.h"
#include "fp8/Compiler/Source.h"
#include "fp8/Report/Remarks.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace mlir::fp8::capi {

/// What a fp8c_context and its sources share.
class Context {
public:
  Context();

  MLIRContext &getMLIRContext() { return *context; }

  /// Does `work` on `source` unless other work is under way; then hands what
  /// was said of it to the handlers. A ReportedError becomes
  /// FP8RT_ERROR_INVALID_PROGRAM with the first error that was said.
  fp8rt_status run(Source &source, llvm::function_ref<llvm::Error()> work);

  /// Lets `body` change the handlers.
  fp8rt_status change(llvm::function_ref<void()> body);

  fp8c_diagnostic_handler diagnosticHandler = nullptr;
  void *diagnosticData = nullptr;
  fp8c_remark_handler remarkHandler = nullptr;
  void *remarkData = nullptr;
  fp8c_progress_handler progressHandler = nullptr;
  void *progressData = nullptr;

private:
  std::unique_ptr<MLIRContext> context;
  /// Remarks of the work that is under way.
  std::vector<GemmRemark> remarks;
  std::atomic<bool> isBusy = false;
};

} // namespace mlir::fp8::capi

struct fp8c_context {
  std::shared_ptr<mlir::fp8::capi::Context> context;
};

struct fp8c_source {
  /// First, and hence destroyed last: the module is in it.
  std::shared_ptr<mlir::fp8::capi::Context> context;
  mlir::fp8::Source source;
};

#endif // FP8_LIB_CAPI_CONTEXT_H

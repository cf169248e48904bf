//===- SourceProgram.h - Reading and compiling a program --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_SUPPORT_SOURCEPROGRAM_H
#define FP8_TOOLS_SUPPORT_SOURCEPROGRAM_H

#include "fp8/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/SourceMgr.h"

#include <memory>

namespace llvm::opt {
class Arg;
} // namespace llvm::opt

namespace mlir::fp8 {

/// The file, and what CompilerOptions.td has.
struct CompilerOptions {
  std::string file;
  PipelineOptions pipeline;
  /// Empty without --fp8-remarks.
  std::string remarks;
};

/// Takes `arg` if it is one of CompilerOptions.td; false for another.
llvm::Expected<bool> parseCompilerOption(const llvm::opt::Arg &arg,
                                         CompilerOptions &options);

/// A program in MLIR and the context it lives in, which reports errors with the
/// lines of the source.
class SourceProgram {
public:
  /// Reads and verifies `options.file`. Null if what is wrong with the program
  /// has been reported; other errors are returned.
  static llvm::Expected<std::unique_ptr<SourceProgram>>
  read(const CompilerOptions &options);

  /// The same of a text that is no file.
  static llvm::Expected<std::unique_ptr<SourceProgram>>
  read(const CompilerOptions &options,
       std::unique_ptr<llvm::MemoryBuffer> text);

  MLIRContext &getContext() { return context; }
  ModuleOp getModule() const { return *module; }

private:
  SourceProgram();

  MLIRContext context;
  std::shared_ptr<llvm::SourceMgr> sources;
  SourceMgrDiagnosticHandler diagnostics;
  OwningOpRef<ModuleOp> module;
};

/// Runs the phases up to `options.to`.
LogicalResult compileProgram(ModuleOp module, const PipelineOptions &options);

} // namespace mlir::fp8

#endif // FP8_TOOLS_SUPPORT_SOURCEPROGRAM_H

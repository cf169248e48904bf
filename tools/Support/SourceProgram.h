//===- SourceProgram.h - The program of a command line ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_SUPPORT_SOURCEPROGRAM_H
#define FP8_TOOLS_SUPPORT_SOURCEPROGRAM_H

#include "fp8/Compiler/Compile.h"
#include "fp8/Compiler/Source.h"
#include "fp8/Support/Shorten.h"
#include "mlir/IR/Diagnostics.h"

#include <memory>

namespace llvm::opt {
class Arg;
} // namespace llvm::opt

namespace mlir::fp8 {

/// The file, and what CompilerOptions.td and tools under the same keys have.
struct CompilerOptions {
  std::string file;
  CompileOptions pipeline;
  /// Empty without --fp8-remarks.
  std::string remarks;
  /// Shared objects with dialects, and recipes, of others.
  std::vector<std::string> dialectPlugins;
  /// What took how long is to be printed.
  bool timing = false;
};

/// Takes `arg` if it is an option of the compiler, called by its key, `fp8-KEY`
/// or, to turn it off, `no-KEY`; false for another.
llvm::Expected<bool> parseCompilerOption(const llvm::opt::Arg &arg,
                                         CompilerOptions &options);

/// A program and the context it lives in, which reports errors, with the lines
/// of the source, on the standard error, and writes remarks.
class SourceProgram {
public:
  /// Reads and verifies `options.file`.
  static llvm::Expected<std::unique_ptr<SourceProgram>>
  read(const CompilerOptions &options);

  /// The same of a text that is no file.
  static llvm::Expected<std::unique_ptr<SourceProgram>>
  read(const CompilerOptions &options,
       std::unique_ptr<llvm::MemoryBuffer> text);

  MLIRContext &getContext() { return *context; }
  ModuleOp getModule() const { return source.getModule(); }

private:
  SourceProgram(std::unique_ptr<MLIRContext> context, Source source);
  static llvm::Expected<std::unique_ptr<SourceProgram>>
  parse(const CompilerOptions &options, Source source);

  std::unique_ptr<MLIRContext> context;
  Source source;
  ShortLineStream errors;
  SourceMgrDiagnosticHandler diagnostics;
};

} // namespace mlir::fp8

#endif // FP8_TOOLS_SUPPORT_SOURCEPROGRAM_H

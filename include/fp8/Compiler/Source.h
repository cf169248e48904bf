//===- Source.h - A program as it is written --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_SOURCE_H
#define FP8_COMPILER_SOURCE_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/SourceMgr.h"

#include <memory>
#include <string>

namespace mlir::fp8 {

/// A context with the dialects of programs and of all that the pipeline makes
/// of them.
std::unique_ptr<MLIRContext> createContext();

/// The same, which knows the dialects, and their recipes, of these plugins too:
/// shared objects as `mlir-opt --load-dialect-plugin` takes them.
llvm::Expected<std::unique_ptr<MLIRContext>>
createContext(ArrayRef<std::string> plugins);

/// A program in MLIR's text or bytecode. Read first, so that a
/// SourceMgrDiagnosticHandler can show its lines when it is parsed, compiled
/// and whenever else its operations have errors.
class Source {
public:
  explicit Source(std::unique_ptr<llvm::MemoryBuffer> text);
  /// The file at `path`, "-" for the standard input.
  static llvm::Expected<Source> open(const std::string &path);

  llvm::SourceMgr &getManager() { return *manager; }

  /// Parses and verifies the program in `context`, which outlives this. Errors:
  /// ReportedError.
  llvm::Error parse(MLIRContext &context);

  /// The program, after it was parsed.
  ModuleOp getModule() const { return *module; }

private:
  std::shared_ptr<llvm::SourceMgr> manager;
  OwningOpRef<ModuleOp> module;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_SOURCE_H

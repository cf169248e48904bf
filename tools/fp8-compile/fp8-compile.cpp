//===- fp8-compile.cpp - Programs to shared objects -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "FatalErrors.h"
#include "Options.h"

#include "fp8/Compiler/Monitor.h"
#include "fp8/Support/OutputFile.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
using namespace mlir::fp8;

static llvm::Error writeProgram(ModuleOp module, const EmitOptions &options) {
  auto program = compileProgram(module, options.pipeline);
  if (!program)
    return program.takeError();
  options.pipeline.monitor->beginStep("link and write");
  return options.emit == Emit::SharedObject
             ? program->writeSharedObject(options.output, options.header)
             : program->writeObject(options.output, options.header);
}

static llvm::Error writeCode(ModuleOp module, CodeKind kind,
                             const EmitOptions &options) {
  auto code = emitCode(module, kind, options.pipeline);
  if (!code)
    return code.takeError();
  return writeOutputFile(options.output, *code);
}

static llvm::Error compileFile(EmitOptions options) {
  Monitor monitor("fp8-compile", options.timing);
  options.pipeline.monitor = &monitor;
  monitor.beginStep("parse");
  auto source = SourceProgram::read(options);
  if (!source)
    return source.takeError();
  ModuleOp module = (*source)->getModule();
  switch (options.emit) {
  case Emit::SharedObject:
  case Emit::Object:
    return writeProgram(module, options);
  case Emit::LLVM:
    return writeCode(module, CodeKind::LLVM, options);
  case Emit::PTX:
    return writeCode(module, CodeKind::PTX, options);
  case Emit::Cubin:
    return writeCode(module, CodeKind::Cubin, options);
  case Emit::MLIR:
    return writeCode(module, CodeKind::MLIR, options);
  }
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  handleFatalErrors("fp8-compile");
  auto options = parseOptions(argc, argv);
  if (options && options->help)
    return 0;
  return finish("fp8-compile",
                options ? compileFile(*options) : options.takeError());
}

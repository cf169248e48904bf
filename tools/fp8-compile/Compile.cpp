//===- Compile.cpp - From a program to what was asked for -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Compile.h"

#include "fp8/Pipelines/Passes.h"
#include "fp8/Support/OutputFile.h"
#include "fp8/Target/CPU/Object.h"
#include "fp8/Target/Program/Interface.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static llvm::Expected<std::string>
selectKernels(ModuleOp module, const CompileOptions &options) {
  SmallVector<gpu::BinaryOp> binaries(module.getOps<gpu::BinaryOp>());
  if (binaries.empty())
    return llvm::createStringError(
        "expected a program with kernels, but it has none");
  std::string names;
  llvm::raw_string_ostream os(names);
  llvm::interleaveComma(binaries, os,
                        [&](gpu::BinaryOp binary) { os << binary.getName(); });
  if (!options.kernels.empty())
    llvm::erase_if(binaries, [&](gpu::BinaryOp binary) {
      return binary.getName() != options.kernels;
    });
  if (binaries.empty())
    return llvm::createStringError("expected --kernels to be one of " + names +
                                   ", but got '" + options.kernels + "'");
  if (options.emit == Emit::Cubin && binaries.size() > 1)
    return llvm::createStringError("expected --kernels=NAME with --emit=cubin, "
                                   "since the program has " +
                                   names);
  std::string code;
  for (gpu::BinaryOp binary : binaries) {
    // Each is a module of its own, with a header.
    if (binaries.size() > 1)
      code += "// " + binary.getName().str() + "\n";
    code += cast<gpu::ObjectAttr>(binary.getObjects()[0]).getObject().str();
  }
  return code;
}

static llvm::Expected<bool> emitKernels(ModuleOp module,
                                        const CompileOptions &options) {
  PipelineOptions pipeline = options.pipeline;
  pipeline.to = stringifyPhase(Phase::Kernels).str();
  if (failed(compileProgram(module, pipeline)))
    return false;
  PassManager pm(module->getContext());
  pm.addPass(createStripAttributesPass());
  SerializeKernelsPassOptions serialize;
  serialize.format = options.emit == Emit::PTX ? "ptx" : "cubin";
  serialize.chip = pipeline.target;
  pm.addPass(createSerializeKernelsPass(serialize));
  if (failed(pm.run(module)))
    return false;
  auto code = selectKernels(module, options);
  if (!code)
    return code.takeError();
  if (llvm::Error error = writeOutputFile(options.output, *code))
    return error;
  return true;
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static llvm::Error writeProgram(std::string code,
                                const ProgramInterface &program,
                                const CompileOptions &options) {
  std::string header;
  if (!options.header.empty()) {
    auto text = getCHeader(program, llvm::sys::path::filename(options.header));
    if (!text)
      return text.takeError();
    header = std::move(*text);
  }
  bool isShared = options.emit == Emit::SharedObject;
  if (isShared) {
    auto linked = linkSharedObject(
        code, llvm::sys::path::filename(options.output), options.link);
    if (!linked)
      return linked.takeError();
    code = std::move(*linked);
  }
  // The header last: a build that waits for it finds the program.
  SmallVector<OutputFile> files{{options.output, code, isShared}};
  if (!options.header.empty())
    files.push_back({options.header, header});
  return writeOutputFiles(files);
}

static llvm::Expected<bool> emitProgram(ModuleOp module,
                                        const CompileOptions &options) {
  PipelineOptions pipeline = options.pipeline;
  if (pipeline.functionalState) {
    // The tensors of the state are part of the interface.
    pipeline.to = stringifyPhase(Phase::Scaling).str();
    if (failed(compileProgram(module, pipeline)))
      return false;
    pipeline.from = stringifyPhase(Phase::Fusion).str();
    pipeline.to = options.pipeline.to;
  }
  FailureOr<ProgramInterface> program =
      ProgramInterface::create(module, options.name, options.pipeline);
  if (failed(program))
    return false;
  auto processor = Processor::get(options.cpu);
  if (!processor)
    return processor.takeError();
  program->processor = std::move(*processor);
  if (failed(compileProgram(module, pipeline)) ||
      failed(program->complete(module)))
    return false;
  ObjectOptions object;
  object.cpu = options.cpu;
  object.emitLLVM = options.emit == Emit::LLVM;
  object.addInterface = [&](llvm::Module &translated) {
    addCInterface(translated, *program);
  };
  auto code = emitObject(module, object);
  if (!code)
    return code.takeError();
  if (llvm::Error error = writeProgram(std::move(*code), *program, options))
    return error;
  return true;
}

llvm::Expected<bool> mlir::fp8::compileFile(const CompileOptions &options) {
  auto source = SourceProgram::read(options);
  if (!source)
    return source.takeError();
  if (!*source)
    return false;
  ModuleOp module = (*source)->getModule();
  switch (options.emit) {
  case Emit::PTX:
  case Emit::Cubin:
    return emitKernels(module, options);
  case Emit::MLIR: {
    if (failed(compileProgram(module, options.pipeline)))
      return false;
    std::string text;
    llvm::raw_string_ostream(text) << *module << '\n';
    if (llvm::Error error = writeOutputFile(options.output, text))
      return error;
    return true;
  }
  default:
    return emitProgram(module, options);
  }
}

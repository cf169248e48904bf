//===- EmitKernels.cpp - The kernels of a program -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitKernels.h"

#include "fp8/Pipelines/Passes.h"
#include "fp8/Support/ReportedError.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// The code of the modules that `options` ask for.
static llvm::Expected<std::string> selectKernels(ModuleOp module, CodeKind kind,
                                                 StringRef name) {
  SmallVector<gpu::BinaryOp> binaries(module.getOps<gpu::BinaryOp>());
  if (binaries.empty())
    return llvm::createStringError(
        "expected a program with kernels, but it has none");
  std::string names;
  llvm::raw_string_ostream os(names);
  llvm::interleaveComma(binaries, os,
                        [&](gpu::BinaryOp binary) { os << binary.getName(); });
  if (!name.empty())
    llvm::erase_if(binaries, [&](gpu::BinaryOp binary) {
      return binary.getName() != name;
    });
  if (binaries.empty())
    return llvm::createStringError("expected kernels to be one of " + names +
                                   ", but got '" + name + "'");
  if (kind == CodeKind::Cubin && binaries.size() > 1)
    return llvm::createStringError(
        "expected kernels=NAME for a cubin, since the program has " + names);
  std::string code;
  for (gpu::BinaryOp binary : binaries) {
    // Each is a module of its own, with a header.
    if (binaries.size() > 1)
      code += "// " + binary.getName().str() + "\n";
    code += cast<gpu::ObjectAttr>(binary.getObjects()[0]).getObject().str();
  }
  return code;
}

llvm::Expected<std::string> fp8::emitKernels(ModuleOp module, CodeKind kind,
                                             const CompileOptions &options) {
  PipelineOptions pipeline = options;
  pipeline.to = stringifyPhase(Phase::Kernels).str();
  if (failed(runPipeline(module, pipeline)))
    return makeReportedError();
  PassManager pm(module->getContext());
  pm.addPass(createStripAttributesPass());
  SerializeKernelsPassOptions serialize;
  serialize.format = kind == CodeKind::PTX ? "ptx" : "cubin";
  serialize.chip = pipeline.target;
  pm.addPass(createSerializeKernelsPass(serialize));
  if (failed(pm.run(module)))
    return makeReportedError();
  return selectKernels(module, kind, options.kernels);
}

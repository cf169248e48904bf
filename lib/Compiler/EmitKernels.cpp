//===- EmitKernels.cpp - The kernels of a program -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EmitKernels.h"

#include "fp8/Compiler/Monitor.h"
#include "fp8/Pipelines/Passes.h"
#include "fp8/Support/ReportedError.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::fp8;

llvm::Expected<std::string> fp8::emitKernels(ModuleOp module, CodeKind kind,
                                             const CompileOptions &options) {
  PipelineOptions pipeline = options;
  pipeline.to = stringifyPhase(Phase::Kernels).str();
  if (failed(runPipeline(module, pipeline, options.monitor)))
    return makeReportedError();
  PassManager pm(module->getContext());
  pm.addPass(createStripAttributesPass());
  SerializeKernelsPassOptions serialize;
  serialize.format = kind == CodeKind::PTX ? "ptx" : "cubin";
  serialize.cache = options.kernelCache;
  pm.addPass(createSerializeKernelsPass(serialize));
  if (options.monitor) {
    options.monitor->beginStep("serialize kernels");
    options.monitor->observe(pm);
  }
  if (failed(pm.run(module)))
    return makeReportedError();
  // Kernels have one module, for they were not split.
  auto binaries = module.getOps<gpu::BinaryOp>();
  if (binaries.empty())
    return llvm::createStringError(
        "expected a program with kernels, but it has none");
  gpu::BinaryOp binary = *binaries.begin();
  return cast<gpu::ObjectAttr>(binary.getObjects()[0]).getObject().str();
}

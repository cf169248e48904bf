//===- Candidates.cpp - Every kernel that may compute a matmul ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Candidates.h"

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Kernels/Heuristics.h"
#include "fp8/Kernels/MatmulKernel.h"
#include "fp8/Kernels/Target.h"
#include "fp8/Pipelines/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace mlir::fp8;

int64_t fp8::getTiles(const MatmulSpec &spec, GemmConfigAttr config) {
  return llvm::divideCeil(spec.m, config.getClusterM()) *
         llvm::divideCeil(spec.n, config.getClusterN()) * spec.batch;
}

static Candidate readLaunch(StringRef kernel, DictionaryAttr launch) {
  auto number = [&](StringRef key) {
    auto value = launch.getAs<IntegerAttr>(key);
    return value ? value.getInt() : 0;
  };
  Candidate candidate;
  candidate.kernel = kernel;
  candidate.config = launch.getAs<GemmConfigAttr>("config");
  for (auto param : launch.getAs<ArrayAttr>("params").getAsRange<StringAttr>())
    candidate.params.push_back(param.str());
  candidate.threads = number("threads");
  candidate.sharedBytes = number("shared_bytes");
  candidate.storeBytes = number("store_bytes");
  candidate.workspaceBytesPerTile = number("workspace_bytes_per_tile");
  return candidate;
}

/// All that fit, but for parts of K where there are tiles enough without.
static SmallVector<GemmConfigAttr> getConfigs(const TunedMatmul &matmul) {
  SmallVector<GemmConfigAttr> configs =
      getMatmulCandidatesSM90(matmul.op->getContext(), matmul.spec);
  llvm::erase_if(configs, [&](GemmConfigAttr config) {
    return config.getSplitK() > 1 &&
           getTiles(matmul.spec, config) >= kSM90.multiprocessors;
  });
  return configs;
}

/// Puts the kernels of all configs into `module`.
static LogicalResult buildKernels(const TunedMatmul &matmul,
                                  ArrayRef<GemmConfigAttr> configs,
                                  gpu::GPUModuleOp module) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  for (GemmConfigAttr config : configs) {
    std::string reason;
    if (failed(buildMatmulSM90(builder, matmul.op->getLoc(), matmul.spec,
                               config, getMatmulKernelName(matmul.spec, config),
                               reason)))
      return matmul.op->emitOpError() << reason;
  }
  return success();
}

FailureOr<Candidates> fp8::buildCandidates(const TunedMatmul &matmul) {
  MLIRContext *context = matmul.op->getContext();
  PassManager pm(context);
  pm.addPass(createSerializeKernelsPass());
  context->loadDialect<arith::ArithDialect, gpu::GPUDialect, LLVM::LLVMDialect,
                       math::MathDialect, NVVM::NVVMDialect, scf::SCFDialect>();
  Location loc = matmul.op->getLoc();
  OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  auto kernels = gpu::GPUModuleOp::create(builder, loc, "fp8_kernels");
  SmallVector<GemmConfigAttr> configs = getConfigs(matmul);
  if (failed(buildKernels(matmul, configs, kernels)) || failed(pm.run(*module)))
    return failure();

  auto binary = *module->getOps<gpu::BinaryOp>().begin();
  auto object = cast<gpu::ObjectAttr>(binary.getObjects()[0]);
  Candidates candidates;
  candidates.code = object.getObject().str();
  for (gpu::KernelMetadataAttr kernel : object.getKernels())
    candidates.list.push_back(
        readLaunch(kernel.getName(), kernel.getMetadata()));
  // The order of the heuristics, which decides where times are equal.
  llvm::sort(candidates.list, [&](const Candidate &a, const Candidate &b) {
    return llvm::find(configs, a.config) < llvm::find(configs, b.config);
  });
  return candidates;
}

//===- Translations.cpp - Kernels to files --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/GPU/IR/LaunchJSON.h"
#include "fp8/GPU/Transforms/Passes.h"
#include "fp8/InitAll.h"
#include "fp8/Target/NVPTX/PTX.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

/// The module's kernels, lowered.
static FailureOr<gpu::GPUModuleOp> lowerKernels(Operation *op) {
  gpu::GPUModuleOp kernels;
  auto result = op->walk([&](gpu::GPUModuleOp module) {
    if (kernels)
      return WalkResult::interrupt();
    kernels = module;
    return WalkResult::advance();
  });
  if (!kernels || result.wasInterrupted())
    return emitError(op->getLoc(), "expected one gpu.module, but got ")
           << (kernels ? "several" : "none");
  PassManager pm(op->getContext(), gpu::GPUModuleOp::getOperationName());
  buildLowerKernelsPipeline(pm);
  if (failed(pm.run(kernels)))
    return failure();
  return kernels;
}

static FailureOr<PTXOptions> getOptions(Operation *op) {
  auto target = op->getAttrOfType<GPUTargetAttr>(kTargetAttrName);
  if (!target)
    return emitError(op->getLoc(), "expected a module with the attribute '")
           << kTargetAttrName << "', which fp8-set-target gives it";
  return PTXOptions(target);
}

static LogicalResult translateToPTX(Operation *op, raw_ostream &os) {
  FailureOr<PTXOptions> options = getOptions(op);
  if (failed(options))
    return failure();
  FailureOr<gpu::GPUModuleOp> kernels = lowerKernels(op);
  if (failed(kernels))
    return failure();
  FailureOr<std::string> ptx = emitPTX(*kernels, *options);
  if (failed(ptx))
    return failure();
  os << *ptx;
  return success();
}

static LogicalResult translateToCubin(Operation *op, raw_ostream &os) {
  std::string ptx, log;
  llvm::raw_string_ostream stream(ptx);
  if (failed(translateToPTX(op, stream)))
    return failure();
  FailureOr<SmallVector<char>> cubin = assemblePTX(
      ptx, *getOptions(op), log, [&] { return emitError(op->getLoc()); });
  if (failed(cubin))
    return failure();
  os.write(cubin->data(), cubin->size());
  return success();
}

/// By the kernel's name, how it was built and the launch as the runtime reads
/// it.
static LogicalResult translateToJSON(Operation *op, raw_ostream &os) {
  llvm::json::OStream json(os, /*IndentSize=*/1);
  json.object([&] {
    op->walk([&](LLVM::LLVMFuncOp function) {
      auto launch = function->getAttrOfType<LaunchAttr>(kLaunchAttrName);
      if (!launch)
        return;
      json.attributeObject(function.getName(), [&] {
        if (Attribute config = function->getAttr(kConfigAttrName)) {
          std::string text;
          llvm::raw_string_ostream(text) << config;
          json.attribute("config", text);
        }
        json.attributeBegin("launch");
        json.rawValue(getLaunchJSON(launch));
        json.attributeEnd();
      });
    });
  });
  os << '\n';
  return success();
}

void fp8::registerKernelTranslations() {
  auto registerDialects = [](DialectRegistry &registry) {
    fp8::registerAllDialects(registry);
    registerAllGPUToLLVMIRTranslations(registry);
  };
  TranslateFromMLIRRegistration("kernels-to-ptx",
                                "Translate the kernels of a gpu.module to PTX",
                                translateToPTX, registerDialects);
  TranslateFromMLIRRegistration(
      "kernels-to-cubin", "Assemble the kernels of a gpu.module with ptxas",
      translateToCubin, registerDialects);
  TranslateFromMLIRRegistration(
      "kernels-to-json", "Describe the launches of a gpu.module's kernels",
      translateToJSON, registerDialects);
}

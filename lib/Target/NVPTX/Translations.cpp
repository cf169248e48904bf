//===- Translations.cpp - Kernels to files --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Dialect.h"
#include "fp8/InitAll.h"
#include "fp8/Kernels/Passes.h"
#include "fp8/Target/NVPTX/PTX.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/All.h"
#include "mlir/Tools/mlir-translate/Translation.h"
#include "llvm/Support/FormatVariadic.h"
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
    return op->emitError("expected one gpu.module, but got ")
           << (kernels ? "several" : "none");
  PassManager pm(op->getContext(), gpu::GPUModuleOp::getOperationName());
  buildLowerKernelsPipeline(pm);
  if (failed(pm.run(kernels)))
    return failure();
  return kernels;
}

static LogicalResult translateToPTX(Operation *op, raw_ostream &os) {
  FailureOr<gpu::GPUModuleOp> kernels = lowerKernels(op);
  if (failed(kernels))
    return failure();
  FailureOr<std::string> ptx = emitPTX(*kernels);
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
  FailureOr<SmallVector<char>> cubin =
      assemblePTX(ptx, PTXOptions(), log, [&] { return op->emitError(); });
  if (failed(cubin))
    return failure();
  os.write(cubin->data(), cubin->size());
  return success();
}

static llvm::json::Value toJSON(Attribute attribute) {
  if (auto integer = dyn_cast<IntegerAttr>(attribute))
    return integer.getInt();
  if (auto string = dyn_cast<StringAttr>(attribute))
    return string.getValue();
  if (auto array = dyn_cast<ArrayAttr>(attribute)) {
    llvm::json::Array values;
    for (Attribute value : array)
      values.push_back(toJSON(value));
    return values;
  }
  std::string text;
  llvm::raw_string_ostream(text) << attribute;
  return text;
}

/// What fp8.launch says of each kernel, as JSON.
static LogicalResult translateToJSON(Operation *op, raw_ostream &os) {
  llvm::json::Object kernels;
  op->walk([&](LLVM::LLVMFuncOp function) {
    auto launch = function->getAttrOfType<DictionaryAttr>(kLaunchAttrName);
    if (!launch)
      return;
    llvm::json::Object entries;
    for (NamedAttribute entry : launch)
      entries[entry.getName().strref()] = toJSON(entry.getValue());
    kernels[function.getName()] = std::move(entries);
  });
  os << llvm::formatv("{0:2}", llvm::json::Value(std::move(kernels))) << '\n';
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

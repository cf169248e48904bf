//===- Engine.cpp - Compiling and running on this machine -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/CPU/Engine.h"
#include "Host.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::fp8;

llvm::Expected<std::unique_ptr<CPUEngine>>
CPUEngine::create(ModuleOp module, const CPUEngineOptions &options) {
  if (llvm::Error error = prepareTranslation(module))
    return error;
  auto machine = createHostMachine(options.optLevel);
  if (!machine)
    return machine.takeError();
  auto optimize = makeOptimizingTransformer(options.optLevel, /*sizeLevel=*/0,
                                            machine->get());
  // ExecutionEngine drops what a transformer returns.
  llvm::Error failure = llvm::Error::success();
  SmallVector<std::pair<std::string, void *>> callees;
  auto transform = [&](llvm::Module *llvmModule) -> llvm::Error {
    failure = llvm::joinErrors(std::move(failure), optimize(llvmModule));
    failure = llvm::joinErrors(std::move(failure), checkSymbols(*llvmModule));
    for (const llvm::Function &function : *llvmModule)
      if (function.isDeclaration() && !function.isIntrinsic())
        if (void *address = findSymbol(function.getName()))
          callees.emplace_back(function.getName(), address);
    return llvm::Error::success();
  };

  ExecutionEngineOptions engineOptions;
  engineOptions.transformer = transform;
  engineOptions.enableGDBNotificationListener = false;
  engineOptions.enablePerfNotificationListener = false;
  auto engine =
      ExecutionEngine::create(module, engineOptions, std::move(*machine));
  if (!engine)
    return llvm::joinErrors(std::move(failure), engine.takeError());
  if (failure)
    return failure;
  // The engine itself sees no more than what the program is linked to.
  (*engine)->registerSymbols([&](llvm::orc::MangleAndInterner mangle) {
    llvm::orc::SymbolMap symbols;
    for (const auto &[name, address] : callees)
      symbols[mangle(name)] = {llvm::orc::ExecutorAddr::fromPtr(address),
                               llvm::JITSymbolFlags::Exported};
    return symbols;
  });
  (*engine)->initialize();
  return std::unique_ptr<CPUEngine>(new CPUEngine(std::move(*engine)));
}

CPUEngine::CPUEngine(std::unique_ptr<ExecutionEngine> engine)
    : engine(std::move(engine)) {}

CPUEngine::~CPUEngine() = default;

llvm::Expected<CPUEngine::Function> CPUEngine::lookup(StringRef name) const {
  return engine->lookupPacked(("_mlir_ciface_" + name).str());
}

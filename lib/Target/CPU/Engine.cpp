//===- Engine.cpp - Compiling and running on this machine -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/CPU/Engine.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/ExecutionEngine/ExecutionEngine.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::fp8;

/// The machine we run on, less what would change results.
static llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(unsigned optLevel) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  builder->setCodeGenOptLevel(llvm::CodeGenOpt::getLevel(optLevel).value_or(
      llvm::CodeGenOptLevel::Aggressive));
  builder->getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  // vcvtneps2bf16 takes subnormal numbers for zero, whatever MXCSR says; LLVM
  // selects it for every fptrunc to bfloat.
  if (builder->getTargetTriple().isX86()) {
    builder->getFeatures().AddFeature("avx512bf16", false);
    builder->getFeatures().AddFeature("avxneconvert", false);
    builder->getFeatures().AddFeature("avx10.2", false);
  }
  return builder->createTargetMachine();
}

/// LLVM's JIT prints unresolved symbols and returns another error; this names
/// them first.
static llvm::Error checkSymbols(const llvm::Module &module) {
  // Makes the process itself searchable.
  llvm::sys::DynamicLibrary::LoadLibraryPermanently(nullptr);
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty() &&
        !llvm::sys::DynamicLibrary::SearchForAddressOfSymbol(
            function.getName().str()))
      return llvm::createStringError(
          "expected function '" + function.getName() +
          "' to be defined in the program or the runtime, but it is neither");
  return llvm::Error::success();
}

/// The translation would report the same, but twice.
static llvm::Error checkDialects(ModuleOp module) {
  Operation *culprit = nullptr;
  module.walk([&](Operation *op) {
    if (isa<ModuleOp>(op) ||
        isa_and_present<LLVM::LLVMDialect>(op->getDialect()))
      return WalkResult::advance();
    culprit = op;
    return WalkResult::interrupt();
  });
  if (!culprit)
    return llvm::Error::success();
  return llvm::createStringError(
      "expected only operations of the LLVM dialect, but got '" +
      culprit->getName().getStringRef() + "'");
}

llvm::Expected<std::unique_ptr<CPUEngine>>
CPUEngine::create(ModuleOp module, const CPUEngineOptions &options) {
  if (llvm::Error error = checkDialects(module))
    return error;
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  module->getContext()->appendDialectRegistry(registry);

  auto machine = createTargetMachine(options.optLevel);
  if (!machine)
    return machine.takeError();
  auto optimize = makeOptimizingTransformer(options.optLevel, /*sizeLevel=*/0,
                                            machine->get());
  // ExecutionEngine drops what a transformer returns.
  llvm::Error failure = llvm::Error::success();
  auto transform = [&](llvm::Module *llvmModule) -> llvm::Error {
    failure = llvm::joinErrors(std::move(failure), optimize(llvmModule));
    failure = llvm::joinErrors(std::move(failure), checkSymbols(*llvmModule));
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
  (*engine)->registerSymbols([&](llvm::orc::MangleAndInterner mangle) {
    llvm::orc::SymbolMap symbols;
    auto define = [&](StringRef name, auto *function) {
      if (function)
        symbols[mangle(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                                 llvm::JITSymbolFlags::Exported};
    };
    define("puts", options.onMessage);
    define("abort", options.onAbort);
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

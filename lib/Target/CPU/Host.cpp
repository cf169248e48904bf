//===- Host.cpp - The machine that programs are compiled for --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Host.h"
#include "fp8/Target/CPU/Processor.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Scalar/LoopIdiomRecognize.h"

#include <dlfcn.h>

using namespace mlir;
using namespace mlir::fp8;

void fp8::initializeHost() {
  static const bool isDone = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    // LLVM 22 looks for CRCs in loops with a few iterations, by a walk over the
    // operands that takes each as often as there are paths to it. The
    // arithmetic of a rounding has more than can be walked.
    llvm::DisableLIRP::HashRecognize = true;
    return true;
  }();
  (void)isDone;
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
fp8::createHostMachine(unsigned optLevel,
                       std::optional<llvm::Reloc::Model> relocation,
                       StringRef cpu) {
  initializeHost();
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder)
    return builder.takeError();
  if (cpu != "native") {
    auto processor = Processor::get(cpu);
    if (!processor)
      return processor.takeError();
    builder->setCPU(processor->name);
    builder->getFeatures() = llvm::SubtargetFeatures();
  }
  builder->setCodeGenOptLevel(llvm::CodeGenOpt::getLevel(optLevel).value_or(
      llvm::CodeGenOptLevel::Aggressive));
  builder->setRelocationModel(relocation);
  // Weights of a large program would not be within 2 GiB of its code.
  if (relocation &&
      builder->getTargetTriple().getArch() == llvm::Triple::x86_64)
    builder->setCodeModel(llvm::CodeModel::Medium);
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

llvm::Error fp8::prepareTranslation(ModuleOp module) {
  // The translation itself would report a foreign operation twice.
  Operation *culprit = nullptr;
  module.walk([&](Operation *op) {
    if (isa<ModuleOp>(op) ||
        isa_and_present<LLVM::LLVMDialect>(op->getDialect()))
      return WalkResult::advance();
    culprit = op;
    return WalkResult::interrupt();
  });
  if (culprit)
    return llvm::createStringError(
        "expected only operations of the LLVM dialect, but got '" +
        culprit->getName().getStringRef() + "'");
  DialectRegistry registry;
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  module->getContext()->appendDialectRegistry(registry);
  return llvm::Error::success();
}

/// The libraries that programs call, as far as they are loaded. What a library
/// brings in that was loaded for itself (dlopen without RTLD_GLOBAL, as Python
/// loads extensions) the process does not show.
static SmallVector<void *> openLibraries() {
  llvm::sys::DynamicLibrary::LoadLibraryPermanently(nullptr);
  SmallVector<void *> libraries;
  for (const char *name : {"libfp8rt.so", "libm.so.6"})
    if (void *library = dlopen(name, RTLD_NOW | RTLD_NOLOAD))
      libraries.push_back(library);
  return libraries;
}

void *fp8::findSymbol(StringRef name) {
  static const SmallVector<void *> libraries = openLibraries();
  std::string symbol = name.str();
  void *address = llvm::sys::DynamicLibrary::SearchForAddressOfSymbol(symbol);
  for (void *library : libraries)
    if (!address)
      address = dlsym(library, symbol.c_str());
  return address;
}

llvm::Error fp8::checkSymbols(const llvm::Module &module) {
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty() && !findSymbol(function.getName()))
      return llvm::createStringError(
          "expected function '" + function.getName() +
          "' to be defined in the program or the runtime, but it is neither");
  return llvm::Error::success();
}

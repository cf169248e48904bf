//===- Object.cpp - Object files for this machine -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Target/CPU/Object.h"
#include "FlattenCalls.h"
#include "Host.h"
#include "SplitFunctions.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Passes/StandardInstrumentations.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;
using namespace mlir::fp8;

/// Makes memory of a size that is known part of the frame, wherever a function
/// asks for it: in a loop, as for an extent whose dimension is a value, it is
/// given back with the frame alone, and fills the stack. Optimizations leave
/// none of it.
static void hoistAllocations(llvm::Module &module) {
  for (llvm::Function &function : module) {
    SmallVector<llvm::AllocaInst *> found;
    bool restoresStack = false;
    for (llvm::Instruction &inst : llvm::instructions(function)) {
      if (auto *intrinsic = dyn_cast<llvm::IntrinsicInst>(&inst))
        restoresStack |=
            intrinsic->getIntrinsicID() == llvm::Intrinsic::stackrestore;
      auto *alloca = dyn_cast<llvm::AllocaInst>(&inst);
      if (alloca && isa<llvm::Constant>(alloca->getArraySize()) &&
          !alloca->getParent()->isEntryBlock())
        found.push_back(alloca);
    }
    if (restoresStack)
      continue;
    for (llvm::AllocaInst *alloca : found)
      alloca->moveBefore(function.getEntryBlock().begin());
  }
}

/// LLVM's own pipeline, which leaves functions alone that say so.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     unsigned level) {
  llvm::OptimizationLevel levels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::PassInstrumentationCallbacks callbacks;
  llvm::OptNoneInstrumentation optNone(/*DebugLogging=*/false);
  optNone.registerCallbacks(callbacks);
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = tuning.LoopInterleaving = tuning.LoopVectorization =
      tuning.SLPVectorization = true;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::OptimizationLevel chosen = levels[std::min(level, 3u)];
  if (chosen == llvm::OptimizationLevel::O0)
    hoistAllocations(module);
  llvm::ModulePassManager passes =
      chosen == llvm::OptimizationLevel::O0
          ? builder.buildO0DefaultPipeline(chosen)
          : builder.buildPerModuleDefaultPipeline(chosen);
  passes.run(module, modules);
}

llvm::Expected<std::string> fp8::emitObject(ModuleOp module,
                                            const ObjectOptions &options) {
  auto beginStep = [&](StringRef step) {
    if (options.beginStep)
      options.beginStep(step);
  };
  beginStep("translate to LLVM IR");
  if (llvm::Error error = prepareTranslation(module))
    return error;
  auto machine =
      createHostMachine(options.optLevel, llvm::Reloc::PIC_, options.cpu);
  if (!machine)
    return machine.takeError();
  // What is larger goes where addresses of 64 bits reach it.
  (*machine)->setLargeDataThreshold(65536);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> translated =
      translateModuleToLLVMIR(module, context);
  if (!translated)
    return llvm::createStringError("the module does not translate to LLVM IR");
  if (llvm::Error error = checkSymbols(*translated))
    return error;
  if (options.addInterface)
    options.addInterface(*translated);
  translated->setTargetTriple((*machine)->getTargetTriple());
  translated->setDataLayout((*machine)->createDataLayout());
  beginStep("optimize LLVM IR");
  flattenCalls(*translated);
  cutLongFunctions(*translated, **machine);
  optimize(*translated, **machine, options.optLevel);
  SmallVector<char, 0> code;
  llvm::raw_svector_ostream os(code);
  llvm::legacy::PassManager pm;
  if (options.emitLLVM)
    translated->print(os, /*AAW=*/nullptr);
  else if ((*machine)->addPassesToEmitFile(pm, os, /*DwoOut=*/nullptr,
                                           llvm::CodeGenFileType::ObjectFile))
    return llvm::createStringError("this machine's code generator writes no "
                                   "object files");
  beginStep("generate machine code");
  pm.run(*translated);
  return std::string(code.begin(), code.end());
}

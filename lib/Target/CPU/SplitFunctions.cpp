//===- SplitFunctions.cpp - Long functions in pieces ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SplitFunctions.h"
#include "mlir/Support/LLVM.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/ValueHandle.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/DeadArgumentElimination.h"
#include "llvm/Transforms/Utils/CodeExtractor.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace mlir;
using namespace mlir::fp8;

/// Instruction selection, scheduling, the two-address pass and splitting of
/// live ranges take more than linear time in the length of a block; up to this
/// length it does not show. A call costs nothing beside what so many
/// instructions do, most of which are calls themselves.
static constexpr unsigned maxLength = 1024;

/// A part that is shorter is not worth a function.
static constexpr unsigned minLength = 256;

/// What a part gives to those that follow goes through memory. A function that
/// takes apart what it is called with gives more than it does.
static constexpr unsigned maxOutputs = 64;

/// Whether `inst` must stay in the frame of its function.
static bool belongsToFrame(const llvm::Instruction &inst) {
  const auto *intrinsic = dyn_cast<llvm::IntrinsicInst>(&inst);
  return isa<llvm::AllocaInst>(inst) ||
         (intrinsic &&
          (intrinsic->getIntrinsicID() == llvm::Intrinsic::stacksave ||
           intrinsic->getIntrinsicID() == llvm::Intrinsic::stackrestore));
}

/// Memory of a size that is known is part of the frame wherever the first block
/// asks for it; at its start it cuts nothing short.
static void hoistFrame(llvm::BasicBlock &entry) {
  llvm::Instruction *start = &*entry.begin();
  for (llvm::Instruction &inst : llvm::make_early_inc_range(entry))
    if (auto *alloca = dyn_cast<llvm::AllocaInst>(&inst))
      if (alloca != start && isa<llvm::Constant>(alloca->getArraySize()))
        alloca->moveBefore(start->getIterator());
}

namespace {
/// Instructions of one block, the last not among them.
struct Part {
  llvm::BasicBlock::iterator begin, end;
};
} // namespace

/// What of `block` can be functions. The terminator stays.
static SmallVector<Part> findParts(llvm::BasicBlock &block) {
  SmallVector<Part> parts;
  auto begin = block.getFirstNonPHIIt(), last = std::prev(block.end());
  unsigned length = 0;
  for (auto it = begin;; ++it) {
    bool isBarrier = it == last || belongsToFrame(*it);
    if (isBarrier || length == maxLength) {
      if (length >= minLength)
        parts.push_back({begin, it});
      begin = isBarrier ? std::next(it) : it;
      length = 0;
    }
    if (it == last)
      return parts;
    length += !isBarrier;
  }
}

/// Makes functions of the parts of `function`'s long blocks, and adds them and
/// `function` to `cut`.
static void cutFunction(llvm::Function &function,
                        SmallVectorImpl<llvm::WeakTrackingVH> &cut) {
  if (function.hasOptNone())
    return;
  SmallVector<llvm::BasicBlock *> longBlocks;
  for (llvm::BasicBlock &block : function)
    if (block.size() > maxLength)
      longBlocks.push_back(&block);
  if (longBlocks.empty())
    return;
  hoistFrame(function.getEntryBlock());
  SmallVector<llvm::BasicBlock *> pieces;
  for (llvm::BasicBlock *block : longBlocks) {
    SmallVector<Part> parts = findParts(*block);
    // From the end, since what follows a cut moves into another block.
    for (const Part &part : llvm::reverse(parts)) {
      // Unless the next part begins there.
      if (part.end->getParent() == block)
        block->splitBasicBlock(part.end);
      pieces.push_back(block->splitBasicBlock(part.begin));
    }
  }
  llvm::CodeExtractorAnalysisCache cache(function);
  for (llvm::BasicBlock *piece : llvm::reverse(pieces)) {
    llvm::CodeExtractor extractor(piece, /*DT=*/nullptr,
                                  /*AggregateArgs=*/false, /*BFI=*/nullptr,
                                  /*BPI=*/nullptr, /*AC=*/nullptr,
                                  /*AllowVarArgs=*/false,
                                  /*AllowAlloca=*/false,
                                  /*AllocationBlock=*/nullptr, "part");
    llvm::SetVector<llvm::Value *> inputs, outputs;
    extractor.findInputsOutputs(inputs, outputs, /*Allocas=*/{});
    if (outputs.size() > maxOutputs)
      continue;
    if (llvm::Function *part = extractor.extractCodeRegion(cache)) {
      part->addFnAttr(llvm::Attribute::NoInline);
      cut.push_back(part);
    }
  }
  cut.push_back(&function);
}

/// Drops what functions that nobody else calls do not use: a tensor is seven
/// arguments, most of them known, and LLVM goes through all that a function has
/// whenever it learns something about one.
static void dropDeadArguments(llvm::Module &module,
                              llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::DeadArgumentEliminationPass().run(module, modules);
}

void fp8::cutLongFunctions(llvm::Module &module, llvm::TargetMachine &machine) {
  // Which become others as they lose arguments.
  SmallVector<llvm::WeakTrackingVH> cut;
  // Not what is cut out, which is as long as a part may be.
  SmallVector<llvm::Function *> functions(llvm::make_pointer_range(module));
  for (llvm::Function *function : functions)
    cutFunction(*function, cut);
  dropDeadArguments(module, machine);
  // Argument promotion compares each argument with each load that follows it,
  // and other passes between functions do so in effect: they leave alone what
  // may have users that they do not see.
  SmallVector<llvm::GlobalValue *> used;
  for (const llvm::WeakTrackingVH &function : cut)
    if (auto *known = dyn_cast_if_present<llvm::Function>(
            static_cast<llvm::Value *>(function)))
      used.push_back(known);
  llvm::appendToCompilerUsed(module, used);
}

//===- MergeKernels.cpp - Kernels that do the same are one ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSymbols.h"
#include "fp8/GPU/Transforms/Passes.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-merge-kernels"

namespace mlir::fp8 {
#define GEN_PASS_DEF_MERGEKERNELSPASS
#include "fp8/GPU/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct MergeKernelsPass : fp8::impl::MergeKernelsPassBase<MergeKernelsPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// The same for equal kernels. Which values an operation uses is left to
/// areEqual.
static llvm::hash_code getHash(FunctionOpInterface kernel) {
  llvm::hash_code hash = hash_value(kernel.getFunctionType());
  kernel.getFunctionBody().walk([&](Operation *op) {
    hash =
        llvm::hash_combine(hash, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return hash;
}

/// Whether all but the names is the same.
static bool areEqual(FunctionOpInterface a, FunctionOpInterface b) {
  auto getAttributes = [](FunctionOpInterface kernel) {
    NamedAttrList attributes(kernel->getAttrDictionary());
    attributes.erase(SymbolTable::getSymbolAttrName());
    return attributes.getDictionary(kernel->getContext());
  };
  return a->getName() == b->getName() && getAttributes(a) == getAttributes(b) &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getFunctionBody(), &b.getFunctionBody(),
             OperationEquivalence::IgnoreLocations);
}

void MergeKernelsPass::runOnOperation() {
  DenseMap<SymbolRefAttr, SymbolRefAttr> merged;
  for (auto module : getOperation().getOps<gpu::GPUModuleOp>()) {
    llvm::DenseMap<size_t, SmallVector<FunctionOpInterface, 1>> kept;
    for (FunctionOpInterface kernel : getKernels(module)) {
      auto &candidates = kept[getHash(kernel)];
      auto *equal = llvm::find_if(candidates, [&](FunctionOpInterface other) {
        return areEqual(kernel, other);
      });
      if (equal == candidates.end()) {
        candidates.push_back(kernel);
        continue;
      }
      LDBG() << SymbolTable::getSymbolName(kernel) << " is "
             << SymbolTable::getSymbolName(*equal);
      merged[getKernelReference(kernel)] = getKernelReference(*equal);
      kernel->erase();
      ++numMerged;
    }
  }
  if (merged.empty())
    return markAllAnalysesPreserved();
  replaceKernelReferences(getOperation(), merged);
}

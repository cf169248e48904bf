//===- KernelSymbols.cpp - Kernels and who refers to them -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "KernelSymbols.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;

SmallVector<FunctionOpInterface> fp8::getKernels(gpu::GPUModuleOp module) {
  auto isKernel = [](FunctionOpInterface function) {
    return gpu::GPUDialect::isKernel(function) ||
           function->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName());
  };
  return llvm::filter_to_vector(module.getOps<FunctionOpInterface>(), isKernel);
}

SymbolRefAttr fp8::getKernelReference(FunctionOpInterface kernel) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  return SymbolRefAttr::get(
      module.getNameAttr(),
      {FlatSymbolRefAttr::get(SymbolTable::getSymbolName(kernel))});
}

void fp8::replaceKernelReferences(
    ModuleOp module, const DenseMap<SymbolRefAttr, SymbolRefAttr> &references) {
  using Replacement = std::optional<std::pair<Attribute, WalkResult>>;
  AttrTypeReplacer replacer;
  replacer.addReplacement([&](SymbolRefAttr reference) -> Replacement {
    auto it = references.find(reference);
    if (it == references.end())
      return std::nullopt;
    return {{it->second, WalkResult::skip()}};
  });
  // Kernels do not launch kernels.
  for (Operation &op : *module.getBody())
    if (!isa<gpu::GPUModuleOp>(op))
      replacer.recursivelyReplaceElementsIn(&op);
}

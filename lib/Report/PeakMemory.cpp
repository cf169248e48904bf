//===- PeakMemory.cpp - The most that is allocated at a time --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PeakMemory.h"
#include "KernelGraph.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// What is allocated while something runs, and after it.
struct Memory {
  double peak = 0, left = 0;
};

class PeakMemory {
public:
  explicit PeakMemory(ModuleOp module) : module(module) {}
  std::optional<double> get(FunctionOpInterface function);

private:
  std::optional<Memory> measure(Block &block);
  std::optional<Memory> measure(Operation *op);
  std::optional<Memory> measureRegions(Operation *op);
  std::optional<Memory> measureCall(func::CallOp call);

  ModuleOp module;
  /// Nothing while a function is measured: one that calls itself has no bound.
  llvm::StringMap<std::optional<double>> peaks;
};
} // namespace

/// Behind views: a deallocation may name the memory below one.
static Value getAllocation(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    if (auto view = dyn_cast<ViewLikeOpInterface>(op))
      memref = view.getViewSource();
    else if (auto metadata = dyn_cast<memref::ExtractStridedMetadataOp>(op))
      memref = metadata.getSource();
    else
      break;
  }
  return memref;
}

std::optional<Memory> PeakMemory::measure(Operation *op) {
  Memory memory;
  if (auto alloc = dyn_cast<memref::AllocOp>(op)) {
    std::optional<double> bytes = getBytes(alloc.getType());
    if (!bytes)
      return std::nullopt;
    memory.peak = memory.left = *bytes;
  } else if (auto dealloc = dyn_cast<memref::DeallocOp>(op)) {
    std::optional<double> bytes =
        getBytes(getAllocation(dealloc.getMemref()).getType());
    if (!bytes)
      return std::nullopt;
    memory.left = -*bytes;
  } else if (auto call = dyn_cast<func::CallOp>(op)) {
    return measureCall(call);
  } else if (isa<RegionBranchOpInterface>(op)) {
    return measureRegions(op);
  }
  return memory;
}

std::optional<Memory> PeakMemory::measureCall(func::CallOp call) {
  auto callee = module.lookupSymbol<func::FuncOp>(call.getCallee());
  if (!callee || callee.isExternal())
    return Memory();
  std::optional<double> peak = get(callee);
  if (!peak)
    return std::nullopt;
  Memory memory{*peak, 0};
  // A result is the caller's to free, or an argument's memory.
  for (Type type : call.getResultTypes())
    if (isa<MemRefType>(type)) {
      std::optional<double> bytes = getBytes(type);
      if (!bytes)
        return std::nullopt;
      memory.left += *bytes;
    }
  memory.left = std::min(memory.left, memory.peak);
  return memory;
}

std::optional<Memory> PeakMemory::measureRegions(Operation *op) {
  Memory all;
  for (Region &region : op->getRegions()) {
    if (region.empty())
      continue;
    std::optional<Memory> inner =
        region.hasOneBlock() ? measure(region.front()) : std::nullopt;
    if (!inner)
      return std::nullopt;
    all.peak = std::max(all.peak, inner->peak);
    // Any of the branches may be taken, and what one frees another may not.
    // What an iteration leaves takes the place of what the one before left.
    all.left = std::max(all.left, inner->left);
  }
  if (isa<LoopLikeOpInterface>(op))
    all.peak += all.left;
  return all;
}

std::optional<Memory> PeakMemory::measure(Block &block) {
  Memory all;
  for (Operation &op : block) {
    std::optional<Memory> memory = measure(&op);
    if (!memory)
      return std::nullopt;
    all.peak = std::max(all.peak, all.left + memory->peak);
    all.left += memory->left;
  }
  return all;
}

std::optional<double> PeakMemory::get(FunctionOpInterface function) {
  auto [entry, isNew] = peaks.try_emplace(function.getName(), std::nullopt);
  if (!isNew)
    return entry->second;
  Region &body = function.getFunctionBody();
  std::optional<Memory> memory =
      body.hasOneBlock() ? measure(body.front()) : std::nullopt;
  std::optional<double> peak =
      memory ? std::optional(memory->peak) : std::nullopt;
  peaks[function.getName()] = peak;
  return peak;
}

llvm::StringMap<std::optional<double>> fp8::getPeakMemory(ModuleOp module) {
  PeakMemory memory(module);
  llvm::StringMap<std::optional<double>> peaks;
  for (auto function : module.getOps<FunctionOpInterface>())
    if (!function.isExternal())
      peaks[function.getName()] = memory.get(function);
  return peaks;
}

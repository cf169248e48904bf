//===- EqualRegions.cpp - Regions that compute the same -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EqualRegions.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/OperationSupport.h"

using namespace mlir;
using namespace mlir::fp8;

/// MLIR walks and compares what it does not change as what it may change.
static Region *asMutable(const Region *region) {
  return const_cast<Region *>(region);
}

unsigned EqualRegions::getHashValue(const Region *key) {
  Region *region = asMutable(key);
  // Values by the order in which they are defined.
  DenseMap<Value, unsigned> numbers;
  llvm::hash_code result(0);
  auto define = [&](Value value) {
    numbers.try_emplace(value, numbers.size());
    result = llvm::hash_combine(result, value.getType());
  };
  auto defineArguments = [&](Region &inner) {
    for (Block &block : inner)
      llvm::for_each(block.getArguments(), define);
  };
  defineArguments(*region);
  region->walk<WalkOrder::PreOrder>([&](Operation *op) {
    result = llvm::hash_combine(
        result, OperationEquivalence::computeHash(
                    op,
                    [&](Value operand) {
                      return llvm::hash_value(numbers.lookup(operand));
                    },
                    OperationEquivalence::ignoreHashValue,
                    OperationEquivalence::IgnoreLocations));
    llvm::for_each(op->getResults(), define);
    llvm::for_each(op->getRegions(), defineArguments);
  });
  return static_cast<unsigned>(static_cast<size_t>(result));
}

bool EqualRegions::isEqual(const Region *a, const Region *b) {
  if (a == b || a == getEmptyKey() || a == getTombstoneKey() ||
      b == getEmptyKey() || b == getTombstoneKey())
    return a == b;
  return OperationEquivalence::isRegionEquivalentTo(
      asMutable(a), asMutable(b), OperationEquivalence::IgnoreLocations);
}

func::FuncOp fp8::createInternalFunction(Location loc, const Twine &name,
                                         FunctionType type) {
  auto function = func::FuncOp::create(loc, name.str(), type);
  function.setPrivate();
  MLIRContext *context = loc.getContext();
  function->setAttr("llvm.linkage",
                    LLVM::LinkageAttr::get(context, LLVM::Linkage::Internal));
  // Copies in each caller are what it is there to save.
  Builder b(context);
  function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  return function;
}

//===- ShareLaunches.cpp - Equal launches by one function -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Conversion/Passes.h"
#include "fp8/GPU/IR/FP8GPUOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SHARELAUNCHESPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// A constant, such as a number of blocks, is part of what is launched.
static Attribute getConstant(Value operand) {
  Attribute value;
  matchPattern(operand, m_Constant(&value));
  return value;
}

/// The same for launches that one function can stand for.
static ArrayAttr getKey(Operation *launch) {
  Builder b(launch->getContext());
  SmallVector<Attribute> key{launch->getName().getIdentifier(),
                             launch->getAttrDictionary()};
  for (Value operand : launch->getOperands()) {
    Attribute constant = getConstant(operand);
    key.push_back(constant ? constant : TypeAttr::get(operand.getType()));
  }
  return b.getArrayAttr(key);
}

/// Whether the address says all about the memory.
static bool isPointer(MemRefType type) {
  auto [strides, offset] = type.getStridesAndOffset();
  return type.hasStaticShape() && ShapedType::isStatic(offset) &&
         ShapedType::isStaticShape(strides);
}

/// A function that takes a context after what of `launch`'s operands is not
/// constant, and launches.
static func::FuncOp createFunction(Operation *launch, ValueRange operands) {
  MLIRContext *context = launch->getContext();
  SmallVector<Type> types(operands.getTypes());
  bool arePointers = llvm::all_of(types, [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return memref ? isPointer(memref) : !isa<UnrankedMemRefType>(type);
  });
  types.push_back(LLVM::LLVMPointerType::get(context));
  OpBuilder b(context);
  auto function = func::FuncOp::create(launch->getLoc(), "launch",
                                       b.getFunctionType(types, {}));
  function.setPrivate();
  function->setAttr("llvm.linkage",
                    LLVM::LinkageAttr::get(context, LLVM::Linkage::Internal));
  function->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
  if (arePointers)
    function->setAttr("llvm.bareptr", b.getUnitAttr());
  b.setInsertionPointToStart(function.addEntryBlock());
  // By their places: what is one value here may be two of an equal launch.
  IRMapping constants;
  unsigned taken = 0;
  SmallVector<Value> own;
  for (Value operand : launch->getOperands()) {
    if (!getConstant(operand)) {
      own.push_back(function.getArgument(taken++));
      continue;
    }
    if (!constants.contains(operand))
      b.clone(*operand.getDefiningOp(), constants);
    own.push_back(constants.lookup(operand));
  }
  b.clone(*launch)->setOperands(own);
  func::ReturnOp::create(b, launch->getLoc());
  return function;
}

namespace {
struct ShareLaunchesPass : fp8::impl::ShareLaunchesPassBase<ShareLaunchesPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void ShareLaunchesPass::runOnOperation() {
  llvm::MapVector<ArrayAttr, SmallVector<Operation *>> launches;
  for (auto function : getOperation().getOps<func::FuncOp>())
    function.walk([&](Operation *op) {
      if (isa<LaunchOp, gpu::LaunchFuncOp>(op) && op->getNumResults() == 0)
        launches[getKey(op)].push_back(op);
    });
  SymbolTable symbols(getOperation());
  for (auto &[key, equal] : launches) {
    if (equal.size() < 2)
      continue;
    func::FuncOp function;
    for (Operation *launch : equal) {
      SmallVector<Value> operands;
      for (Value operand : launch->getOperands())
        if (!getConstant(operand))
          operands.push_back(operand);
      if (!function) {
        function = createFunction(launch, operands);
        symbols.insert(function);
      }
      auto caller = launch->getParentOfType<func::FuncOp>();
      operands.push_back(caller.getArguments().back());
      OpBuilder b(launch);
      func::CallOp::create(b, launch->getLoc(), function, operands);
      launch->erase();
      ++numShared;
    }
  }
}

//===- OutlineEqualComputations.cpp - Equal computations by one function --===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Utils/EqualRegions.h"
#include "fp8/IR/TensorCoreAccumulation.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-outline-equal-computations"

namespace mlir::fp8 {
#define GEN_PASS_DEF_OUTLINEEQUALCOMPUTATIONSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Whether `init` is memory that nothing has been written to, but for a fill.
static bool isNewMemory(Value init) {
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    init = fill.getOutputs()[0];
  return init.getDefiningOp<tensor::EmptyOp>() != nullptr;
}

/// Whether `op` reads tensors and writes to memory of its own.
static bool isComputation(Operation &op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && !isa<linalg::FillOp>(op) &&
         linalgOp.hasPureTensorSemantics() &&
         llvm::all_of(linalgOp.getDpsInits(), isNewMemory);
}

/// Whether the function has its own `op` rather than its result: constants that
/// decide what is computed, what memory is filled with, and what names a part
/// of a tensor, which as an argument would be copied to be in one piece. The
/// memory itself is the caller's, which knows for how long it is needed.
static bool belongsToFunction(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return !isa<ShapedType>(op->getResult(0).getType());
  return isa<linalg::FillOp, tensor::ExtractSliceOp, tensor::ExpandShapeOp,
             tensor::CollapseShapeOp, tensor::CastOp>(op);
}

namespace {
/// An operation, and what a function that computes it is called with.
struct Call {
  Operation *op;
  SmallVector<Value> operands;
};

/// Makes the function for one operation.
class FunctionBuilder {
public:
  explicit FunctionBuilder(Operation *op) : op(op), b(op->getContext()) {}

  /// It is in no module yet; `operands` are what it takes.
  func::FuncOp build(SmallVectorImpl<Value> &operands);

private:
  void findOperands(Operation *from);
  void findOperand(Value value);

  Operation *op;
  OpBuilder b;
  /// What is cloned, each after what it needs, and what comes from outside.
  llvm::SetVector<Operation *> inside;
  llvm::SetVector<Value> outside;
};

struct OutlineEqualComputationsPass
    : fp8::impl::OutlineEqualComputationsPassBase<
          OutlineEqualComputationsPass> {
  using Base::Base;
  void runOnOperation() override;
  void replace(ArrayRef<Call> calls, func::FuncOp function);

  /// Results of operations that are calls now.
  IRMapping results;
};
} // namespace

void FunctionBuilder::findOperand(Value value) {
  Operation *producer = value.getDefiningOp();
  if (!producer || !belongsToFunction(producer))
    outside.insert(value);
  else if (!inside.contains(producer))
    findOperands(producer);
}

void FunctionBuilder::findOperands(Operation *from) {
  for (Value operand : from->getOperands())
    findOperand(operand);
  llvm::SetVector<Value> captured;
  getUsedValuesDefinedAbove(from->getRegions(), captured);
  for (Value value : captured)
    findOperand(value);
  inside.insert(from);
}

func::FuncOp FunctionBuilder::build(SmallVectorImpl<Value> &operands) {
  findOperands(op);
  operands.assign(outside.begin(), outside.end());
  auto parent = op->getParentOfType<func::FuncOp>();
  func::FuncOp function = createInternalFunction(
      op->getLoc(), parent.getName() + "_" + op->getName().stripDialect(),
      b.getFunctionType(TypeRange(operands), op->getResultTypes()));
  IRMapping mapping;
  mapping.map(operands, function.addEntryBlock()->getArguments());
  b.setInsertionPointToStart(&function.front());
  for (Operation *part : inside)
    b.clone(*part, mapping);
  // Without names and what else is said of one of them.
  Operation *copy = mapping.lookup(op);
  copy->setDiscardableAttrs(ArrayRef<NamedAttribute>());
  if (auto sums = TensorCoreAccumulation::get(op))
    sums->set(copy);
  func::ReturnOp::create(b, op->getLoc(), copy->getResults());
  return function;
}

void OutlineEqualComputationsPass::replace(ArrayRef<Call> calls,
                                           func::FuncOp function) {
  for (const Call &call : calls) {
    OpBuilder b(call.op);
    // Another call may compute them by now.
    SmallVector<Value> operands = llvm::map_to_vector(
        call.operands, [&](Value v) { return results.lookupOrDefault(v); });
    auto callOp =
        func::CallOp::create(b, call.op->getLoc(), function, operands);
    results.map(call.op->getResults(), callOp.getResults());
    call.op->replaceAllUsesWith(callOp.getResults());
    ++numCalls;
  }
}

void OutlineEqualComputationsPass::runOnOperation() {
  SmallVector<func::FuncOp> functions(getOperation().getOps<func::FuncOp>());
  llvm::MapVector<Region *, SmallVector<Call>,
                  DenseMap<Region *, unsigned, EqualRegions>>
      computations;
  for (func::FuncOp function : functions)
    for (Operation &op : function.getOps()) {
      if (!isComputation(op))
        continue;
      SmallVector<Value> operands;
      func::FuncOp candidate = FunctionBuilder(&op).build(operands);
      auto [it, isNew] = computations.insert({&candidate.getBody(), {}});
      if (!isNew)
        candidate.erase();
      it->second.push_back({&op, std::move(operands)});
    }

  DenseMap<func::FuncOp, unsigned> numUnequal;
  auto getParent = [](ArrayRef<Call> calls) {
    return calls.front().op->getParentOfType<func::FuncOp>();
  };
  for (auto &[body, calls] : computations)
    if (calls.size() == 1)
      ++numUnequal[getParent(calls)];

  SymbolTable symbols(getOperation());
  for (auto &[body, calls] : computations) {
    auto shared = cast<func::FuncOp>(body->getParentOp());
    auto parent = getParent(calls);
    // LLVM takes more than linear time for a function.
    if (calls.size() == 1 && numUnequal[parent] <= maxInPlace) {
      shared.erase();
      continue;
    }
    LDBG() << calls.size() << " calls of " << shared.getName() << ": "
           << shared.getLoc();
    symbols.insert(shared, std::next(Block::iterator(parent)));
    replace(calls, shared);
    ++numFunctions;
  }
  results.clear();
  // The operations, and what functions have of their own now.
  for (func::FuncOp function : functions)
    for (Block &block : function.getBody())
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
        if (isOpTriviallyDead(&op))
          op.erase();
}

//===- ComputedWeights.cpp - Weights that a program computes --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ComputedWeights.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

ComputedWeights::ComputedWeights(FunctionOpInterface function,
                                 const GemmRoles &roles)
    : function(function), roles(roles) {
  for (BlockArgument argument : function.getArguments())
    hasMarks |= !!function.getArgAttr(argument.getArgNumber(), kWeightAttrName);
  // In the order of the program, so that none asks far back.
  function->walk([&](Operation *op) {
    for (Value result : op->getResults())
      if (isa<RankedTensorType>(result.getType()))
        getSource(result);
  });
}

/// Whether products of several pairs of matrices are computed, as of heads.
static bool isBatched(linalg::LinalgOp product) {
  SmallVector<AffineMap> maps = product.getIndexingMapsArray();
  SmallVector<int64_t> extents = product.getStaticLoopRanges();
  return llvm::any_of(llvm::enumerate(extents), [&](auto loop) {
    return loop.value() != 1 && llvm::all_of(maps, [&](AffineMap map) {
             return map.isFunctionOfDim(loop.index());
           });
  });
}

bool ComputedWeights::isOperandOf(linalg::LinalgOp product) {
  // An argument of rank 2 may hold rows of heads, where nothing marks weights.
  bool mayBeHeads = !hasMarks && isBatched(product);
  return llvm::any_of(product.getDpsInputs(), [&](Value operand) {
    return roles.isMarkedWeight(operand) ||
           (!mayBeHeads && getSource(operand) == Source::Weight);
  });
}

/// Whether `op` computes with any of `Ops`, itself or in its body.
template <typename... Ops>
static bool computes(Operation *op) {
  if (isa<Ops...>(op))
    return true;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && llvm::any_of(*linalgOp.getBlock(), llvm::IsaPred<Ops...>);
}

bool ComputedWeights::isProjection(Value value) {
  SmallVector<Value> worklist{value};
  llvm::SmallPtrSet<Operation *, 16> seen;
  linalg::LinalgOp projection;
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    Operation *op = next.getDefiningOp();
    Source source = getSource(next);
    if (source == Source::Neutral || source == Source::Weight ||
        (op && !seen.insert(op).second))
      continue;
    auto linalgOp = dyn_cast_or_null<linalg::LinalgOp>(op);
    if (linalgOp && isContraction(linalgOp)) {
      if (projection || !isOperandOf(linalgOp))
        return false;
      projection = linalgOp;
      continue;
    }
    if (!op || source == Source::Input || isa<tensor::GatherOp>(op) ||
        (linalgOp && computes<tensor::ExtractOp>(op)))
      return false;
    // What an operation writes into has no numbers of it.
    ValueRange operands = linalgOp ? ValueRange(linalgOp.getDpsInputs())
                                   : ValueRange(op->getOperands());
    llvm::copy_if(operands, std::back_inserter(worklist), [](Value operand) {
      return isa<RankedTensorType>(operand.getType());
    });
  }
  return !!projection;
}

ComputedWeights::Source ComputedWeights::getSource(Value value) {
  if (auto found = sources.find(value); found != sources.end())
    return found->second;
  Source source = compute(value);
  sources[value] = source;
  return source;
}

ComputedWeights::Source
ComputedWeights::getSourceOfArgument(BlockArgument argument) {
  if (argument.getOwner()->getParentOp() != function.getOperation() ||
      !argument.getOwner()->isEntryBlock() || roles.isGradient(argument))
    return Source::Other;
  bool isMarked =
      !!function.getArgAttr(argument.getArgNumber(), kWeightAttrName);
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  bool isMatrix = type && llvm::count_if(type.getShape(), [](int64_t extent) {
                            return extent != 1;
                          }) >= 2;
  if (!isMatrix)
    return Source::Neutral;
  // A batch of matrices is no weight where nothing says so.
  return isMarked || (!hasMarks && type.getRank() == 2) ? Source::Weight
                                                        : Source::Input;
}

ComputedWeights::Source
ComputedWeights::getSourceOfProduct(linalg::LinalgOp product) {
  // Without marks an activation of rank 2 looks like a weight.
  bool areWeights =
      hasMarks && llvm::all_of(product.getDpsInputs(), [&](Value operand) {
        return roles.isMarkedWeight(operand) ||
               getSource(operand) == Source::Weight;
      });
  return areWeights ? Source::ProductOfWeights : Source::Other;
}

ComputedWeights::Source ComputedWeights::combine(Operation *op,
                                                 ValueRange operands) {
  bool hasWeight = false, hasProduct = false, hasInput = false;
  int64_t rankOfWeight = 0, rankOfInput = 0;
  for (Value operand : operands) {
    if (operand.getType().isIndex())
      continue;
    Source source = getSource(operand);
    if (source == Source::Other)
      return Source::Other;
    hasWeight |= source == Source::Weight;
    hasProduct |= source == Source::ProductOfWeights;
    hasInput |= source == Source::Input;
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    int64_t rank = type ? type.getRank() : 0;
    if (source == Source::Weight)
      rankOfWeight = std::max(rankOfWeight, rank);
    if (source == Source::Input)
      rankOfInput = std::max(rankOfInput, rank);
  }
  bool multiplies = computes<arith::MulFOp, arith::DivFOp>(op);
  bool adds = computes<arith::AddFOp, arith::SubFOp, math::FmaOp>(op);
  if (hasProduct && (hasInput || (hasWeight && (multiplies || !adds))))
    return Source::Other;
  // A weight times what scales it; a sum with an input is an activation, and so
  // is what has more dimensions than the weight.
  if (hasInput)
    return hasMarks && hasWeight && multiplies && !adds &&
                   rankOfInput <= rankOfWeight
               ? Source::Weight
               : Source::Input;
  if (hasWeight)
    return Source::Weight;
  return hasProduct ? Source::ProductOfWeights : Source::Neutral;
}

ComputedWeights::Source ComputedWeights::compute(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return getSourceOfArgument(argument);
  Operation *op = value.getDefiningOp();
  if (op->hasTrait<OpTrait::ConstantLike>() ||
      isa<tensor::EmptyOp, linalg::FillOp>(op))
    return Source::Neutral;
  if (isa<DequantizeOp, QuantizeOp, TransposeOp>(op))
    return getSource(op->getOperand(0));
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    return getSource(softmax.getInput());
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
    if (isContraction(linalgOp))
      return getSourceOfProduct(linalgOp);
    // Rows that numbers choose are activations, as embeddings are.
    if (computes<tensor::ExtractOp>(op))
      return Source::Other;
    Source source = combine(op, linalgOp.getDpsInputs());
    bool isScale =
        linalgOp.getNumReductionLoops() != 0 && source == Source::Weight;
    return isScale ? Source::Neutral : source;
  }
  if (isa<tensor::GatherOp, tensor::ExtractOp>(op) ||
      !isa_and_present<tensor::TensorDialect, arith::ArithDialect,
                       math::MathDialect>(op->getDialect()))
    return Source::Other;
  return combine(op, op->getOperands());
}

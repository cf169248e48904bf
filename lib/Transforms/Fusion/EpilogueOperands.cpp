//===- EpilogueOperands.cpp - What an epilogue reads ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A backward needs the function of an activation for one product's gradient and
// its derivative for another's. Both come from the same numbers of 16 bits, by
// steps that they share: kept for both, each step is 32 bits an element that
// one kernel writes and another reads. Computed twice, nothing is.
//
//===----------------------------------------------------------------------===//

#include "EpilogueOperands.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-fuse-epilogues"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A tensor, and how a loop over the result reads it.
using Read = std::pair<Value, AffineMap>;

/// What an operation reads if it computes some of its operands again.
struct Reads {
  llvm::SetVector<Read> leaves;
  /// Those that are computed, users before producers.
  llvm::SetVector<linalg::GenericOp> recomputed;
  size_t numOperations = 0;

  int64_t getNumBits() const {
    int64_t numBits = 0;
    for (auto [value, map] : leaves)
      numBits += getNumBits(value);
    return numBits;
  }

private:
  static int64_t getNumBits(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    if (!type)
      return 0;
    // All that is compared has the same unknown extents.
    constexpr int64_t unknown = 4096;
    Type element = type.getElementType();
    int64_t numParts = 1;
    if (auto complex = dyn_cast<ComplexType>(element)) {
      element = complex.getElementType();
      numParts = 2;
    }
    int64_t numBits = numParts * (element.isIntOrFloat()
                                      ? element.getIntOrFloatBitWidth()
                                      : IndexType::kInternalStorageBitWidth);
    for (int64_t extent : type.getShape())
      numBits *= ShapedType::isDynamic(extent) ? unknown : extent;
    return numBits;
  }
};

} // namespace

/// Whether all of `op`'s loop is a function of an element of each operand.
static bool isElementwise(linalg::GenericOp op) {
  return op.hasPureTensorSemantics() && op.getNumResults() == 1 &&
         op.getNumLoops() == op.getNumParallelLoops() &&
         op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() &&
         op.getBody()->getArguments().back().use_empty() &&
         llvm::all_of(op.getBody()->without_terminator(), [](Operation &inner) {
           return !isa<linalg::IndexOp>(inner) && inner.getNumRegions() == 0 &&
                  isMemoryEffectFree(&inner);
         });
}

/// The operation that computes `value`, if the result of a loop that reads it
/// by `map` can be computed from that one's operands; else null.
static linalg::GenericOp getRecomputable(Value value, AffineMap map,
                                         Block *block) {
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || op->getBlock() != block || !map.isIdentity() ||
      !isElementwise(op) || op.getNumLoops() != map.getNumDims())
    return nullptr;
  // A matmul whose result a second one reads has no epilogue.
  for (Value input : op.getInputs())
    if (input.getDefiningOp<MatmulOp>())
      return nullptr;
  return op;
}

/// What `op` reads beside `matmul`, where each operand is computed again that
/// can be. With `keepsNarrow` what has 16 bits or fewer is read: it may be in
/// memory for others, and its own operands be wider.
static Reads findReads(linalg::GenericOp op, MatmulOp matmul,
                       bool keepsNarrow) {
  Reads reads;
  SmallVector<linalg::GenericOp> pending{op};
  while (!pending.empty()) {
    linalg::GenericOp reader = pending.pop_back_val();
    for (OpOperand *input : reader.getDpsInputOperands()) {
      Value value = input->get();
      AffineMap map = reader.getMatchingIndexingMap(input);
      if (value == matmul.getResult())
        continue;
      linalg::GenericOp producer = getRecomputable(value, map, op->getBlock());
      Type element = getElementTypeOrSelf(value);
      bool isNarrow =
          element.isIntOrFloat() && element.getIntOrFloatBitWidth() <= 16;
      if (!producer || (keepsNarrow && isNarrow)) {
        reads.leaves.insert({value, map});
        continue;
      }
      if (!reads.recomputed.insert(producer))
        continue;
      reads.numOperations += producer.getBody()->getOperations().size();
      pending.push_back(producer);
    }
  }
  return reads;
}

/// Whether a result of what would be computed again is in memory all the same:
/// for who is none of an element's loop nor a cast, which become one pass.
static bool isKept(const Reads &reads, linalg::GenericOp op) {
  auto isPass = [](Operation *user) {
    if (auto generic = dyn_cast<linalg::GenericOp>(user))
      return generic.getNumLoops() == generic.getNumParallelLoops();
    return isa<QuantizeOp, AmaxOp>(user);
  };
  return llvm::any_of(reads.recomputed, [&](linalg::GenericOp one) {
    return !llvm::all_of(one->getUsers(), [&](Operation *user) {
      return user->getBlock() == op->getBlock() && isPass(user);
    });
  });
}

namespace {

struct RecomputeOperands : OpRewritePattern<linalg::GenericOp> {
  RecomputeOperands(MLIRContext *context, llvm::Statistic &numRecomputed)
      // Before what is recomputed here goes to an epilogue as an operand.
      : OpRewritePattern(context, /*benefit=*/2), numRecomputed(numRecomputed) {
  }

  LogicalResult matchAndRewrite(linalg::GenericOp op,
                                PatternRewriter &rewriter) const override {
    MatmulOp matmul = getOnlyReadMatmul(op);
    if (!matmul || !isElementwise(op))
      return rewriter.notifyMatchFailure(op, "no epilogue");
    Reads now;
    for (OpOperand *input : op.getDpsInputOperands())
      if (input->get() != matmul.getResult())
        now.leaves.insert({input->get(), op.getMatchingIndexingMap(input)});

    Reads best = findReads(op, matmul, /*keepsNarrow=*/false);
    Reads narrow = findReads(op, matmul, /*keepsNarrow=*/true);
    if (narrow.getNumBits() < best.getNumBits() ||
        (narrow.getNumBits() == best.getNumBits() && isKept(best, op)))
      best = std::move(narrow);
    bool isFewer = best.getNumBits() < now.getNumBits();
    bool isSpared = best.getNumBits() == now.getNumBits() &&
                    !best.recomputed.empty() && !isKept(best, op);
    if (!isFewer && !isSpared)
      return rewriter.notifyMatchFailure(
          op, "operands have no more bytes than what they are computed from");
    constexpr size_t maxOperations = 128;
    if (best.numOperations + op.getBody()->getOperations().size() >
        maxOperations)
      return rewriter.notifyMatchFailure(
          op, "computing the operands again would be too much");

    LDBG() << "computes " << best.recomputed.size()
           << " operations again: " << OpWithFlags(op, OpPrintingFlags());
    rewrite(op, matmul, best, rewriter);
    ++numRecomputed;
    return success();
  }

private:
  /// Replaces `op` by one that reads the matmul's result and `reads`.
  static void rewrite(linalg::GenericOp op, MatmulOp matmul, const Reads &reads,
                      PatternRewriter &rewriter);

  llvm::Statistic &numRecomputed;
};

} // namespace

void RecomputeOperands::rewrite(linalg::GenericOp op, MatmulOp matmul,
                                const Reads &reads, PatternRewriter &rewriter) {
  llvm::SetVector<Read> inputs;
  for (OpOperand *input : op.getDpsInputOperands())
    if (input->get() == matmul.getResult())
      inputs.insert({input->get(), op.getMatchingIndexingMap(input)});
  inputs.insert_range(reads.leaves);
  SmallVector<Value> values;
  SmallVector<AffineMap> maps;
  for (auto [value, map] : inputs) {
    values.push_back(value);
    maps.push_back(map);
  }
  maps.push_back(op.getIndexingMapsArray().back());
  SmallVector<linalg::GenericOp> order(reads.recomputed.begin(),
                                       reads.recomputed.end());
  llvm::sort(order, [](linalg::GenericOp a, linalg::GenericOp b) {
    return a->isBeforeInBlock(b);
  });
  order.push_back(op);

  auto build = [&](OpBuilder &builder, Location loc, ValueRange arguments) {
    // What a loop over the result has of each tensor.
    llvm::DenseMap<Read, Value> elements;
    for (auto [read, argument] :
         llvm::zip_equal(inputs, arguments.drop_back(op.getNumDpsInits())))
      elements[read] = argument;
    for (linalg::GenericOp one : order) {
      IRMapping mapping;
      for (OpOperand *input : one.getDpsInputOperands())
        mapping.map(
            one.getMatchingBlockArgument(input),
            elements.at({input->get(), one.getMatchingIndexingMap(input)}));
      for (Operation &inner : one.getBody()->without_terminator())
        builder.clone(inner, mapping);
      Value yielded = mapping.lookupOrDefault(
          one.getBody()->getTerminator()->getOperand(0));
      elements[{one.getResult(0), maps.back()}] = yielded;
      if (one == op)
        linalg::YieldOp::create(builder, loc, yielded);
    }
  };
  auto made = linalg::GenericOp::create(
      rewriter, op.getLoc(), op.getResultTypes(), values, op.getDpsInits(),
      maps, op.getIteratorTypesArray(), build,
      llvm::to_vector(op->getDiscardableAttrs()));
  rewriter.replaceOp(op, made);
}

MatmulOp fp8::getOnlyReadMatmul(linalg::GenericOp op) {
  MatmulOp found;
  for (Value input : op.getInputs())
    if (auto matmul = input.getDefiningOp<MatmulOp>();
        matmul && matmul->getBlock() == op->getBlock() && !matmul.getAmax() &&
        llvm::all_of(matmul->getUsers(), [&](Operation *user) {
          return user == op.getOperation();
        }))
      found = matmul;
  return found;
}

void fp8::populateEpilogueOperandsPatterns(RewritePatternSet &patterns,
                                           llvm::Statistic &numRecomputed) {
  patterns.add<RecomputeOperands>(patterns.getContext(), numRecomputed);
}

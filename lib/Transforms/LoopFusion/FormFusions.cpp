//===- FormFusions.cpp - Passes over memory -------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionClusters.h"
#include "fp8/IR/Permutations.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-form-fusions"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FORMFUSIONSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// Takes the operations of a cluster, which stand together, into a fusion.
class FusionBuilder {
public:
  /// Codes and factors of scaled values, in front of what is built.
  using Parts = DenseMap<Value, SmallVector<Value>>;

  FusionBuilder(OpBuilder &b, ArrayRef<Operation *> ops, Parts &knownParts)
      : b(b), ops(ops), members(ops.begin(), ops.end()),
        knownParts(knownParts) {}

  FusionOp build();

private:
  bool isInside(Value value) const {
    return value.getDefiningOp() && members.contains(value.getDefiningOp());
  }
  bool isLeft(Value value) const {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      return !members.contains(user);
    });
  }
  void findInputs();
  /// Gives the body an argument for each input: of a scaled one for its codes
  /// and factors.
  void addArguments(Block &body);
  /// What a result of a member, used outside, is made of: values that the
  /// fusion yields, or that are known outside.
  void leave(Value value);
  unsigned yield(Value inBody);

  OpBuilder &b;
  ArrayRef<Operation *> ops;
  llvm::SmallPtrSet<Operation *, 8> members;
  llvm::SetVector<Value> inputs;
  /// What the fusion is given for them.
  SmallVector<Value> operands;
  Parts &knownParts;
  /// Cloned into the body: constants, and what holds results.
  llvm::SetVector<Operation *> clones;
  IRMapping mapping;
  SmallVector<Value> yielded;
  /// Replacements, once there are results.
  SmallVector<std::function<void(FusionOp)>> replacements;
};
} // namespace

/// What a body has of its own: constants, and memory for results.
static bool isCloned(Operation *op) {
  return op && (op->hasTrait<OpTrait::ConstantLike>()
                    ? !isa<ShapedType>(op->getResult(0).getType())
                    : isa<tensor::EmptyOp, linalg::FillOp>(op));
}

/// The same elements in another shape.
static Value reshapeVector(OpBuilder &b, Value vector, RankedTensorType type) {
  auto from = cast<RankedTensorType>(vector.getType());
  if (from == type)
    return vector;
  auto getGroup = [](int64_t rank) {
    return SmallVector<ReassociationIndices>{
        llvm::to_vector(llvm::seq<int64_t>(0, rank))};
  };
  Location loc = vector.getLoc();
  Value flat =
      tensor::CollapseShapeOp::create(b, loc, vector, getGroup(from.getRank()));
  return tensor::ExpandShapeOp::create(b, loc, type, flat,
                                       getGroup(type.getRank()));
}

void FusionBuilder::findInputs() {
  std::function<void(Value)> add = [&](Value value) {
    if (isInside(value))
      return;
    Operation *op = value.getDefiningOp();
    if (!isCloned(op)) {
      inputs.insert(value);
      return;
    }
    llvm::for_each(op->getOperands(), add);
    clones.insert(op);
  };
  // What is read is in memory, a constant or not.
  llvm::SmallPtrSet<Value, 8> read;
  for (Operation *op : ops) {
    auto destination = dyn_cast<DestinationStyleOpInterface>(op);
    for (OpOperand &operand : op->getOpOperands())
      if (isa<ShapedType, ScaledType>(operand.get().getType()) &&
          !(destination && destination.isDpsInit(&operand)) &&
          !isInside(operand.get()))
        read.insert(operand.get());
  }
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      if (read.contains(operand))
        inputs.insert(operand);
      else
        add(operand);
    for (Region &region : op->getRegions())
      region.walk([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (operand.getParentRegion() != &region)
            add(operand);
      });
  }
}

void FusionBuilder::addArguments(Block &body) {
  auto add = [&](Value value) -> Value {
    operands.push_back(value);
    return body.addArgument(value.getType(), value.getLoc());
  };
  for (Value input : inputs) {
    if (!isa<ScaledType>(input.getType())) {
      mapping.map(input, add(input));
      continue;
    }
    SmallVector<Value> &known = knownParts[input];
    if (known.empty())
      b.createOrFold<DisassembleOp>(known, input.getLoc(), input);
    SmallVector<Value> parts = known;
    for (Value &part : parts)
      part = add(part);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&body);
    mapping.map(input, AssembleOp::create(
                           b, input.getLoc(), input.getType(), parts[0],
                           parts[1], parts.size() > 2 ? parts[2] : Value()));
  }
}

/// The number of the result that a value of the body becomes.
unsigned FusionBuilder::yield(Value inBody) {
  auto *known = llvm::find(yielded, inBody);
  if (known == yielded.end())
    known = yielded.insert(yielded.end(), inBody);
  return known - yielded.begin();
}

void FusionBuilder::leave(Value value) {
  auto replaceWith = [&](Value from, std::function<Value(FusionOp)> make) {
    replacements.push_back([this, from, make](FusionOp fusion) mutable {
      Value to = make(fusion);
      from.replaceUsesWithIf(to, [&](OpOperand &use) {
        return !members.contains(use.getOwner()) &&
               !fusion->isProperAncestor(use.getOwner()) &&
               use.getOwner() != to.getDefiningOp();
      });
    });
  };
  Location loc = value.getLoc();
  auto type = dyn_cast<ScaledType>(value.getType());
  if (!type) {
    unsigned number = yield(mapping.lookup(value));
    replaceWith(value,
                [number](FusionOp fusion) { return fusion.getResult(number); });
    return;
  }
  // Codes, and the factors where the fusion computes them.
  auto parts = DisassembleOp::create(b, loc, mapping.lookup(value));
  unsigned codes = yield(parts.getPayload());
  Value source = value;
  while (isInside(source) && source.getDefiningOp<TransposeOp>())
    source = source.getDefiningOp<TransposeOp>().getSource();
  Value outside, ofTensor;
  if (isInside(source)) {
    auto quantize = source.getDefiningOp<QuantizeOp>();
    outside = quantize.getScaleInv();
    ofTensor = quantize.getTensorScaleInv();
  } else {
    ArrayRef<Value> known = knownParts.find(source)->second;
    outside = known[1];
    ofTensor = known.size() > 2 ? known[2] : Value();
  }
  // Factors of rows or columns alone are the transposed ones too.
  std::optional<unsigned> number;
  bool isOwn = source == value || isVector(outside);
  auto factorType = cast<RankedTensorType>(parts.getScaleInv().getType());
  if (isInside(outside) || !isOwn)
    number = yield(isOwn ? mapping.lookup(outside) : parts.getScaleInv());
  std::optional<unsigned> numberOfTensor;
  if (ofTensor && isInside(ofTensor))
    numberOfTensor = yield(mapping.lookup(ofTensor));
  replaceWith(value, [=](FusionOp fusion) -> Value {
    auto get = [&](std::optional<unsigned> number, Value otherwise) {
      return number ? fusion.getResult(*number) : otherwise;
    };
    Value factors = reshapeVector(b, get(number, outside), factorType);
    return AssembleOp::create(b, loc, type, fusion.getResult(codes), factors,
                              get(numberOfTensor, ofTensor));
  });
}

FusionOp FusionBuilder::build() {
  findInputs();
  Location loc = b.getFusedLoc(llvm::map_to_vector(
      ops, [](Operation *op) -> Location { return op->getLoc(); }));
  b.setInsertionPoint(ops.back());
  // The types of results are known with the body.
  Block body;
  addArguments(body);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(&body);
    for (Operation *op : clones)
      b.clone(*op, mapping);
    for (Operation *op : ops)
      b.clone(*op, mapping);
    for (Operation *op : ops)
      for (Value result : op->getResults())
        if (isLeft(result))
          leave(result);
    YieldOp::create(b, loc, yielded);
  }
  SmallVector<Type> types =
      llvm::map_to_vector(yielded, [](Value value) { return value.getType(); });
  auto fusion = FusionOp::create(b, loc, types, operands);
  Block *inner = b.createBlock(&fusion.getBody());
  b.setInsertionPointAfter(fusion);
  for (BlockArgument argument : body.getArguments())
    argument.replaceAllUsesWith(
        inner->addArgument(argument.getType(), argument.getLoc()));
  inner->getOperations().splice(inner->end(), body.getOperations());
  for (auto &replace : replacements)
    replace(fusion);
  for (Operation *op : llvm::reverse(ops))
    op->erase();
  return fusion;
}

/// Parts of scaled values that are taken apart again are the fusion's own.
static void forwardParts(FusionOp fusion) {
  SmallVector<AssembleOp> assembled;
  for (Operation *user : fusion->getUsers())
    if (auto assemble = dyn_cast<AssembleOp>(user))
      assembled.push_back(assemble);
  for (AssembleOp assemble :
       llvm::SetVector<AssembleOp>(assembled.begin(), assembled.end())) {
    for (Operation *user : llvm::make_early_inc_range(assemble->getUsers()))
      if (auto parts = dyn_cast<DisassembleOp>(user)) {
        parts.replaceAllUsesWith(assemble.getOperands());
        parts.erase();
      }
    if (assemble.use_empty())
      assemble.erase();
  }
}

/// Whatever is yielded is written: results that nobody asks for go.
static FusionOp dropUnused(OpBuilder &b, FusionOp fusion) {
  if (llvm::none_of(fusion.getResults(),
                    [](Value result) { return result.use_empty(); }))
    return fusion;
  Operation *yield = fusion.getBody().front().getTerminator();
  SmallVector<Value> used, yielded;
  for (auto [result, value] :
       llvm::zip_equal(fusion.getResults(), yield->getOperands()))
    if (!result.use_empty()) {
      used.push_back(result);
      yielded.push_back(value);
    }
  yield->setOperands(yielded);
  b.setInsertionPoint(fusion);
  auto smaller = FusionOp::create(
      b, fusion.getLoc(), TypeRange(ValueRange(used)), fusion.getInputs());
  smaller.getBody().takeBody(fusion.getBody());
  for (auto [from, to] : llvm::zip_equal(used, smaller.getResults()))
    from.replaceAllUsesWith(to);
  fusion.erase();
  auto ops = llvm::map_to_vector(smaller.getBody().front().without_terminator(),
                                 [](Operation &op) { return &op; });
  for (Operation *op : llvm::reverse(ops))
    if (isOpTriviallyDead(op))
      op->erase();
  Block &body = smaller.getBody().front();
  for (unsigned i = body.getNumArguments(); i-- > 0;)
    if (body.getArgument(i).use_empty()) {
      body.eraseArgument(i);
      smaller.getInputsMutable().erase(i);
    }
  return smaller;
}

namespace {
struct FormFusionsPass : fp8::impl::FormFusionsPassBase<FormFusionsPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) {
      Operation *parent = block->getParentOp();
      // Bodies of elementwise operations have scalars.
      if (!isa<linalg::LinalgOp, MatmulOp, FusionOp, ModuleOp>(parent))
        blocks.push_back(block);
    });
    for (Block *block : blocks)
      form(*block);
  }

  void form(Block &block) {
    FusionClusters clusters(block, positionDependent);
    if (clusters.isEmpty())
      return;
    for (Operation *op : clusters.getOrder())
      op->moveBefore(&block, block.end());
    OpBuilder b(&getContext());
    FusionBuilder::Parts parts;
    SmallVector<FusionOp> fusions;
    for (const FusionClusters::Cluster &cluster : clusters.getInOrder()) {
      fusions.push_back(FusionBuilder(b, cluster, parts).build());
      LDBG() << "a fusion of " << cluster.size() << " operations";
    }
    // What a later one does not need is not asked of an earlier one.
    for (FusionOp fusion : llvm::reverse(fusions)) {
      forwardParts(fusion);
      fusion = dropUnused(b, fusion);
      // Nobody may have asked for it.
      if (fusion.getNumResults() == 0)
        fusion.erase();
      else
        ++numFormed;
    }
  }
};
} // namespace

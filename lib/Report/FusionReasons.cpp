//===- FusionReasons.cpp - Why two kernels are two ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionReasons.h"
#include "fp8/Analysis/FusionLayouts.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/Transforms/Patterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;

std::string FusionReasons::getKernelReason(Operation *op) const {
  auto kernelOp = dyn_cast<KernelOpInterface>(op);
  if (!kernelOp)
    return (op->getName().getStringRef() + " has no kernels").str();
  std::string reason;
  FailureOr<std::unique_ptr<KernelSpec>> spec = kernelOp.getKernelSpec(reason);
  const KernelGenerator *generator =
      succeeded(spec) ? architecture.getGenerator(**spec, reason) : nullptr;
  if (generator && succeeded(generator->select(**spec, target, reason)))
    return "";
  return reason;
}

std::string FusionReasons::explainLoop(Operation *op) const {
  if (isa<KernelOpInterface>(op))
    return getKernelReason(op);
  // What would stand in a fusion if it could.
  SmallVector<int64_t> domain = FusionLayouts::getOwnDomain(op);
  if (!domain.empty()) {
    FusionLayouts layouts(domain);
    std::string reason;
    if (failed(layouts.add(op, reason)))
      return reason;
  }
  return getKernelReason(op);
}

//===----------------------------------------------------------------------===//
// Epilogues
//===----------------------------------------------------------------------===//

namespace {
/// Keeps what patterns tell notifyMatchFailure.
struct ReasonListener : RewriterBase::Listener {
  void notifyMatchFailure(Location loc,
                          function_ref<void(Diagnostic &)> callback) override {
    Diagnostic diagnostic(loc, DiagnosticSeverity::Remark);
    callback(diagnostic);
    reasons.push_back(diagnostic.str());
  }

  SmallVector<std::string> reasons;
};
} // namespace

/// Puts the operations of a fusion in its place, as they were before it was
/// formed.
static SmallVector<Operation *> takeApart(FusionOp fusion) {
  Block &body = fusion.getBody().front();
  for (auto [argument, input] :
       llvm::zip_equal(body.getArguments(), fusion.getInputs()))
    argument.replaceAllUsesWith(input);
  Operation *end = body.getTerminator();
  fusion->replaceAllUsesWith(end->getOperands());
  end->erase();
  SmallVector<Operation *> ops = llvm::map_to_vector(
      body, [](Operation &op) -> Operation * { return &op; });
  fusion->getBlock()->getOperations().splice(fusion->getIterator(),
                                             body.getOperations());
  fusion.erase();
  return ops;
}

std::string FusionReasons::askEpilogue(MatmulOp matmul,
                                       Operation *reader) const {
  IRMapping mapping;
  Operation *copy = graph.getFunction()->clone(mapping);
  llvm::scope_exit erase([&] { copy->erase(); });
  auto copied = cast<MatmulOp>(mapping.lookup(matmul.getOperation()));
  Operation *copiedReader = mapping.lookup(reader);

  // What the patterns saw: all that reads the result, by itself.
  SmallVector<Operation *> ops{copiedReader};
  for (Operation *user : llvm::to_vector(copied.getResult().getUsers()))
    if (auto fusion = dyn_cast<FusionOp>(user)) {
      SmallVector<Operation *> inner = takeApart(fusion);
      if (user == copiedReader)
        ops = std::move(inner);
    }
  llvm::SmallPtrSet<Operation *, 4> users(copied.getResult().getUsers().begin(),
                                          copied.getResult().getUsers().end());

  MLIRContext *context = copy->getContext();
  RewritePatternSet patterns(context);
  populateFuseEpiloguesPatterns(patterns, numTried);
  populateFuseCastsPatterns(patterns, numTried, numTried);
  FrozenRewritePatternSet frozen(std::move(patterns));
  PatternApplicator applicator(frozen);
  applicator.applyDefaultCostModel();
  SmallVector<std::string> told;
  bool hasMatched = false;
  for (Operation *op : ops) {
    if (!users.contains(op))
      continue;
    std::string name = op->getName().getStringRef().str();
    ReasonListener listener;
    PatternRewriter rewriter(context);
    rewriter.setListener(&listener);
    rewriter.setInsertionPoint(op);
    if (succeeded(applicator.matchAndRewrite(op, rewriter))) {
      hasMatched = true;
      continue;
    }
    if (listener.reasons.empty())
      listener.reasons.push_back("no part of an epilogue");
    std::string reason = name + ": " + llvm::join(listener.reasons, ", ");
    if (!llvm::is_contained(told, reason))
      told.push_back(std::move(reason));
  }
  if (!told.empty())
    return llvm::join(told, "; ");
  if (hasMatched)
    return "a pattern would give it to the epilogue, but no pass has";
  return (reader->getName().getStringRef() + " is no part of an epilogue")
      .str();
}

//===----------------------------------------------------------------------===//
// Fusions
//===----------------------------------------------------------------------===//

namespace {
/// A fusion of what two nodes compute, beside the program. It is erased before
/// this is gone.
class JoinedFusion {
public:
  explicit JoinedFusion(MLIRContext *context) : b(context) {}

  /// The fusion, with results for what others than `pair.second` read.
  FusionOp build(const KernelGraph &graph, const KernelPair &pair);

private:
  void add(Operation *op);
  /// What stands for `value` in the body: what was computed there, or an
  /// argument.
  Value get(Value value);
  bool isInside(Value value) const;
  void yield(Value inBody);

  OpBuilder b;
  /// The parts of scaled values, which are inputs, and what is made of all.
  Block outside, body;
  SmallVector<Value> inputs;
  IRMapping mapping;
  SmallVector<Value> yielded;
};
} // namespace

bool JoinedFusion::isInside(Value value) const {
  if (mapping.contains(value))
    return true;
  Operation *op = value.getDefiningOp();
  return isa_and_present<AssembleOp, DisassembleOp, tensor::ExpandShapeOp,
                         tensor::CollapseShapeOp, tensor::CastOp>(op) &&
         llvm::any_of(op->getOperands(),
                      [&](Value operand) { return isInside(operand); });
}

Value JoinedFusion::get(Value value) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  // Codes of the body, which left it in parts.
  if (auto assemble = dyn_cast_if_present<AssembleOp>(op))
    if (Value codes = mapping.lookupOrNull(assemble.getPayload()))
      if (auto parts = codes.getDefiningOp<DisassembleOp>())
        return parts.getSource();
  bool isEmpty = isa_and_present<tensor::EmptyOp, linalg::FillOp>(op);
  bool isConstant = op && op->hasTrait<OpTrait::ConstantLike>() &&
                    !isa<ShapedType>(value.getType());
  if (isEmpty || isConstant || isInside(value)) {
    for (Value operand : op->getOperands())
      mapping.map(operand, get(operand));
    b.clone(*op, mapping);
    return mapping.lookup(value);
  }
  SmallVector<Value> parts{value};
  auto scaled = dyn_cast<ScaledType>(value.getType());
  if (scaled) {
    OpBuilder before(b.getContext());
    before.setInsertionPointToEnd(&outside);
    Operation *op = DisassembleOp::create(before, value.getLoc(), value);
    parts.assign(op->result_begin(), op->result_end());
  }
  for (Value &part : parts) {
    inputs.push_back(part);
    part = body.addArgument(part.getType(), part.getLoc());
  }
  Value inBody = parts.front();
  if (scaled)
    inBody = AssembleOp::create(b, value.getLoc(), scaled, parts[0], parts[1],
                                parts.size() > 2 ? parts[2] : Value());
  mapping.map(value, inBody);
  return inBody;
}

void JoinedFusion::add(Operation *op) {
  if (auto fusion = dyn_cast<FusionOp>(op)) {
    Block &inner = fusion.getBody().front();
    for (auto [argument, input] :
         llvm::zip_equal(inner.getArguments(), fusion.getInputs()))
      mapping.map(argument, get(input));
    for (Operation &innerOp : inner.without_terminator())
      b.clone(innerOp, mapping);
    for (auto [result, value] : llvm::zip_equal(
             fusion.getResults(), inner.getTerminator()->getOperands()))
      mapping.map(result, mapping.lookup(value));
    return;
  }
  for (Value operand : op->getOperands())
    mapping.map(operand, get(operand));
  op->walk([&](Operation *innerOp) {
    for (Value operand : innerOp->getOperands())
      if (!op->isAncestor(operand.getParentRegion()->getParentOp()))
        mapping.map(operand, get(operand));
  });
  b.clone(*op, mapping);
}

void JoinedFusion::yield(Value inBody) {
  if (!isa<ScaledType>(inBody.getType())) {
    if (!llvm::is_contained(yielded, inBody))
      yielded.push_back(inBody);
    return;
  }
  yielded.push_back(
      DisassembleOp::create(b, inBody.getLoc(), inBody).getPayload());
}

FusionOp JoinedFusion::build(const KernelGraph &graph, const KernelPair &pair) {
  Operation *first = graph.getNodes()[pair.first].op;
  Operation *second = graph.getNodes()[pair.second].op;
  b.setInsertionPointToStart(&body);
  add(first);
  add(second);
  for (Operation *op : {first, second})
    for (Value result : op->getResults()) {
      bool isInner = op == first && !graph.isReturned(result) &&
                     llvm::all_equal(graph.getReaders(result)) &&
                     llvm::is_contained(graph.getReaders(result), pair.second);
      if (!isInner)
        yield(mapping.lookup(result));
    }
  Location loc = second->getLoc();
  YieldOp::create(b, loc, yielded);
  SmallVector<Type> types =
      llvm::map_to_vector(yielded, [](Value value) { return value.getType(); });
  OperationState state(loc, FusionOp::getOperationName());
  state.addOperands(inputs);
  state.addTypes(types);
  state.addRegion();
  auto fusion = cast<FusionOp>(Operation::create(state));
  Block &inner = fusion.getBody().emplaceBlock();
  for (BlockArgument argument : body.getArguments())
    argument.replaceAllUsesWith(
        inner.addArgument(argument.getType(), argument.getLoc()));
  inner.getOperations().splice(inner.end(), body.getOperations());
  return fusion;
}

std::string FusionReasons::askFusion(const KernelPair &pair) const {
  Operation *first = graph.getNodes()[pair.first].op;
  Operation *second = graph.getNodes()[pair.second].op;
  if (first->getBlock() != second->getBlock())
    return "they stand in different blocks";
  // Others have a meaning that no pass over memory has.
  for (Operation *op : {first, second})
    if (!isa<FusionOp, AmaxOp, ComputeScaleOp, QuantizeOp, DequantizeOp,
             TransposeOp, linalg::GenericOp>(op))
      return (op->getName().getStringRef() + " is no part of a fusion").str();
  JoinedFusion joined(first->getContext());
  FusionOp fusion = joined.build(graph, pair);
  llvm::scope_exit erase([&] { fusion.erase(); });
  ++numTried;
  std::string reason = getKernelReason(fusion);
  if (!reason.empty())
    return reason;
  SmallVector<int64_t> domain;
  fusion.getBody().walk([&](Operation *op) {
    if (SmallVector<int64_t> own = FusionLayouts::getOwnDomain(op);
        domain.size() < own.size())
      domain = own;
  });
  // As fp8-form-fusions counts.
  size_t numTensors = llvm::count_if(
      llvm::concat<Type>(llvm::to_vector(fusion->getOperandTypes()),
                         llvm::to_vector(fusion->getResultTypes())),
      [&](Type type) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        return tensor && tensor.getRank() == int64_t(domain.size()) &&
               std::is_permutation(tensor.getShape().begin(),
                                   tensor.getShape().end(), domain.begin());
      });
  if (numTensors > kMaxFusionTensors)
    return ("one pass would read and write " + Twine(numTensors) +
            " tensors, more than " + Twine(kMaxFusionTensors))
        .str();
  return "a kernel would compute both, but no pass joins them";
}

/// Explains products that need nothing of each other.
static std::string explainProducts(Operation *first, Operation *second) {
  auto lhs = dyn_cast<MatmulOp>(first), rhs = dyn_cast<MatmulOp>(second);
  bool sharesA = lhs && rhs && lhs.getA() == rhs.getA();
  bool sharesB = lhs && rhs && lhs.getB() == rhs.getB();
  if (!sharesA && !sharesB)
    return "a kernel computes products of one operand only";
  std::string reason;
  if (failed(MatmulSpec::joinSiblings({lhs, rhs}, sharesA, reason)))
    return reason;
  return "by the model of their time, one launch for both takes longer";
}

/// Explains products of which the second needs the first.
static std::string explainPair(Operation *firstOp, Operation *secondOp) {
  auto first = dyn_cast<MatmulOp>(firstOp),
       second = dyn_cast<MatmulOp>(secondOp);
  if (!first || !second || first.getA() != second.getA() ||
      !llvm::is_contained(second.getEpilogueOperands(), first.getResult()))
    return "tiles of a launch do not wait for those of another product";
  if (!first.getResult().hasOneUse())
    return "others read the first one's result too";
  std::string reason;
  if (failed(MatmulSpec::joinDual(first, second, reason)))
    return reason;
  return "by the model of their time, one tile of both takes longer";
}

std::string FusionReasons::explain(
    const KernelPair &pair,
    llvm::function_ref<std::string(unsigned)> describe) const {
  const KernelNode &first = graph.getNodes()[pair.first];
  const KernelNode &second = graph.getNodes()[pair.second];
  if (std::optional<unsigned> between =
          graph.findBetween(pair.first, pair.second))
    return "the second one needs " + describe(*between) +
           ", which needs the first one";
  if (first.isContraction() && second.isContraction())
    return pair.flows.empty() ? explainProducts(first.op, second.op)
                              : explainPair(first.op, second.op);
  if (auto matmul = dyn_cast<MatmulOp>(first.op); matmul && !pair.flows.empty())
    return askEpilogue(matmul, second.op);
  if (isa<GroupedMatmulOp>(first.op) && !pair.flows.empty())
    return "no pass moves anything into the epilogue of a grouped product";
  if (isa<MatmulOp>(second.op) && !pair.flows.empty())
    return "what an epilogue reads is computed before its matmul";
  if (first.isContraction() || second.isContraction())
    return "the kernel of a product computes nothing else of its operands";
  return askFusion(pair);
}

//===- EvaluateConstants.cpp - Constant weights, quantized once -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Enters: a program at the end of phase `fusion`. Leaves: the same, with codes
// and factors that follow from constants as constants.
//
// There is no second implementation of the arithmetic here. What is to be
// evaluated goes through phases 5 to 7 and the engine, as it would have gone
// with the rest of the program.
//
//===----------------------------------------------------------------------===//

#include "ConstantProgram.h"
#include "SplatConstants.h"
#include "TargetPipelines.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Pipelines/Passes.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-evaluate-constants"

namespace mlir::fp8 {
#define GEN_PASS_DEF_EVALUATECONSTANTSPASS
#include "fp8/Pipelines/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// What is evaluated
//===----------------------------------------------------------------------===//

/// Values that `op` or its regions use.
static SetVector<Value> getInputs(Operation *op) {
  SetVector<Value> inputs;
  inputs.insert(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), inputs);
  return inputs;
}

/// Whether `op`, given constants, gives the same bytes wherever it runs.
static bool canEvaluate(Operation *op) {
  if (!isPure(op) || op->getNumResults() == 0 ||
      !llvm::all_of(op->getResultTypes(),
                    [](Type type) { return getByteSize(type).has_value(); }))
    return false;
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return !isa<ShapedType>(constant.getType()) || isArgument(constant);
  if (auto quantize = dyn_cast<QuantizeOp>(op))
    return !quantize.isUnresolved();
  if (isa<AmaxOp, AssembleOp, ComputeScaleOp, DequantizeOp, DisassembleOp,
          MeasureOp, TransposeOp>(op))
    return true;
  // Sums are left out: their order is not ours to promise.
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return linalgOp.getNumLoops() == linalgOp.getNumParallelLoops();
  if (isa_and_present<tensor::TensorDialect>(op->getDialect()))
    return true;
  return isa_and_present<arith::ArithDialect, math::MathDialect>(
             op->getDialect()) &&
         llvm::none_of(op->getResultTypes(), llvm::IsaPred<ShapedType>);
}

/// Codes, factors and what is said of them; not the high-precision values on
/// the way, which take more room, nor a transposed copy, which would take as
/// much again: a CPU reads it through strides, and slower at that.
static bool isWanted(Value value) {
  if (isa_and_present<FP8Dialect>(value.getDefiningOp()->getDialect()))
    return !isa<DequantizeOp, TransposeOp>(value.getDefiningOp());
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto element =
      type ? dyn_cast<FloatType>(type.getElementType()) : FloatType();
  return element && element.getWidth() <= 8;
}

namespace {
class ConstantFinder {
public:
  explicit ConstantFinder(ModuleOp module) { visit(module); }

  SmallVector<ConstantComputation> getComputations();

private:
  void visit(ModuleOp module);
  /// Collects the values in `value` and its operands, outermost first, that
  /// are wanted.
  void collectRoots(Value value);
  /// The operations that `root` follows from, in program order.
  SmallVector<Operation *> getSlice(Value root);
  bool isWorthIt(Value root, ArrayRef<Operation *> slice);

  /// Operations that can be evaluated, in an order in which definitions precede
  /// uses, and whether each follows from a constant tensor.
  llvm::MapVector<Operation *, bool> evaluable;
  /// Values that the rest of the program uses.
  SetVector<Value> roots;
  DenseSet<Operation *> visited;
};

struct EvaluateConstantsPass
    : fp8::impl::EvaluateConstantsPassBase<EvaluateConstantsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override;
  void runOnOperation() override;

private:
  LogicalResult evaluate(ArrayRef<ConstantComputation> computations,
                         SmallVector<SmallVector<TypedAttr>> &values);
  void replace(const ConstantComputation &computation,
               ArrayRef<TypedAttr> parts);
};
} // namespace

void ConstantFinder::visit(ModuleOp module) {
  SmallVector<Operation *> others;
  module.walk<WalkOrder::PreOrder>([&](Operation *op) {
    bool isConstant = canEvaluate(op);
    bool isTensor = isa<arith::ConstantOp>(op) &&
                    isa<ShapedType>(op->getResult(0).getType());
    if (isConstant)
      for (Value input : getInputs(op)) {
        auto it = evaluable.find(input.getDefiningOp());
        isConstant &= it != evaluable.end();
        isTensor |= it != evaluable.end() && it->second;
      }
    if (!isConstant) {
      others.push_back(op);
      return WalkResult::advance();
    }
    evaluable.insert({op, isTensor});
    return WalkResult::skip();
  });
  for (Operation *op : others)
    for (Value operand : op->getOperands())
      collectRoots(operand);
}

void ConstantFinder::collectRoots(Value value) {
  SmallVector<Value> worklist{value};
  while (!worklist.empty()) {
    value = worklist.pop_back_val();
    Operation *op = value.getDefiningOp();
    if (!evaluable.contains(op))
      continue;
    if (isWanted(value))
      roots.insert(value);
    else if (visited.insert(op).second)
      llvm::append_range(worklist, getInputs(op));
  }
}

SmallVector<Operation *> ConstantFinder::getSlice(Value root) {
  SetVector<Operation *> found;
  found.insert(root.getDefiningOp());
  for (size_t at = 0; at < found.size(); ++at)
    for (Value input : getInputs(found[at]))
      found.insert(input.getDefiningOp());
  SmallVector<Operation *> slice = found.takeVector();
  llvm::sort(slice, [&](Operation *a, Operation *b) {
    return evaluable.find(a) < evaluable.find(b);
  });
  return slice;
}

bool ConstantFinder::isWorthIt(Value root, ArrayRef<Operation *> slice) {
  // Constants, only put together.
  if (llvm::all_of(slice, llvm::IsaPred<arith::ConstantOp, AssembleOp>))
    return false;
  if (!evaluable.lookup(root.getDefiningOp()))
    return false;
  int64_t available = 0;
  for (Operation *op : slice)
    if (isa<arith::ConstantOp>(op) && evaluable.lookup(op))
      available += *getByteSize(op->getResult(0).getType());
  // What fills memory is left to whoever runs the program; splats do not.
  constexpr int64_t mostBytes = int64_t(1) << 32;
  bool isOfSplats = llvm::all_of(slice, [](Operation *op) {
    auto constant = dyn_cast<arith::ConstantOp>(op);
    return !constant || isa<SplatElementsAttr>(constant.getValue()) ||
           !isa<ShapedType>(constant.getType());
  });
  if (isOfSplats && available > mostBytes &&
      !shrinkSplats({SmallVector<Operation *>(slice), {root}},
                    std::make_unique<Block>().get()))
    return false;
  // Small ones may grow: a scale takes more than the one bf16 that it is of.
  constexpr int64_t smallBytes = 4096;
  return *getByteSize(root.getType()) <= std::max(2 * available, smallBytes);
}

SmallVector<ConstantComputation> ConstantFinder::getComputations() {
  // Roots that share work go into one computation; what follows from no
  // constant tensor, such as an empty tensor, is no work.
  llvm::EquivalenceClasses<Operation *> classes;
  llvm::MapVector<Value, SmallVector<Operation *>> slices;
  for (Value root : roots) {
    SmallVector<Operation *> slice = getSlice(root);
    bool isWorthwhile = isWorthIt(root, slice);
    LDBG() << (isWorthwhile ? "evaluated: "
                            : "not evaluated, for it is small work or a large "
                              "result: ")
           << root;
    if (!isWorthwhile)
      continue;
    for (Operation *op : slice)
      if (evaluable.lookup(op) && !isa<arith::ConstantOp>(op))
        classes.unionSets(root.getDefiningOp(), op);
    slices.insert({root, std::move(slice)});
  }

  llvm::MapVector<Operation *, SetVector<Operation *>> ops;
  llvm::MapVector<Operation *, SmallVector<Value>> results;
  for (auto &[root, slice] : slices) {
    Operation *leader = classes.getLeaderValue(root.getDefiningOp());
    ops[leader].insert(slice.begin(), slice.end());
    results[leader].push_back(root);
  }
  SmallVector<ConstantComputation> computations;
  for (auto &[leader, members] : ops) {
    ConstantComputation computation{members.takeVector(), results[leader]};
    llvm::sort(computation.ops, [&](Operation *a, Operation *b) {
      return evaluable.find(a) < evaluable.find(b);
    });
    computations.push_back(std::move(computation));
  }
  return computations;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// What programs for the CPU have, but for tiles: their loops call the runtime,
/// which a compiler need not have loaded.
static void buildLowering(OpPassManager &pm) {
  addLinalgPasses(pm);
  addBufferPasses(pm);
  buildCPUKernelPipeline(pm);
  buildCPUHostPipeline(pm);
}

void EvaluateConstantsPass::getDependentDialects(
    DialectRegistry &registry) const {
  Base::getDependentDialects(registry);
  OpPassManager lowering(ModuleOp::getOperationName());
  buildLowering(lowering);
  lowering.getDependentDialects(registry);
  // The context takes no translation while passes run.
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

LogicalResult
EvaluateConstantsPass::evaluate(ArrayRef<ConstantComputation> computations,
                                SmallVector<SmallVector<TypedAttr>> &values) {
  // A pass may run others on what lies inside of its operation only.
  auto builder = OpBuilder::atBlockEnd(getOperation().getBody());
  auto module = ModuleOp::create(builder, getOperation().getLoc());
  llvm::scope_exit erase([&] { module.erase(); });
  ConstantProgram program(module);
  // A few elements of a splat say what all are.
  Block splats;
  SmallVector<bool> areSplats;
  for (const ConstantComputation &computation : computations) {
    std::optional<ConstantComputation> small =
        shrinkSplats(computation, &splats);
    program.add(small ? *small : computation);
    areSplats.push_back(small.has_value());
  }
  numFunctions += program.getNumFunctions();

  OpPassManager lowering(ModuleOp::getOperationName());
  buildLowering(lowering);
  if (failed(runPipeline(lowering, module)))
    return failure();
  auto outcome = program.run();
  if (!outcome)
    return getOperation().emitError("constants cannot be evaluated: ")
           << llvm::toString(outcome.takeError());
  values = std::move(*outcome);
  for (auto [computation, parts, isSplat] :
       llvm::zip_equal(computations, values, areSplats))
    if (isSplat && !expandSplats(computation, parts))
      return getOperation().emitError(
          "constants cannot be evaluated: expected a splat of equal codes");
  return success();
}

void EvaluateConstantsPass::replace(const ConstantComputation &computation,
                                    ArrayRef<TypedAttr> parts) {
  for (Value result : computation.results) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfterValue(result);
    Location loc = result.getLoc();
    SmallVector<Value> constants;
    for (RankedTensorType type : getPartTypes(result.getType())) {
      TypedAttr part = parts.consume_front();
      if (!isa<ShapedType>(result.getType()) &&
          !isa<ScaledType>(result.getType()))
        part = cast<DenseElementsAttr>(part).getSplatValue<TypedAttr>();
      bytesAdded += *getByteSize(type);
      constants.push_back(arith::ConstantOp::create(builder, loc, part));
    }
    Value replacement = constants.front();
    if (isa<ScaledType>(result.getType()))
      replacement = AssembleOp::create(builder, loc, result.getType(),
                                       constants, ArrayRef<NamedAttribute>());
    result.replaceAllUsesWith(replacement);
    ++numEvaluated;
  }
}

void EvaluateConstantsPass::runOnOperation() {
  SmallVector<ConstantComputation> computations =
      ConstantFinder(getOperation()).getComputations();
  if (computations.empty())
    return markAllAnalysesPreserved();
  SmallVector<SmallVector<TypedAttr>> values;
  if (failed(evaluate(computations, values)))
    return signalPassFailure();
  for (auto [computation, parts] : llvm::zip_equal(computations, values))
    replace(computation, parts);

  // Uses before definitions; constants may serve several computations.
  DenseSet<Operation *> erased;
  for (const ConstantComputation &computation : computations)
    for (Operation *op : llvm::reverse(computation.ops)) {
      if (erased.contains(op) || !isOpTriviallyDead(op))
        continue;
      if (auto constant = dyn_cast<arith::ConstantOp>(op))
        if (isArgument(constant))
          bytesRemoved += *getByteSize(constant.getType());
      erased.insert(op);
      op->erase();
    }
}

//===- LaunchKernels.cpp - Operations with a kernel to launches -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BranchDestinations.h"
#include "fp8/GPU/IR/FP8GPUOps.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LAUNCHKERNELSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Whether `op` or something in it waits for its turn to be launched.
static bool hasKernel(Operation *op) {
  return op
      ->walk([](Operation *nested) {
        return nested->hasAttr(kKernelAttrName) ? WalkResult::interrupt()
                                                : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Erases `op`, and then what nobody uses any more of that which made its
/// operands, other than kernels. Each operation is looked at once for each of
/// its uses, however many paths lead to it.
static void eraseWithDeadOperands(Operation *op) {
  llvm::SmallSetVector<Operation *, 8> worklist;
  auto erase = [&](Operation *dead) {
    SmallVector<Value> operands(dead->getOperands());
    dead->erase();
    for (Value operand : operands)
      if (Operation *definition = operand.getDefiningOp())
        worklist.insert(definition);
  };
  erase(op);
  while (!worklist.empty()) {
    Operation *candidate = worklist.pop_back_val();
    if (isOpTriviallyDead(candidate) && !hasKernel(candidate))
      erase(candidate);
  }
}

static FailureOr<LaunchOp> launch(OpBuilder &builder, KernelOpInterface op,
                                  SymbolRefAttr symbol,
                                  const KernelOperands &operands,
                                  SymbolTableCollection &symbols) {
  if (!symbol)
    return op->emitOpError("expected every entry of '")
           << kFewRowsAttrName << "' to have a kernel";
  Operation *kernel = symbols.lookupNearestSymbolFrom(op, symbol);
  auto description = kernel ? kernel->getAttrOfType<LaunchAttr>(kLaunchAttrName)
                            : LaunchAttr();
  if (!description)
    return op->emitOpError("expected a kernel with the attribute '")
           << kLaunchAttrName << "', but got " << symbol;
  return LaunchOp::create(
      builder, op.getLoc(), TypeRange(ValueRange(operands.outs)), symbol,
      description, operands.ins, operands.captures, operands.outs);
}

/// The results of the first of `choices` that has enough rows, or of `symbol`.
static FailureOr<SmallVector<Value>>
launch(OpBuilder &builder, KernelOpInterface op, ArrayRef<FewRowsAttr> choices,
       SymbolRefAttr symbol, Value rows, const KernelOperands &operands,
       SymbolTableCollection &symbols) {
  if (choices.empty()) {
    FailureOr<LaunchOp> launched =
        launch(builder, op, symbol, operands, symbols);
    if (failed(launched))
      return failure();
    return SmallVector<Value>(launched->getResults());
  }
  Location loc = op.getLoc();
  Value most =
      arith::ConstantIndexOp::create(builder, loc, choices[0].getMost());
  Value isFew = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle,
                                      rows, most);
  auto choice = scf::IfOp::create(builder, loc,
                                  TypeRange(ValueRange(operands.outs)), isFew,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  for (bool few : {true, false}) {
    builder.setInsertionPointToStart(few ? choice.thenBlock()
                                         : choice.elseBlock());
    FailureOr<SmallVector<Value>> results = launch(
        builder, op, few ? ArrayRef<FewRowsAttr>() : choices.drop_front(),
        few ? choices[0].getKernel() : symbol, rows, operands, symbols);
    if (failed(results))
      return failure();
    scf::YieldOp::create(builder, loc, *results);
  }
  return SmallVector<Value>(choice.getResults());
}

namespace {
/// A kernel for any number of rows, behind those for few.
struct Kernels {
  SmallVector<FewRowsAttr> choices;
  SymbolRefAttr symbol;

  explicit Kernels(KernelOpInterface op)
      : symbol(op->getAttrOfType<SymbolRefAttr>(kKernelAttrName)) {
    if (auto fewRows = op->getAttrOfType<ArrayAttr>(kFewRowsAttrName))
      llvm::append_range(choices, fewRows.getAsRange<FewRowsAttr>());
  }
};
} // namespace

/// Where a kernel comes back for more rows, `kernels` become each one once,
/// with its number in place of rows; the result is the number of the one that
/// computes `rows`. A launch is a lot of code, a number is an instruction or
/// two. Otherwise nothing changes.
static Value numberKernels(OpBuilder &builder, Location loc, Kernels &kernels,
                           Value rows) {
  SmallVector<FewRowsAttr> choices = kernels.choices, once;
  auto find = [&](SymbolRefAttr symbol) {
    return llvm::find_if(
        once, [&](FewRowsAttr choice) { return choice.getKernel() == symbol; });
  };
  for (FewRowsAttr choice : choices)
    if (find(choice.getKernel()) == once.end())
      once.push_back(FewRowsAttr::get(builder.getContext(), once.size(),
                                      choice.getConfig(), choice.getKernel()));
  auto getConstant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(builder, loc, value);
  };
  auto getNumber = [&](SymbolRefAttr symbol) {
    return getConstant(find(symbol) - once.begin());
  };
  bool isRepeated = find(kernels.symbol) != once.end();
  if (!isRepeated && once.size() == choices.size())
    return rows;
  Value number = getNumber(kernels.symbol);
  for (FewRowsAttr choice : llvm::reverse(choices)) {
    Value isFew = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sle,
                                        rows, getConstant(choice.getMost()));
    number = arith::SelectOp::create(builder, loc, isFew,
                                     getNumber(choice.getKernel()), number);
  }
  if (isRepeated)
    kernels.symbol = once.pop_back_val().getKernel();
  kernels.choices = std::move(once);
  return number;
}

static FailureOr<SmallVector<Value>>
launch(OpBuilder &builder, KernelOpInterface op, const Kernels &kernels,
       const KernelOperands &operands, SymbolTableCollection &symbols) {
  Value rows;
  if (!kernels.choices.empty()) {
    Value out = operands.outs.front();
    int64_t rank = cast<RankedTensorType>(out.getType()).getRank();
    if (rank < 2)
      return op->emitOpError("expected a first result with rows, as it has '")
             << kFewRowsAttrName << "', but got " << out.getType();
    rows = builder.createOrFold<tensor::DimOp>(op.getLoc(), out, rank - 2);
  }
  Kernels once = kernels;
  if (!kernels.choices.empty())
    rows = numberKernels(builder, op.getLoc(), once, rows);
  FailureOr<SmallVector<Value>> results =
      launch(builder, op, once.choices, once.symbol, rows, operands, symbols);
  if (failed(results))
    return failure();
  return op.buildResults(builder, *results);
}

/// Whether the rows of `operands` begin where the kernels want them, as far as
/// that shows at run time; null if they do as far as is known.
static Value checkRows(OpBuilder &builder, KernelOpInterface op,
                       const Kernels &kernels, const KernelOperands &operands,
                       SymbolTableCollection &symbols) {
  Location loc = op.getLoc();
  SmallVector<Value> arguments(operands.ins);
  llvm::append_range(arguments, operands.outs);
  SmallVector<int64_t> multiples(arguments.size(), 1);
  auto raise = [&](SymbolRefAttr symbol) {
    Operation *kernel =
        symbol ? symbols.lookupNearestSymbolFrom(op, symbol) : nullptr;
    auto description = kernel
                           ? kernel->getAttrOfType<LaunchAttr>(kLaunchAttrName)
                           : LaunchAttr();
    if (!description)
      return;
    for (auto [multiple, argument] :
         llvm::zip(multiples,
                   description.getArguments().getAsRange<KernelArgumentAttr>()))
      // Bits have no bytes of their own, and rows of theirs are whole bytes.
      multiple = std::max(multiple,
                          argument.getAlignment() /
                              std::max<int64_t>(argument.getElementBytes(), 1));
  };
  raise(kernels.symbol);
  for (FewRowsAttr choice : kernels.choices)
    raise(choice.getKernel());
  Value areAligned;
  for (auto [argument, multiple] : llvm::zip_equal(arguments, multiples)) {
    auto type = dyn_cast<RankedTensorType>(argument.getType());
    int64_t rank = type ? type.getRank() : 0;
    if (multiple == 1 || rank < 2 || !type.isDynamicDim(rank - 1))
      continue;
    auto constant = [&](int64_t value) {
      return arith::ConstantIndexOp::create(builder, loc, value);
    };
    Value extent = tensor::DimOp::create(builder, loc, argument, rank - 1);
    Value isAligned = arith::CmpIOp::create(
        builder, loc, arith::CmpIPredicate::eq,
        arith::RemUIOp::create(builder, loc, extent, constant(multiple)),
        constant(0));
    areAligned =
        areAligned ? arith::AndIOp::create(builder, loc, areAligned, isAligned)
                         .getResult()
                   : isAligned;
  }
  return areAligned;
}

/// Moves what only `op` needs, and has no effects, in front of it.
static void sinkOperands(Operation *op) {
  SmallVector<Value> values(op->getOperands());
  while (!values.empty()) {
    Operation *source = values.pop_back_val().getDefiningOp();
    if (!source || source->getBlock() == op->getBlock() ||
        !isMemoryEffectFree(source) ||
        !llvm::all_of(source->getUsers(), [&](Operation *user) {
          return op->getBlock()->findAncestorOpInBlock(*user);
        }))
      continue;
    source->moveBefore(&op->getBlock()->front());
    llvm::append_range(values, source->getOperands());
  }
}

/// A launch if rows begin where the kernel wants them, and else the operation
/// as one without a kernel.
static LogicalResult launchIf(OpBuilder &builder, Value areAligned,
                              KernelOpInterface op, const Kernels &kernels,
                              SymbolTableCollection &symbols) {
  Location loc = op.getLoc();
  auto choice = scf::IfOp::create(builder, loc, op->getResultTypes(),
                                  areAligned, /*withElseRegion=*/true);
  builder.setInsertionPointToStart(choice.thenBlock());
  FailureOr<SmallVector<Value>> results =
      launch(builder, op, kernels, op.getKernelOperands(builder), symbols);
  if (failed(results))
    return failure();
  scf::YieldOp::create(builder, loc, *results);
  builder.setInsertionPointToStart(choice.elseBlock());
  Operation *other = builder.clone(*op);
  for (StringRef name : {kConfigAttrName, kKernelAttrName, kFewRowsAttrName})
    other->removeAttr(name);
  scf::YieldOp::create(builder, loc, other->getResults());
  op->replaceAllUsesWith(choice.getResults());
  op.erase();
  sinkOperands(other);
  return success();
}

static LogicalResult launch(KernelOpInterface op,
                            SymbolTableCollection &symbols) {
  OpBuilder builder(op);
  KernelOperands operands = op.getKernelOperands(builder);
  Kernels kernels(op);
  if (Value areAligned = checkRows(builder, op, kernels, operands, symbols))
    return launchIf(builder, areAligned, op, kernels, symbols);
  FailureOr<SmallVector<Value>> results =
      launch(builder, op, kernels, operands, symbols);
  if (failed(results))
    return failure();
  op->replaceAllUsesWith(*results);
  eraseWithDeadOperands(op);
  return success();
}

namespace {
struct LaunchKernelsPass : fp8::impl::LaunchKernelsPassBase<LaunchKernelsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override {
    // A kernel whose results only dead operations use is dead itself. What a
    // kernel was built from stays, dead or not: its arguments are in the order
    // in which that reads them.
    getOperation().walk<WalkOrder::PreOrder>([](Operation *op) {
      if (op->hasAttr(kKernelAttrName))
        return WalkResult::skip();
      if (!isOpTriviallyDead(op) || hasKernel(op))
        return WalkResult::advance();
      eraseWithDeadOperands(op);
      return WalkResult::skip();
    });
    SmallVector<KernelOpInterface> ops;
    getOperation().walk([&](KernelOpInterface op) {
      if (op->hasAttr(kKernelAttrName))
        ops.push_back(op);
    });
    // Users first: what a kernel reads in place of an operand, as factors
    // before they are transposed, it finds through the operation that makes
    // that.
    SymbolTableCollection symbols;
    for (KernelOpInterface op : llvm::reverse(ops)) {
      if (isOpTriviallyDead(op))
        eraseWithDeadOperands(op);
      else if (failed(launch(op, symbols)))
        return signalPassFailure();
    }
    shareDestinations(getOperation());
  }
};
} // namespace

//===- FoldLifts.cpp - Let matmuls read packed weights --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulClocks.h"
#include "fp8/IR/FoldedReads.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/CallInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-fold-lifts"

namespace mlir::fp8 {
#define GEN_PASS_DEF_FOLDLIFTSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct FoldLiftsPass : fp8::impl::FoldLiftsPassBase<FoldLiftsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;
};
} // namespace

/// Whether `use` is the B of a matmul, grouped or not, and no other operand.
static bool isB(OpOperand &use) {
  auto isBOf = [&](auto op) {
    return op && op.getBMutable().get() == use.get() && op.getA() != use.get();
  };
  Operation *reader = use.getOwner();
  return isBOf(dyn_cast<MatmulOp>(reader)) ||
         isBOf(dyn_cast<GroupedMatmulOp>(reader));
}

/// The matmuls that read `lift` as their B; nothing if anything else reads it.
static SmallVector<Operation *> getReaders(LiftOp lift) {
  SmallVector<Operation *> readers;
  for (Operation *user : lift->getUsers()) {
    auto assemble = dyn_cast<AssembleOp>(user);
    if (!assemble)
      return {};
    for (OpOperand &use : assemble.getResult().getUses()) {
      if (!isB(use))
        return {};
      readers.push_back(use.getOwner());
    }
  }
  return readers;
}

static SmallVector<Operation *> getReaders(DequantizeOp dequantize) {
  SmallVector<Operation *> readers;
  for (OpOperand &use : dequantize.getResult().getUses()) {
    if (!isB(use))
      return {};
    readers.push_back(use.getOwner());
  }
  return readers;
}

/// Whether kernels may read what is dequantized: codes and factors that are in
/// memory before, with a tensor's factor, if there is one, of 1.
static bool canFold(DequantizeOp dequantize) {
  Value source = dequantize.getSource();
  auto type = cast<ScaledType>(source.getType());
  Type element = dequantize.getResult().getType().getElementType();
  if (getLifting(type) == Lifting::None ||
      !(element.isBF16() || element.isF16()) ||
      source.getDefiningOp<QuantizeOp>())
    return false;
  if (!type.getHasTensorScale())
    return true;
  auto assemble = source.getDefiningOp<AssembleOp>();
  if (!assemble)
    return false;
  // What is quantized here is in bf16 for nothing.
  auto parts = assemble.getPayload().getDefiningOp<DisassembleOp>();
  if (parts && parts.getSource().getDefiningOp<QuantizeOp>())
    return false;
  DenseFPElementsAttr factor;
  return matchPattern(assemble.getTensorScaleInv(), m_Constant(&factor)) &&
         factor.isSplat() &&
         factor.getSplatValue<APFloat>().isExactlyValue(1.0);
}

static bool isArranged(DequantizeOp dequantize) {
  auto assemble = dequantize.getSource().getDefiningOp<AssembleOp>();
  return assemble && areArranged(assemble.getPayload());
}

/// The operands of `call` that are arranged codes to the function, none if
/// nobody knows which one that is.
static BitVector findArranged(CallOpInterface call) {
  BitVector arranged(call->getNumOperands());
  auto function =
      dyn_cast_if_present<FunctionOpInterface>(call.resolveCallable());
  if (!function || function.isExternal())
    return arranged;
  OperandRange operands = call.getArgOperands();
  for (auto [number, parameter] :
       llvm::enumerate(function.getArguments().take_front(operands.size())))
    if (areArranged(parameter))
      arranged.set(operands.getBeginOperandIndex() + number);
  return arranged;
}

/// Who reads arranged codes and is no kernel that knows how they lie; null if
/// there is nobody.
static Operation *findOtherReader(Value codes) {
  for (OpOperand &use : codes.getUses()) {
    Operation *user = use.getOwner();
    if (auto lift = dyn_cast<LiftOp>(user); lift && lift.getFolded())
      continue;
    if (auto call = dyn_cast<CallOpInterface>(user);
        call && findArranged(call).test(use.getOperandNumber()))
      continue;
    auto assemble = dyn_cast<AssembleOp>(user);
    if (!assemble || assemble.getPayload() != codes)
      return user;
    for (Operation *reader : assemble.getResult().getUsers()) {
      Operation *other = reader;
      if (auto parts = dyn_cast<DisassembleOp>(reader))
        other = findOtherReader(parts.getPayload());
      else if (auto read = dyn_cast<DequantizeOp>(reader);
               read && isFolded(read))
        other = nullptr;
      if (other)
        return other;
    }
  }
  return nullptr;
}

/// Fails if anything but a kernel reads codes as kernels want them.
static LogicalResult checkArranged(ModuleOp module) {
  LogicalResult result = success();
  module.walk([&](FunctionOpInterface function) {
    if (function.isExternal())
      return;
    for (BlockArgument argument : function.getArguments()) {
      if (!function.getArgAttr(argument.getArgNumber(), kArrangedAttrName))
        continue;
      Operation *other = findOtherReader(argument);
      if (!other)
        continue;
      result = other->emitError(
          "expected arranged weights to be the B of matmuls that have a kernel "
          "for them on this target: give others plain ones");
    }
  });
  module.walk([&](CallOpInterface call) {
    BitVector arranged = findArranged(call);
    for (unsigned number : arranged.set_bits())
      if (!areArranged(call->getOperand(number)))
        result = call.emitError("expected arranged weights as operand ")
                 << number << ", but got plain ones";
  });
  return result;
}

static std::optional<double> getCost(ArrayRef<Operation *> ops,
                                     const KernelTarget &target) {
  double sum = 0;
  for (Operation *op : ops) {
    std::optional<double> cost = getExpectedClocks(op, target);
    if (!cost)
      return std::nullopt;
    sum += *cost;
  }
  return sum;
}

/// Folds codes where that takes less time than bf16 in memory, or, with any
/// number of rows, always: it takes less memory.
static bool tryFold(DequantizeOp dequantize, const KernelTarget &target) {
  if (!canFold(dequantize) || isFolded(dequantize))
    return false;
  SmallVector<Operation *> readers = getReaders(dequantize);
  if (readers.empty())
    return false;
  std::optional<double> apart = getCost(readers, target);
  dequantize->setAttr(kFoldedAttrName, UnitAttr::get(dequantize.getContext()));
  std::optional<double> folded = getCost(readers, target);
  auto type = cast<ScaledType>(dequantize.getSource().getType());
  // Nobody else can read codes that lie as kernels read them.
  bool pays = folded && (isArranged(dequantize) || !apart ||
                         !llvm::all_of(readers, knowsRows) ||
                         *folded < *apart + getDecodeClocks(type, target));
  LDBG() << (pays ? "folded: " : "not folded: ") << dequantize << ", "
         << folded.value_or(0) << " clocks for " << apart.value_or(0);
  if (!pays)
    dequantize->removeAttr(kFoldedAttrName);
  return pays;
}

void FoldLiftsPass::runOnOperation() {
  ModuleOp module = getOperation();
  if (chip.empty()) {
    if (failed(checkArranged(module)))
      signalPassFailure();
    return;
  }
  FailureOr<KernelTarget> target = lookupChip(module, chip);
  if (failed(target))
    return signalPassFailure();
  module.walk([&](LiftOp lift) {
    SmallVector<Operation *> readers = getReaders(lift);
    if (readers.empty())
      return;
    lift.setFolded(true);
    if (llvm::all_of(readers,
                     [&](Operation *op) { return hasKernel(op, *target); })) {
      ++numFolded;
      return;
    }
    lift.setFolded(false);
    lift.emitRemark() << "weights are lifted in memory: no kernel reads them "
                         "packed for each matmul of them";
  });
  module.walk([&](DequantizeOp dequantize) {
    numFolded += tryFold(dequantize, *target);
  });
  if (failed(checkArranged(module)))
    signalPassFailure();
}

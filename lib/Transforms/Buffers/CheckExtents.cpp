//===- CheckExtents.cpp - Checks of what only shows at run time -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/RuntimeVerifiableOpInterface.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CHECKEXTENTSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Whether the verifier has seen all that a check would see.
static bool isVerified(Operation *op) {
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  return linalgOp && !linalgOp.hasDynamicShape();
}

/// Whether `extent` follows from those of tensors, which exist.
static bool isOfTensors(Value extent, int64_t depth = 6) {
  Operation *op = extent.getDefiningOp();
  if (!op || depth == 0)
    return false;
  if (matchPattern(extent, m_Constant()) ||
      isa<tensor::DimOp, memref::DimOp>(op))
    return true;
  return isa_and_present<affine::AffineDialect, arith::ArithDialect>(
             op->getDialect()) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isa<IndexType>(operand.getType()) &&
                  isOfTensors(operand, depth - 1);
         });
}

/// Extents that no tensor has yet, which may be any number.
static SmallVector<Value> getNewExtents(Operation *op) {
  if (!isa<tensor::EmptyOp, tensor::GenerateOp, tensor::SplatOp,
           bufferization::AllocTensorOp, memref::AllocOp>(op) ||
      !cast<ShapedType>(op->getResult(0).getType()).getNumDynamicDims())
    return {};
  SmallVector<Value> extents;
  for (Value operand : op->getOperands())
    if (isa<IndexType>(operand.getType()))
      extents.push_back(operand);
  // What a loop's iterations allocate is a part of something.
  bool areKnown =
      op->getParentOfType<scf::ForallOp>() ||
      llvm::all_of(extents, [](Value extent) { return isOfTensors(extent); });
  return areKnown ? SmallVector<Value>() : extents;
}

/// Compares the bytes of what `op` makes with what can be counted: a product
/// that wrapped would be memory for less.
static void checkSize(OpBuilder &b, Operation *op, ArrayRef<Value> extents) {
  Location loc = op->getLoc();
  auto type = cast<ShapedType>(op->getResult(0).getType());
  Type element = type.getElementType();
  int64_t fixed = element.isIntOrFloat()
                      ? llvm::divideCeil(element.getIntOrFloatBitWidth(), 8)
                      : 16;
  for (int64_t extent : type.getShape())
    if (!ShapedType::isDynamic(extent))
      fixed = llvm::SaturatingMultiply<uint64_t>(fixed, extent);
  Type i64 = b.getI64Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  };
  Value bytes = constant(fixed), high = constant(0);
  for (Value extent : extents) {
    Value wide = arith::IndexCastOp::create(b, loc, i64, extent);
    auto product = arith::MulUIExtendedOp::create(b, loc, bytes, wide);
    bytes = product.getLow();
    high = arith::OrIOp::create(b, loc, high, product.getHigh());
  }
  Value fits = arith::AndIOp::create(
      b, loc,
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, high,
                            constant(0)),
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sge, bytes,
                            constant(0)));
  std::string message;
  llvm::raw_string_ostream(message)
      << "cannot allocate " << type << ": expected extents of fewer than 2^63 "
      << "bytes";
  cf::AssertOp::create(b, loc, fits, message);
}

namespace {
struct CheckExtentsPass : fp8::impl::CheckExtentsPassBase<CheckExtentsPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void CheckExtentsPass::runOnOperation() {
  llvm::SmallPtrSet<Block *, 4> tiles;
  SmallVector<RuntimeVerifiableOpInterface> operations;
  SmallVector<Operation *> allocations;
  getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto loop = dyn_cast<scf::ForallOp>(op))
      if (loop->removeAttr(kTilesAttrName))
        tiles.insert(loop.getBody());
    // What an element decides, such as the row that it reads, is in a region of
    // its own.
    auto checked = dyn_cast<RuntimeVerifiableOpInterface>(op);
    if (checked && !isVerified(op) && !tiles.contains(op->getBlock()))
      operations.push_back(checked);
    if (!getNewExtents(op).empty())
      allocations.push_back(op);
  });
  OpBuilder b(&getContext());
  for (Operation *op : allocations) {
    b.setInsertionPoint(op);
    checkSize(b, op, getNewExtents(op));
    ++numChecked;
  }

  // To number a function's values takes as long as to verify it.
  if (operations.empty()) {
    if (allocations.empty())
      markAllAnalysesPreserved();
    return;
  }
  // As upstream's pass says it, which numbers a function's values for each
  // message anew.
  AsmState state(getOperation(),
                 OpPrintingFlags().elideLargeElementsAttrs().skipRegions());
  auto message = [&](Operation *op, StringRef reason) {
    std::string text;
    llvm::raw_string_ostream os(text);
    os << "ERROR: Runtime op verification failed\n";
    op->print(os, state);
    os << "\n^ " << reason << "\nLocation: ";
    op->getLoc().print(os);
    return text;
  };
  for (RuntimeVerifiableOpInterface op : operations) {
    b.setInsertionPoint(op);
    op.generateRuntimeVerification(b, op.getLoc(), message);
    ++numChecked;
  }
}

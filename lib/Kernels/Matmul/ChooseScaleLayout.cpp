//===- ChooseScaleLayout.cpp - Factors as matmuls read them ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// A block of threads needs the factors of its rows for one K block at a time.
// With K innermost each is in a cache line of its own, of which 4 bytes are
// used before others replace it. An H200 then multiplies 1x128 by 1x128 at
// 0.84 of the speed, and 1x128 by 128x128 at 0.95.

#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "fp8/IR/FP8Dialect.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CHOOSESCALELAYOUTPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

namespace {
struct ChooseScaleLayoutPass
    : fp8::impl::ChooseScaleLayoutPassBase<ChooseScaleLayoutPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// Whether a kernel computes it, or a group that it is of.
static bool hasKernel(Operation *op) {
  return op->hasAttr(kConfigAttrName) ||
         (isa<SiblingMatmulsOp>(op->getParentOp()) &&
          hasKernel(op->getParentOp()));
}

/// Whether nobody but kernels of matmuls reads these factors, of a row and some
/// of K. (Those of batches stay: which dimensions of its domain a fusion takes
/// for rows may depend on what it stores.)
static bool isForMatmuls(OpResult factors) {
  auto isAssembled = [&](OpOperand &use) {
    auto assemble = dyn_cast<AssembleOp>(use.getOwner());
    if (!assemble || use.get() != assemble.getScaleInv())
      return false;
    ArrayRef<int64_t> block = assemble.getType().getBlock();
    return assemble.getType().getScaleType().isF32() && block.size() == 2 &&
           block.back() > 1 && block.back() != kWhole && block.front() == 1 &&
           llvm::all_of(assemble->getUsers(), [](Operation *user) {
             return isa<MatmulOp, GroupedMatmulOp>(user) && hasKernel(user);
           });
  };
  return !factors.use_empty() && llvm::all_of(factors.getUses(), isAssembled);
}

/// Whether the matmuls of a group that read these factors read others in their
/// place that are `ordered` as well: one kernel reads all in one way.
static bool areSiblingsOrdered(OpResult factors,
                               const llvm::SetVector<OpResult> &ordered) {
  auto isOrdered = [&](OpOperand &use) {
    auto group = dyn_cast<SiblingMatmulsOp>(use.getOwner()->getParentOp());
    return !group || llvm::all_of(group.getMatmuls(), [&](MatmulOp sibling) {
      Value operand = sibling->getOperand(use.getOperandNumber());
      auto assemble = operand.getDefiningOp<AssembleOp>();
      auto own =
          assemble ? dyn_cast<OpResult>(assemble.getScaleInv()) : OpResult();
      return own && ordered.contains(own);
    });
  };
  return llvm::all_of(factors.getUsers(), [&](Operation *assemble) {
    return llvm::all_of(assemble->getUses(), isOrdered);
  });
}

static constexpr int64_t kExchanged[] = {1, 0};

static Value transpose(OpBuilder &b, Value value) {
  Location loc = value.getLoc();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, value);
  std::swap(sizes[0], sizes[1]);
  Value empty = tensor::EmptyOp::create(b, loc, sizes,
                                        getElementTypeOrSelf(value.getType()));
  return linalg::TransposeOp::create(b, loc, value, empty, kExchanged)
      ->getResult(0);
}

/// Yields what `factors` is the transpose of, and transposes that outside.
static void order(OpResult factors) {
  auto fusion = cast<FusionOp>(factors.getOwner());
  Operation *yield = fusion.getBody().front().getTerminator();
  OpOperand &yielded = yield->getOpOperand(factors.getResultNumber());
  OpBuilder b(yield);
  // Transposed codes have the factors of the codes, which are there already.
  auto parts = yielded.get().getDefiningOp<DisassembleOp>();
  auto codes = parts ? parts.getSource().getDefiningOp<TransposeOp>() : nullptr;
  if (codes && codes.getPermutation() == ArrayRef(kExchanged))
    yielded.set(DisassembleOp::create(b, codes.getLoc(), codes.getSource())
                    .getScaleInv());
  else
    yielded.set(transpose(b, yielded.get()));
  Type type = factors.getType();
  factors.setType(cast<RankedTensorType>(yielded.get().getType()));
  b.setInsertionPointAfter(fusion);
  Value outside = transpose(b, factors);
  if (outside.getType() != type)
    outside = tensor::CastOp::create(b, factors.getLoc(), type, outside);
  factors.replaceUsesWithIf(
      outside, [](OpOperand &use) { return isa<AssembleOp>(use.getOwner()); });
}

void ChooseScaleLayoutPass::runOnOperation() {
  llvm::SetVector<OpResult> ordered;
  getOperation().walk([&](FusionOp fusion) {
    if (hasKernel(fusion))
      for (OpResult result : fusion.getResults())
        if (isForMatmuls(result))
          ordered.insert(result);
  });
  while (ordered.remove_if(
      [&](OpResult factors) { return !areSiblingsOrdered(factors, ordered); }))
    ;
  llvm::for_each(ordered, order);
  numOrdered += ordered.size();
}

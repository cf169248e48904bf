//===- LaunchKernels.cpp - Matmuls with a kernel to launches of it --------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/MatmulSpec.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LAUNCHKERNELSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Where the results go: for an amax, which the kernel raises, a zero.
static SmallVector<Value> createOuts(OpBuilder &b, MatmulOp op, Value a,
                                     Value otherB) {
  Location loc = op.getLoc();
  int64_t rank = op.getResult().getType().getRank();
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, a);
  sizes.back() = tensor::getMixedSize(b, loc, otherB, rank - 2);
  RankedTensorType type = op.getResult().getType();
  Value out = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  if (out.getType() != type)
    out = tensor::CastOp::create(b, loc, type, out);
  SmallVector<Value> outs{out};
  if (op.getAmax()) {
    Value zero = arith::ConstantOp::create(b, loc, b.getF32FloatAttr(0.0f));
    Value empty = tensor::EmptyOp::create(b, loc, op.getAmax().getType(), {});
    outs.push_back(linalg::FillOp::create(b, loc, zero, empty).getResult(0));
  }
  return outs;
}

static LogicalResult launch(OpBuilder &b, MatmulOp op) {
  std::string reason;
  FailureOr<MatmulSpec> spec = MatmulSpec::get(op, reason);
  if (failed(spec))
    return op.emitOpError() << reason;
  b.setInsertionPoint(op);
  auto lhs = DisassembleOp::create(b, op.getLoc(), op.getA());
  auto rhs = DisassembleOp::create(b, op.getLoc(), op.getB());
  SmallVector<Value> outs =
      createOuts(b, op, lhs.getPayload(), rhs.getPayload());
  auto launched = LaunchMatmulOp::create(
      b, op.getLoc(), TypeRange(ValueRange(outs)),
      op->getAttrOfType<SymbolRefAttr>(kKernelAttrName), lhs.getPayload(),
      lhs.getScaleInv(), rhs.getPayload(), rhs.getScaleInv(),
      op.getEpilogueOperands(), spec->captures, outs);
  op->replaceAllUsesWith(launched);
  op.erase();
  return success();
}

namespace {
struct LaunchKernelsPass : fp8::impl::LaunchKernelsPassBase<LaunchKernelsPass> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<MatmulOp> matmuls;
    getOperation().walk([&](MatmulOp op) {
      if (op->hasAttr(kKernelAttrName))
        matmuls.push_back(op);
    });
    OpBuilder b(&getContext());
    for (MatmulOp op : matmuls)
      if (failed(launch(b, op)))
        return signalPassFailure();
  }
};
} // namespace

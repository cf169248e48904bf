//===- InstrumentQuantize.cpp - Statistics of quantized tensors -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/QuantizeUses.h"
#include "fp8/Runtime/ABI/MLIR.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_INSTRUMENTQUANTIZEPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct InstrumentQuantizePass
    : fp8::impl::InstrumentQuantizePassBase<InstrumentQuantizePass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void InstrumentQuantizePass::runOnOperation() {
  ModuleOp module = getOperation();
  SmallVector<QuantizeOp> quantizes;
  module.walk([&](QuantizeOp op) { quantizes.push_back(op); });
  if (quantizes.empty())
    return;

  OpBuilder builder(&getContext());
  Type i64 = builder.getI64Type(), f64 = builder.getF64Type();
  SmallVector<Attribute> slots;
  for (auto [slot, op] : llvm::enumerate(quantizes)) {
    std::string name = getTensorName(op);
    if (name.empty())
      name = "quantize_" + std::to_string(slot);
    slots.push_back(builder.getStringAttr(name));

    FailureOr<func::FuncOp> hook =
        declareRuntimeFunction(builder, op, runtime::fp8rt_stats_record);
    if (failed(hook)) {
      op.emitOpError("expected '") << runtime::fp8rt_stats_record.name
                                   << "' to be the runtime's function";
      return signalPassFailure();
    }
    Location loc = op.getLoc();
    builder.setInsertionPointAfter(op);
    auto measure =
        MeasureOp::create(builder, loc, op.getSource(), op.getResult());
    Value count = arith::ConstantIndexOp::create(builder, loc, 1);
    for (int64_t dim = 0; dim < op.getSource().getType().getRank(); ++dim)
      count = arith::MulIOp::create(
          builder, loc, count,
          getValueOrCreateConstantIndexOp(
              builder, loc,
              tensor::getMixedSize(builder, loc, op.getSource(), dim)));
    count = arith::IndexCastOp::create(builder, loc, i64, count);
    count = arith::SIToFPOp::create(builder, loc, f64, count);
    Value number = arith::ConstantIntOp::create(builder, loc, i64, slot);
    func::CallOp::create(builder, loc, *hook,
                         ValueRange{number, measure.getAmax(), count,
                                    measure.getUnderflow(),
                                    measure.getSaturated(), measure.getSignal(),
                                    measure.getNoise()});
  }
  module->setAttr(kStatsSlotsAttrName, builder.getArrayAttr(slots));
}

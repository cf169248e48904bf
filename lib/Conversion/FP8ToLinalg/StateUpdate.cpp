//===- StateUpdate.cpp - update_scales and update_state -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FP8ToLinalg.h"
#include "fp8/IR/ScalarBuilder.h"
#include "fp8/Runtime/ABI/MLIR.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;

/// The largest finite value of every slot's format.
static Value buildMaxFinite(OpBuilder &builder, Location loc,
                            StateTableAttr table) {
  auto limits = llvm::map_to_vector(table.getSlotRange(), [](SlotAttr slot) {
    return getMaxFinite(slot.getFormat());
  });
  auto type =
      RankedTensorType::get({table.getNumSlots()}, builder.getF32Type());
  return arith::ConstantOp::create(
      builder, loc, DenseElementsAttr::get(type, ArrayRef(limits)));
}

namespace {

struct ConvertUpdateScales : OpConversionPattern<UpdateScalesOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(UpdateScalesOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    StateTableAttr table = op.getTable();
    Value maxFinite = buildMaxFinite(rewriter, op.getLoc(), table);
    rewriter.replaceOp(op,
                       table.getUpdate().buildTensorUpdate(
                           rewriter, op.getLoc(), maxFinite, adaptor.getScale(),
                           adaptor.getAmax(), adaptor.getState()));
    return success();
  }
};

/// The rows of a state, whose addresses are the host's to read.
struct StateRows {
  StateRows(ImplicitLocOpBuilder &b, Value state);

  Value amax, scale, scaleInv, maxFinite, words, lastAmax, recorded, nonFinite,
      steps;
};

/// One slot of the rows, in the loop over them, which runs where the program's
/// tensors are. Its accesses are the llvm dialect's: those of memrefs would be
/// checked at run time, which a thread cannot report.
class RowSlotBuilder : public SlotUpdateBuilder {
public:
  RowSlotBuilder(Location loc, OpBuilder &builder, Value amaxBits, Value scale,
                 Value maxFinite, Value words)
      : SlotUpdateBuilder(loc, builder, amaxBits, scale, maxFinite),
        words(words) {}

  Value loadWord(Value position) override {
    return LLVM::LoadOp::create(*this, getI32Type(), getAddress(position));
  }
  void storeWord(Value position, Value word) override {
    LLVM::StoreOp::create(*this, word, getAddress(position));
  }

private:
  Value getAddress(Value position) {
    Value index = arith::ExtUIOp::create(*this, getI64Type(), position);
    return LLVM::GEPOp::create(*this, words.getType(), getI32Type(), words,
                               ArrayRef<LLVM::GEPArg>{index});
  }

  /// Those of the slot.
  Value words;
};

struct ConvertUpdateState : OpConversionPattern<UpdateStateOp> {
  using Base::Base;
  LogicalResult
  matchAndRewrite(UpdateStateOp op, OpAdaptor adaptor,
                  ConversionPatternRewriter &rewriter) const override {
    ImplicitLocOpBuilder b(op.getLoc(), rewriter);
    StateRows rows(b, adaptor.getState());
    auto loop = scf::ForallOp::create(
        b, ArrayRef<OpFoldResult>{b.getIndexAttr(op.getTable().getNumSlots())},
        /*outputs=*/ValueRange(), /*mapping=*/std::nullopt);
    OpBuilder::InsertionGuard guard(rewriter);
    rewriter.setInsertionPointToStart(loop.getBody());
    buildSlot(rewriter, op.getLoc(), op.getTable().getUpdate(), rows,
              loop.getInductionVar(0));
    rewriter.eraseOp(op);
    return success();
  }

  static void buildSlot(OpBuilder &builder, Location loc,
                        StateUpdateAttrInterface update, const StateRows &rows,
                        Value slot) {
    ScalarBuilder b(loc, builder);
    Type f32 = b.getF32Type(), i32 = b.getI32Type(), i64 = b.getI64Type();
    Value index = arith::IndexCastOp::create(b, i64, slot);
    auto getAddress = [&](Value row, Type type, Value position) -> Value {
      return LLVM::GEPOp::create(b, row.getType(), type, row,
                                 ArrayRef<LLVM::GEPArg>{position});
    };
    auto load = [&](Value row, Type type) -> Value {
      return LLVM::LoadOp::create(b, type, getAddress(row, type, index));
    };
    auto store = [&](Value value, Value row) {
      LLVM::StoreOp::create(b, value, getAddress(row, value.getType(), index));
    };
    // As the bits of its magnitude, NaN is above Inf.
    Value amax =
        arith::AndIOp::create(b, load(rows.amax, i32), b.i32(0x7fffffff));
    store(b.i32(0), rows.amax);
    store(amax, rows.lastAmax);
    auto count = [&](Value row, Value condition) {
      Value one = arith::ExtUIOp::create(b, i64, condition);
      store(arith::AddIOp::create(b, load(row, i64), one), row);
    };
    count(rows.recorded, b.cmpi(arith::CmpIPredicate::ne, amax, b.i32(0)));
    count(rows.nonFinite,
          b.cmpi(arith::CmpIPredicate::uge, amax, b.i32(0x7f800000)));

    Value numWords = arith::ConstantIntOp::create(b, i64, update.getNumWords());
    Value first = arith::MulIOp::create(b, index, numWords);
    RowSlotBuilder slotBuilder(loc, b, amax, load(rows.scale, f32),
                               load(rows.maxFinite, f32),
                               getAddress(rows.words, i32, first));
    Value scale = update.buildUpdate(slotBuilder);
    store(scale, rows.scale);
    store(b.div(b.f32(1.0f), scale), rows.scaleInv);

    // One of them counts the step.
    Value isFirst = b.cmpi(arith::CmpIPredicate::eq, slot, b.index(0));
    scf::IfOp::create(b, isFirst, [&](OpBuilder &inner, Location loc) {
      Value one = arith::ConstantIntOp::create(inner, loc, i64, 1);
      Value steps = LLVM::LoadOp::create(inner, loc, i64, rows.steps);
      steps = arith::AddIOp::create(inner, loc, steps, one);
      LLVM::StoreOp::create(inner, loc, steps, rows.steps);
      scf::YieldOp::create(inner, loc);
    });
  }
};

} // namespace

StateRows::StateRows(ImplicitLocOpBuilder &b, Value state) {
  using Rows = runtime::Struct<fp8rt_state_rows>;
  amax = loadField(b, state, Rows::amax);
  scale = loadField(b, state, Rows::scale);
  scaleInv = loadField(b, state, Rows::scale_inv);
  maxFinite = loadField(b, state, Rows::max_finite);
  words = loadField(b, state, Rows::words);
  lastAmax = loadField(b, state, Rows::last_amax);
  recorded = loadField(b, state, Rows::recorded);
  nonFinite = loadField(b, state, Rows::non_finite);
  steps = loadField(b, state, Rows::steps);
}

void fp8::populateStateUpdatePatterns(const TypeConverter &converter,
                                      RewritePatternSet &patterns) {
  patterns.add<ConvertUpdateScales, ConvertUpdateState>(converter,
                                                        patterns.getContext());
}

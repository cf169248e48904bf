//===- StateUpdate.cpp - State as ordinary tensors ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What a recipe that learns gets for the update of one slot: its words as a
// tensor, and one slot after the other.
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Attrs.h"
#include "fp8/IR/ScalarBuilder.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

/// A slot whose words are a row of a tensor, which stores replace.
class TensorSlotBuilder : public SlotUpdateBuilder {
public:
  TensorSlotBuilder(Location loc, OpBuilder &builder, Value amaxBits,
                    Value scale, Value maxFinite, Value slot, Value words)
      : SlotUpdateBuilder(loc, builder, amaxBits, scale, maxFinite), slot(slot),
        words(words) {}

  Value loadWord(Value position) override {
    return tensor::ExtractOp::create(*this, words, getIndices(position));
  }
  void storeWord(Value position, Value word) override {
    words = tensor::InsertOp::create(*this, word, words, getIndices(position));
  }
  Value getWords() const { return words; }

private:
  SmallVector<Value> getIndices(Value position) {
    return {slot, arith::IndexCastOp::create(*this, getIndexType(), position)};
  }

  Value slot, words;
};

} // namespace

SmallVector<StateTensor> fp8::getWordTensors(StateUpdateAttrInterface recipe,
                                             int64_t numSlots) {
  if (recipe.getNumWords() == 0)
    return {};
  return {{"words",
           RankedTensorType::get({numSlots, recipe.getNumWords()},
                                 IntegerType::get(recipe.getContext(), 32))}};
}

SmallVector<Value> fp8::buildWordUpdate(StateUpdateAttrInterface recipe,
                                        OpBuilder &builder, Location loc,
                                        Value maxFinite, Value scale,
                                        Value amax, ValueRange state) {
  ScalarBuilder b(loc, builder);
  int64_t numSlots = cast<RankedTensorType>(scale.getType()).getNumElements();
  SmallVector<Value> carried{scale};
  llvm::append_range(carried, state);
  auto loop = scf::ForOp::create(
      b, b.index(0), b.index(numSlots), b.index(1), carried,
      [&](OpBuilder &body, Location loc, Value slot, ValueRange values) {
        ScalarBuilder b(loc, body);
        Value bits = b.bits(tensor::ExtractOp::create(b, amax, slot));
        bits = arith::AndIOp::create(b, bits, b.i32(0x7fffffff));
        TensorSlotBuilder builder(
            loc, body, bits, tensor::ExtractOp::create(b, values[0], slot),
            tensor::ExtractOp::create(b, maxFinite, slot), slot,
            values.size() > 1 ? values[1] : Value());
        Value next = recipe.buildUpdate(builder);
        SmallVector<Value> updated{
            tensor::InsertOp::create(builder, next, values[0], slot)};
        if (values.size() > 1)
          updated.push_back(builder.getWords());
        scf::YieldOp::create(builder, updated);
      });
  return loop.getResults();
}

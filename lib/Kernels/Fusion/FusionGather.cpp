//===- FusionGather.cpp - Rows that are read by their index ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionValues.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

/// An index is an i64 here.
static Type getRegisterType(KernelBuilder &b, Type type) {
  return type.isIndex() ? b.getI64Type() : type;
}

Value FusionValues::getPlace(linalg::GenericOp op, Value place, int64_t row) {
  if (auto argument = dyn_cast<BlockArgument>(place))
    return get(op.getMatchingOpOperand(argument)->get(), row, 0).front();
  Operation *definition = place.getDefiningOp();
  Type type = getRegisterType(b, place.getType());
  if (auto index = dyn_cast<linalg::IndexOp>(definition)) {
    auto rank = static_cast<int64_t>(spec.layouts.getDomain().size());
    int64_t dim = spec.layouts.getLoops(op)[index.getDim()].first;
    return b.widen(dim == rank - 2 ? tile.getClampedRow(row) : tile.batch);
  }
  if (auto constant = dyn_cast<arith::ConstantOp>(definition))
    return arith::ConstantIntOp::create(
        b, type, cast<IntegerAttr>(constant.getValue()).getInt());
  SmallVector<Value> operands =
      llvm::map_to_vector(definition->getOperands(), [&](Value operand) {
        return getPlace(op, operand, row);
      });
  if (isa<arith::IndexCastOp, arith::IndexCastUIOp>(definition)) {
    unsigned from = operands[0].getType().getIntOrFloatBitWidth(),
             to = type.getIntOrFloatBitWidth();
    if (from == to)
      return operands[0];
    if (from > to)
      return arith::TruncIOp::create(b, type, operands[0]);
    if (isa<arith::IndexCastOp>(definition))
      return arith::ExtSIOp::create(b, type, operands[0]);
    return arith::ExtUIOp::create(b, type, operands[0]);
  }
  IRMapping mapping;
  mapping.map(definition->getOperands(), operands);
  Value computed = b.clone(*definition, mapping)->getResult(0);
  computed.setType(type);
  return computed;
}

void FusionValues::loadGathered() {
  struct Gather {
    Value row;
    const FusionArgument *input;
    /// For each row of the thread the places in all dimensions but the last.
    SmallVector<SmallVector<Value>> places;
  };
  SmallVector<Gather> gathers;
  // All indices are under way before the first is looked at.
  for (auto generic : spec.getBody().getOps<linalg::GenericOp>())
    for (auto extract : generic.getBody()->getOps<tensor::ExtractOp>()) {
      Gather gather{
          extract.getResult(), inputs.lookup(extract.getTensor()), {}};
      for (int64_t row = 0; row < tile.getRows(); ++row)
        gather.places.push_back(llvm::map_to_vector(
            extract.getIndices().drop_back(),
            [&](Value place) { return getPlace(generic, place, row); }));
      gathers.push_back(std::move(gather));
    }
  Value isOutside;
  for (const Gather &gather : gathers)
    for (ArrayRef<Value> places : gather.places)
      for (auto [dim, place] : llvm::enumerate(places)) {
        Value outside =
            tile.isOutside(*gather.input, static_cast<int64_t>(dim), place);
        isOutside =
            isOutside ? arith::OrIOp::create(b, isOutside, outside).getResult()
                      : outside;
      }
  if (isOutside)
    b.ifThen(isOutside, [&] { LLVM::Trap::create(b); });
  for (const Gather &gather : gathers)
    for (int64_t row = 0; row < tile.getRows(); ++row) {
      Value pointer = tile.getGathered(*gather.input, gather.places[row]);
      for (int64_t chunk = 0; chunk < tile.getChunks(); ++chunk) {
        std::tuple key{gather.row.getAsOpaquePointer(), row, chunk};
        words[key] = tile.loadChunk(*gather.input, pointer, chunk);
        elements[key] = unpack(words[key], gather.input->elementType);
      }
    }
}

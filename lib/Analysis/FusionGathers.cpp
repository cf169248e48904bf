//===- FusionGathers.cpp - Rows that a fusion reads by an index -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/FusionLayouts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

llvm::SmallPtrSet<Operation *, 8> fp8::getPlaces(Block &body) {
  llvm::SmallPtrSet<Operation *, 8> places;
  for (Operation &op : llvm::reverse(body)) {
    bool isUsed = !op.use_empty() && op.getNumResults() == 1 &&
                  op.getResult(0).getType().isIntOrIndex();
    if (isUsed && llvm::all_of(op.getUsers(), [&](Operation *user) {
          return isa<tensor::ExtractOp>(user) || places.contains(user);
        }))
      places.insert(&op);
  }
  return places;
}

bool fp8::isPlace(BlockArgument argument) {
  llvm::SmallPtrSet<Operation *, 8> places = getPlaces(*argument.getOwner());
  return argument.getType().isIntOrIndex() && !argument.use_empty() &&
         llvm::all_of(argument.getUsers(), [&](Operation *user) {
           return isa<tensor::ExtractOp>(user) || places.contains(user);
         });
}

bool fp8::isPlaceArithmetic(Operation *op) {
  return isa<linalg::IndexOp, arith::ConstantOp, arith::IndexCastOp,
             arith::IndexCastUIOp, arith::ExtSIOp, arith::ExtUIOp,
             arith::TruncIOp, arith::AddIOp, arith::SubIOp, arith::MulIOp,
             arith::MaxSIOp, arith::MinSIOp, arith::MaxUIOp, arith::MinUIOp,
             arith::CmpIOp, arith::SelectOp>(op);
}

/// Whether a place, of a body, is the same for all columns.
static bool isOfRow(Value place, linalg::LinalgOp op, int64_t rank,
                    ArrayRef<std::pair<int64_t, int64_t>> loops,
                    llvm::function_ref<const FusionLayout &(OpOperand &)> get) {
  if (auto argument = dyn_cast<BlockArgument>(place))
    return argument.getOwner() == op.getBlock() &&
           get(*op.getMatchingOpOperand(argument)).block.back() == kWhole;
  Operation *definition = place.getDefiningOp();
  if (auto index = dyn_cast<linalg::IndexOp>(definition))
    return loops[index.getDim()] != std::pair<int64_t, int64_t>(rank - 1, 1);
  return isPlaceArithmetic(definition) &&
         llvm::all_of(definition->getOperands(), [&](Value operand) {
           return isOfRow(operand, op, rank, loops, get);
         });
}

LogicalResult
FusionLayouts::addGathers(linalg::LinalgOp op,
                          ArrayRef<std::pair<int64_t, int64_t>> opLoops,
                          std::string &reason) {
  auto fail = [&](const Twine &text) {
    reason = text.str();
    return failure();
  };
  auto rank = static_cast<int64_t>(domain.size());
  for (auto extract : op.getBlock()->getOps<tensor::ExtractOp>()) {
    if (!isDomain(op.getStaticLoopRanges()) || op.getNumReductionLoops() != 0)
      return fail("expected a row to be read by its index for each of the "
                  "domain's");
    if (lookup(extract.getTensor()))
      return fail("expected rows of a tensor that is not computed in the same "
                  "fusion");
    RankedTensorType type = extract.getTensor().getType();
    if (type.getRank() < 2)
      return fail("expected rows to read by their index, but got elements");
    auto last = extract.getIndices().back().getDefiningOp<linalg::IndexOp>();
    if (!last ||
        opLoops[last.getDim()] != std::pair<int64_t, int64_t>(rank - 1, 1))
      return fail("expected neighbours of a row that is read by its index");
    if (ShapedType::isDynamic(domain.back()) ||
        type.getShape().back() != domain.back())
      return fail(llvm::formatv("expected rows of a known length, that of the "
                                "domain's, to read by their index, but got {0}",
                                type));
    auto get = [&](OpOperand &operand) -> const FusionLayout & {
      return lookup(operand);
    };
    for (Value place : extract.getIndices().drop_back())
      if (!isOfRow(place, op, rank, opLoops, get))
        return fail("expected the index of a row to be the same for all of its "
                    "elements, and integer arithmetic on what is read");
    FusionLayout layout;
    layout.dims.assign(type.getRank(), -1);
    layout.dims.back() = rank - 1;
    layout.block.assign(rank, 1);
    reads[&extract.getTensorMutable()] = layout;
  }
  return success();
}

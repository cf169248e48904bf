//===- FusionFunction.cpp - A pass over memory, a tile at a time ----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionFunction.h"
#include "Utils/EqualRegions.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StructuredOpsUtils.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

namespace {
/// A part of a tensor.
struct Slice {
  SmallVector<OpFoldResult> offsets, sizes;

  SmallVector<OpFoldResult> getStrides(OpBuilder &b) const {
    return SmallVector<OpFoldResult>(sizes.size(), b.getIndexAttr(1));
  }
};

/// The body of a fusion once for each tile of its domain.
class TileBuilder {
public:
  TileBuilder(OpBuilder &b, FusionOp fusion, const FusionTiling &tiling)
      : b(b), loc(fusion.getLoc()), fusion(fusion), tiling(tiling),
        layouts(tiling.getLayouts()), domain(layouts.getDomain()) {}

  /// A function that computes the fusion, which is in no module yet.
  func::FuncOp build(const Twine &name);
  /// Memory for its results, of `inputs`.
  SmallVector<Value> createMemory(ValueRange inputs);

private:
  AffineExpr sym(unsigned i) { return b.getAffineSymbolExpr(i); }
  OpFoldResult apply(AffineExpr expr, ArrayRef<OpFoldResult> operands) {
    return affine::makeComposedFoldedAffineApply(b, loc, expr, operands);
  }
  /// Whether the caller has memory for a result: one of its own, not of a
  /// part of the function, whose extents can be told from the inputs.
  bool hasMemory(Value yielded) const;
  void measureDomain();
  /// Compares an extent of a tensor with that of `dim` of the domain.
  void checkSize(OpFoldResult size, int64_t dim, int64_t extent,
                 const Twine &what);
  void checkSizes();
  void hoist();
  /// How much of a dimension of the domain a tensor with elements for blocks of
  /// `extent` has of one tile, or of all.
  OpFoldResult divide(OpFoldResult size, int64_t extent) {
    return extent == 1 ? size : apply(sym(0).ceilDiv(extent), size);
  }
  Slice getSlice(RankedTensorType type, const FusionLayout &layout);
  Type getTileType(Type type, const FusionLayout &layout);
  Value getOperand(OpOperand &operand);
  Value getInit(OpOperand &init, Operation *op);
  void cloneIntoTile(Operation &op);
  /// Finds number, place and size of the tile that `forall` computes.
  void placeTile(scf::ForallOp forall);
  /// Ends the function; `memory` is where results go, if the caller has it.
  void returnResults(ValueRange memory);
  /// Where the results of all tiles come together: the result itself, or one
  /// amax for each tile.
  Value createOutput(Value yielded);
  Slice getOutputSlice(Value yielded);
  Value finish(Value yielded, Value output);

  OpBuilder &b;
  Location loc;
  FusionOp fusion;
  const FusionTiling &tiling;
  const FusionLayouts &layouts;
  ArrayRef<int64_t> domain;
  SmallVector<OpFoldResult> domainSizes, numTiles;
  /// The tile: its number, its place and its size in each dimension.
  SmallVector<OpFoldResult> numbers;
  Slice tile;
  IRMapping mapping;
  /// What the tile has of inputs, as far as it has been read.
  SmallVector<std::tuple<BlockArgument, FusionLayout, Value>> parts;
  llvm::SmallPtrSet<Operation *, 4> hoisted;
  /// Results that tiles compute, and in the loop what they are written to.
  SmallVector<Value> tiled;
  SmallVector<Value> outputs;
};
} // namespace

bool TileBuilder::hasMemory(Value yielded) const {
  Operation *op = yielded.getDefiningOp();
  if (!op)
    return false;
  return cast<RankedTensorType>(yielded.getType()).hasStaticShape() ||
         (!tiling.isHoisted(op) &&
          llvm::all_of(tiling.getPartialDims(yielded),
                       [](int64_t dim) { return dim < 0; }));
}

SmallVector<Value> TileBuilder::createMemory(ValueRange inputs) {
  Block &body = fusion.getBody().front();
  mapping.map(body.getArguments(), inputs);
  measureDomain();
  SmallVector<Value> memory;
  for (Value value : body.getTerminator()->getOperands()) {
    auto type = cast<RankedTensorType>(value.getType());
    if (!hasMemory(value))
      continue;
    memory.push_back(type.hasStaticShape()
                         ? tensor::EmptyOp::create(b, loc, type.getShape(),
                                                   type.getElementType())
                         : createOutput(value));
  }
  return memory;
}

/// The extents of the domain, and how many tiles there are of each.
void TileBuilder::measureDomain() {
  Value full = mapping.lookup(tiling.getDomainInput());
  for (int64_t dim : tiling.getDomainDims())
    domainSizes.push_back(tensor::getMixedSize(b, loc, full, dim));
  for (auto [size, extent] : llvm::zip_equal(domainSizes, tiling.getTile()))
    numTiles.push_back(extent == kWhole ? OpFoldResult(b.getIndexAttr(1))
                                        : divide(size, extent));
}

void TileBuilder::checkSize(OpFoldResult size, int64_t dim, int64_t extent,
                            const Twine &what) {
  OpFoldResult expected = divide(domainSizes[dim], extent);
  if (isEqualConstantIntOrValue(size, expected))
    return;
  Value equal =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq,
                            getValueOrCreateConstantIndexOp(b, loc, size),
                            getValueOrCreateConstantIndexOp(b, loc, expected));
  std::string message;
  llvm::raw_string_ostream(message)
      << "expected the tensors of one pass over memory to have the same "
         "extents, but "
      << what << " differs\nLocation: " << loc;
  cf::AssertOp::create(b, loc, equal, message);
}

/// Tensors that are only known to fit when the program runs are checked before
/// they are cut, as structured operations are; and memory that is asked for
/// results.
void TileBuilder::checkSizes() {
  llvm::SmallDenseSet<std::tuple<Value, int64_t, int64_t>> checked;
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    for (OpOperand *operand : FusionTiling::getInputs(op)) {
      auto argument = cast<BlockArgument>(operand->get());
      const FusionLayout &layout = layouts.lookup(*operand);
      Value input = mapping.lookup(argument);
      for (auto [k, dim] : llvm::enumerate(layout.dims))
        if (dim >= 0 && checked.insert({input, k, dim}).second)
          checkSize(tensor::getMixedSize(b, loc, input, k), dim,
                    layout.block[dim],
                    "dimension #" + Twine(k) + " of operand #" +
                        Twine(argument.getArgNumber()));
    }
    auto destination = dyn_cast<DestinationStyleOpInterface>(op);
    if (!destination || isa<linalg::FillOp>(op))
      continue;
    for (OpOperand &init : destination.getDpsInitsMutable()) {
      Value memory = init.get();
      if (auto fill = memory.getDefiningOp<linalg::FillOp>())
        memory = fill.getOutputs()[0];
      auto empty = memory.getDefiningOp<tensor::EmptyOp>();
      const FusionLayout &layout =
          *layouts.lookup(destination.getTiedOpResult(&init));
      for (auto [k, dim] : llvm::enumerate(layout.dims)) {
        if (dim < 0)
          continue;
        OpFoldResult size;
        if (empty)
          size = empty.getMixedSizes()[k];
        else
          size = tensor::getMixedSize(b, loc, mapping.lookup(memory), k);
        // An extent of what is computed in the fusion is the domain's.
        if (auto value = dyn_cast<Value>(size)) {
          size = mapping.lookupOrNull(value);
          if (!size)
            continue;
        }
        checkSize(size, dim, layout.block[dim],
                  "dimension #" + Twine(k) + " of a result of " +
                      op.getName().getStringRef());
      }
    }
  }
}

/// What is the same for all tiles is computed once.
void TileBuilder::hoist() {
  for (Operation &op : fusion.getBody().front().without_terminator()) {
    if (!tiling.isHoisted(&op))
      continue;
    b.clone(op, mapping);
    hoisted.insert(&op);
  }
}

Slice TileBuilder::getSlice(RankedTensorType type, const FusionLayout &layout) {
  Slice slice;
  for (auto [k, dim] : llvm::enumerate(layout.dims)) {
    if (dim < 0) {
      // One, also where only the program that runs knows that.
      slice.offsets.push_back(b.getIndexAttr(0));
      slice.sizes.push_back(b.getIndexAttr(1));
      continue;
    }
    // Tiles are made of whole blocks.
    int64_t extent = layout.block[dim];
    slice.offsets.push_back(
        extent == 1 ? tile.offsets[dim]
                    : apply(sym(0).floorDiv(extent), tile.offsets[dim]));
    slice.sizes.push_back(divide(tile.sizes[dim], extent));
  }
  return slice;
}

Type TileBuilder::getTileType(Type type, const FusionLayout &layout) {
  auto scaled = dyn_cast<ScaledType>(type);
  SmallVector<int64_t> shape(scaled ? scaled.getShape()
                                    : cast<RankedTensorType>(type).getShape());
  for (auto [k, dim] : llvm::enumerate(layout.dims)) {
    if (dim < 0) {
      shape[k] = 1;
      continue;
    }
    std::optional<int64_t> size = getConstantIntValue(tile.sizes[dim]);
    shape[k] = size ? llvm::divideCeilSigned(*size, layout.block[dim])
                    : ShapedType::kDynamic;
  }
  if (scaled)
    return scaled.cloneWith(shape, scaled.getBlock());
  return cast<RankedTensorType>(type).clone(shape);
}

Value TileBuilder::getOperand(OpOperand &operand) {
  Value value = mapping.lookupOrDefault(operand.get());
  auto argument = dyn_cast<BlockArgument>(operand.get());
  if (!argument || !isa<RankedTensorType>(argument.getType()))
    return value;
  auto type = cast<RankedTensorType>(value.getType());
  const FusionLayout &layout = layouts.lookup(operand);
  if (layout.isSingle())
    return value;
  for (const auto &[other, otherLayout, part] : parts)
    if (other == argument && otherLayout == layout)
      return part;
  Slice slice = getSlice(type, layout);
  auto result = tensor::ExtractSliceOp::inferResultType(type, slice.sizes);
  Value part = tensor::ExtractSliceOp::create(
      b, loc, result, value, slice.offsets, slice.sizes, slice.getStrides(b));
  parts.emplace_back(argument, layout, part);
  return part;
}

/// Memory for a result of `op`, filled where it starts with something. That of
/// a result of the fusion is its own part of the output: equal ones would
/// merge, and bufferization does not see that the loop writes its outputs in
/// turn.
Value TileBuilder::getInit(OpOperand &init, Operation *op) {
  auto linalgOp = cast<linalg::LinalgOp>(op);
  Value result = linalgOp.getTiedOpResult(&init);
  auto type = cast<RankedTensorType>(result.getType());
  Slice slice = getSlice(type, *layouts.lookup(result));
  Value memory;
  if (auto *found = llvm::find(tiled, result); found != tiled.end()) {
    Value output = outputs[found - tiled.begin()];
    auto outputType = cast<RankedTensorType>(output.getType());
    memory = tensor::ExtractSliceOp::create(
        b, loc,
        tensor::ExtractSliceOp::inferResultType(outputType, slice.sizes),
        output, slice.offsets, slice.sizes, slice.getStrides(b));
  } else {
    memory =
        tensor::EmptyOp::create(b, loc, slice.sizes, type.getElementType());
  }
  auto fill = init.get().getDefiningOp<linalg::FillOp>();
  if (!fill)
    return memory;
  return linalg::FillOp::create(
             b, loc, mapping.lookupOrDefault(fill.getInputs()[0]), memory)
      .getResult(0);
}

void TileBuilder::cloneIntoTile(Operation &op) {
  if (op.hasTrait<OpTrait::ConstantLike>()) {
    b.clone(op, mapping);
    return;
  }
  // These are made for each who writes to them.
  if (isa<tensor::EmptyOp, linalg::FillOp, tensor::DimOp>(op))
    return;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  SmallVector<Value> operands;
  for (OpOperand &operand : op.getOpOperands())
    operands.push_back(linalgOp && linalgOp.isDpsInit(&operand)
                           ? getInit(operand, &op)
                           : getOperand(operand));
  SmallVector<Type> types;
  for (Value result : op.getResults())
    types.push_back(getTileType(result.getType(), *layouts.lookup(result)));
  Operation *copy = mlir::clone(b, &op, types, operands);
  for (Region &region : copy->getRegions())
    region.walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands())
        operand.set(mapping.lookupOrDefault(operand.get()));
    });
  // A row that is read by its index is one of the whole tensor.
  copy->walk([&](linalg::IndexOp index) {
    auto [dim, extent] = layouts.getLoops(linalgOp)[index.getDim()];
    if (dim < 0)
      return;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(copy);
    Value first = getValueOrCreateConstantIndexOp(
        b, loc, apply(sym(0).floorDiv(extent), tile.offsets[dim]));
    b.setInsertionPointAfter(index);
    Value place = arith::AddIOp::create(b, loc, index, first);
    index.getResult().replaceAllUsesExcept(place, place.getDefiningOp());
  });
  mapping.map(op.getResults(), copy->getResults());
}

Value TileBuilder::createOutput(Value yielded) {
  auto type = cast<RankedTensorType>(yielded.getType());
  const FusionLayout &layout = *layouts.lookup(yielded);
  SmallVector<int64_t> partial = tiling.getPartialDims(yielded);
  SmallVector<OpFoldResult> sizes;
  for (auto [k, dim] : llvm::enumerate(layout.dims)) {
    if (partial[k] >= 0)
      sizes.push_back(numTiles[partial[k]]);
    else if (dim < 0)
      sizes.push_back(b.getIndexAttr(type.getDimSize(k)));
    else
      sizes.push_back(divide(domainSizes[dim], layout.block[dim]));
  }
  return tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
}

Slice TileBuilder::getOutputSlice(Value yielded) {
  Slice slice = getSlice(cast<RankedTensorType>(yielded.getType()),
                         *layouts.lookup(yielded));
  for (auto [offset, dim] :
       llvm::zip_equal(slice.offsets, tiling.getPartialDims(yielded)))
    if (dim >= 0)
      offset = numbers[dim];
  return slice;
}

/// The amax of all tiles is that of theirs: maxima have no order.
Value TileBuilder::finish(Value yielded, Value output) {
  SmallVector<int64_t> partial = tiling.getPartialDims(yielded);
  if (llvm::all_of(partial, [](int64_t dim) { return dim < 0; }))
    return output;
  auto amax = yielded.getDefiningOp<AmaxOp>();
  SmallVector<int64_t> block = llvm::map_to_vector(
      partial, [](int64_t dim) { return dim < 0 ? 1 : kWhole; });
  return AmaxOp::create(b, loc, yielded.getType(), output, block,
                        amax.getPropagateNan());
}

void TileBuilder::placeTile(scf::ForallOp forall) {
  for (auto [dim, extent] : llvm::enumerate(tiling.getTile())) {
    OpFoldResult size = domainSizes[dim];
    numbers.push_back(forall.getInductionVar(dim));
    if (extent == kWhole) {
      tile.offsets.push_back(b.getIndexAttr(0));
      tile.sizes.push_back(size);
      continue;
    }
    OpFoldResult offset = apply(sym(0) * extent, numbers.back());
    std::optional<int64_t> known = getConstantIntValue(size);
    OpFoldResult own = b.getIndexAttr(extent);
    if (!known || *known % extent != 0)
      own = affine::makeComposedFoldedAffineMin(
          b, loc,
          AffineMap::get(0, 2,
                         {b.getAffineConstantExpr(extent), sym(0) - sym(1)},
                         b.getContext()),
          {size, offset});
    tile.offsets.push_back(offset);
    tile.sizes.push_back(own);
  }
}

void TileBuilder::returnResults(ValueRange memory) {
  SmallVector<Value> results;
  for (Value value : fusion.getBody().front().getTerminator()->getOperands()) {
    Value result = mapping.lookup(value);
    if (hasMemory(value)) {
      result = bufferization::MaterializeInDestinationOp::create(
                   b, loc, result.getType(), result, memory.front())
                   .getResult();
      memory = memory.drop_front();
    }
    results.push_back(result);
  }
  func::ReturnOp::create(b, loc, results);
}

func::FuncOp TileBuilder::build(const Twine &name) {
  Block &body = fusion.getBody().front();
  auto yield = cast<YieldOp>(body.getTerminator());
  SmallVector<Type> types(fusion->getOperandTypes());
  for (Value value : yield.getValues())
    if (hasMemory(value))
      types.push_back(value.getType());
  func::FuncOp function = createInternalFunction(
      loc, name, b.getFunctionType(types, fusion->getResultTypes()));
  ValueRange arguments = function.addEntryBlock()->getArguments();
  ValueRange inputs = arguments.take_front(body.getNumArguments());
  ValueRange memory = arguments.drop_front(body.getNumArguments());
  mapping.map(body.getArguments(), inputs);
  OpBuilder::InsertionGuard inFunction(b);
  b.setInsertionPointToStart(&function.front());
  measureDomain();
  hoist();
  checkSizes();

  for (Value value : yield.getValues())
    if (value.getDefiningOp() && !hoisted.contains(value.getDefiningOp()) &&
        !llvm::is_contained(tiled, value))
      tiled.push_back(value);
  for (Value value : tiled)
    outputs.push_back(createOutput(value));
  auto forall = scf::ForallOp::create(b, loc, numTiles, outputs,
                                      /*mapping=*/std::nullopt);
  forall->setAttr(kTilesAttrName, b.getUnitAttr());
  outputs.assign(forall.getRegionIterArgs().begin(),
                 forall.getRegionIterArgs().end());
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(forall.getBody());
    placeTile(forall);
    for (Operation &op : body.without_terminator())
      if (!hoisted.contains(&op))
        cloneIntoTile(op);
    SmallVector<Slice> slices = llvm::map_to_vector(
        tiled, [&](Value value) { return getOutputSlice(value); });
    b.setInsertionPointToStart(forall.getTerminator().getBody());
    for (auto [value, slice, output] : llvm::zip_equal(tiled, slices, outputs))
      tensor::ParallelInsertSliceOp::create(b, loc, mapping.lookup(value),
                                            output, slice.offsets, slice.sizes,
                                            slice.getStrides(b));
  }
  for (auto [value, result] : llvm::zip_equal(tiled, forall.getResults()))
    mapping.map(value, finish(value, result));
  returnResults(memory);
  return function;
}

func::FuncOp fp8::buildFusionFunction(OpBuilder &b, FusionOp fusion,
                                      const FusionTiling &tiling,
                                      const Twine &name) {
  return TileBuilder(b, fusion, tiling).build(name);
}

SmallVector<Value> fp8::createFusionMemory(OpBuilder &b, FusionOp fusion,
                                           const FusionTiling &tiling,
                                           ValueRange inputs) {
  return TileBuilder(b, fusion, tiling).createMemory(inputs);
}

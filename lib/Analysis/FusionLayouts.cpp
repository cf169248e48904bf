//===- FusionLayouts.cpp - Where the values of a fusion lie ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/FusionLayouts.h"
#include "fp8/IR/FP8Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

bool FusionLayout::isFull() const {
  return llvm::all_of(block, [](int64_t extent) { return extent == 1; });
}

bool FusionLayout::isSingle() const {
  return llvm::all_of(block, [](int64_t extent) { return extent == kWhole; });
}

bool FusionLayout::isOrdered() const {
  int64_t last = -1;
  for (int64_t dim : dims) {
    if (dim < 0)
      continue;
    if (dim <= last)
      return false;
    last = dim;
  }
  return true;
}

FusionLayout FusionLayouts::getFull() const {
  return getBlocks(SmallVector<int64_t>(domain.size(), 1),
                   static_cast<int64_t>(domain.size()));
}

/// Blocks of a tensor of `rank` dimensions that are the domain's.
FusionLayout FusionLayouts::getBlocks(ArrayRef<int64_t> block,
                                      int64_t rank) const {
  FusionLayout layout;
  layout.block = llvm::to_vector(block);
  for (int64_t dim = 0; dim < rank; ++dim)
    layout.dims.push_back(block[dim] == kWhole ? -1 : dim);
  return layout;
}

/// The layout of what there is one of for the domain, in as many dimensions.
FusionLayout FusionLayouts::getSingle() const {
  return getBlocks(SmallVector<int64_t>(domain.size(), kWhole),
                   static_cast<int64_t>(domain.size()));
}

bool FusionLayouts::isDomain(ArrayRef<int64_t> shape) const {
  return shape == ArrayRef(domain);
}

const FusionLayout *FusionLayouts::lookup(Value value) const {
  auto found = values.find(value);
  return found == values.end() ? nullptr : &found->second;
}

const FusionLayout &FusionLayouts::lookup(OpOperand &operand) const {
  auto found = values.find(operand.get());
  return found == values.end() ? reads.at(&operand) : found->second;
}

LogicalResult FusionLayouts::read(OpOperand &operand, FusionLayout layout,
                                  std::string &reason) {
  if (const FusionLayout *known = lookup(operand.get())) {
    if (*known == layout)
      return success();
    reason = "expected an operand to be read as it was computed, element by "
             "element";
    return failure();
  }
  // A constant has no place.
  reads[&operand] = std::move(layout);
  return success();
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

SmallVector<int64_t> FusionLayouts::getOwnDomain(Operation *op) {
  return llvm::TypeSwitch<Operation *, SmallVector<int64_t>>(op)
      .Case<AmaxOp, HadamardOp, QuantizeOp>([](auto op) {
        return llvm::to_vector(
            cast<RankedTensorType>(op.getSource().getType()).getShape());
      })
      .Case([](linalg::TransposeOp op) {
        return llvm::to_vector(op.getInput().getType().getShape());
      })
      .Case<DequantizeOp, TransposeOp>([](auto op) {
        return llvm::to_vector(op.getSource().getType().getShape());
      })
      .Case([](linalg::GenericOp op) { return op.getStaticLoopRanges(); })
      .Default(SmallVector<int64_t>());
}

SmallVector<int64_t> FusionLayouts::findDomain(Block &body) {
  auto getSize = [](ArrayRef<int64_t> shape) {
    double size = 1;
    for (int64_t extent : shape)
      size *= ShapedType::isDynamic(extent) ? 1e9 : static_cast<double>(extent);
    return std::pair(shape.size(), size);
  };
  SmallVector<int64_t> domain;
  for (Operation &op : body) {
    SmallVector<int64_t> own = getOwnDomain(&op);
    if (getSize(own) > getSize(domain))
      domain = own;
  }
  return domain;
}

Operation *fp8::getCombiner(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1)
    return nullptr;
  BlockArgument carried = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Operation *combiner =
      op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  if (!isa_and_present<arith::AddFOp, arith::MaximumFOp, arith::MaxNumFOp>(
          combiner) ||
      !carried.hasOneUse() || *carried.user_begin() != combiner ||
      !carried.getType().isF32())
    return nullptr;
  return combiner;
}

bool fp8::isReduction(Operation *op) {
  auto generic = dyn_cast_if_present<linalg::GenericOp>(op);
  return isa_and_present<AmaxOp>(op) ||
         (generic && generic.getNumReductionLoops() != 0);
}

/// The bits of a number, of which a register has those of an f32: all of them,
/// or its upper half.
static bool isBitcastOfRegister(arith::BitcastOp op) {
  Type from = op.getIn().getType(), to = op.getType();
  if (from.isInteger())
    std::swap(from, to);
  return (from.isF32() && to.isInteger(32)) ||
         (from.isBF16() && to.isInteger(16));
}

/// Functions that every target has instructions or an approximation for.
static bool isCommon(Operation *op) {
  if (auto bitcast = dyn_cast<arith::BitcastOp>(op))
    return isBitcastOfRegister(bitcast);
  if (isa<math::AbsFOp, math::AtanOp, math::CeilOp, math::CopySignOp,
          math::CosOp, math::ErfOp, math::ExpOp, math::ExpM1Op, math::FloorOp,
          math::FmaOp, math::LogOp, math::Log1pOp, math::Log2Op,
          math::RoundEvenOp, math::RsqrtOp, math::SinOp, math::SqrtOp,
          math::TanhOp, math::TruncOp>(op))
    return true;
  return isa_and_present<arith::ArithDialect>(op->getDialect()) &&
         !isa<arith::CeilDivSIOp, arith::CeilDivUIOp, arith::FloorDivSIOp,
              arith::RemFOp>(op);
}

/// Elementwise arithmetic on numbers, which fits into f32.
static LogicalResult checkBody(Block &body, std::string &reason) {
  auto isNumber = [](Type type) {
    return isa<Float32Type, BFloat16Type, Float16Type>(type) ||
           type.isInteger(1) || type.isInteger(32);
  };
  if (!llvm::all_of(body.getArguments(), [&](BlockArgument argument) {
        return isNumber(argument.getType()) || isPlace(argument);
      })) {
    reason = "expected elements of f32, bf16 and f16";
    return failure();
  }
  llvm::SmallPtrSet<Operation *, 8> places = getPlaces(body);
  for (Operation &op : body.without_terminator()) {
    // Which has its own conditions.
    if (places.contains(&op) && isPlaceArithmetic(&op))
      continue;
    if (isa<tensor::ExtractOp>(op) && isNumber(op.getResult(0).getType()))
      continue;
    if (op.getNumRegions() != 0 || op.getNumResults() != 1 ||
        !isMemoryEffectFree(&op) || !isCommon(&op)) {
      reason = llvm::formatv("expected elementwise arithmetic, but got {0}",
                             op.getName());
      return failure();
    }
    Type type = op.getResult(0).getType();
    if (!isNumber(type) && !type.isInteger(16)) {
      reason = llvm::formatv("expected arithmetic on f32, bf16 and f16, but "
                             "got {0} on {1}",
                             op.getName(), type);
      return failure();
    }
  }
  return success();
}

bool fp8::isPositionDependent(Operation *op) {
  auto quantize = dyn_cast<QuantizeOp>(op);
  return isa<HadamardOp>(op) || (quantize && quantize.getSeed());
}

LogicalResult FusionLayouts::checkReduction(const FusionLayout &result,
                                            bool isAmax, std::string &reason) {
  auto fail = [&](const Twine &text) {
    reason = text.str();
    return failure();
  };
  ArrayRef<int64_t> block = result.block;
  if (result.isSingle())
    return isAmax
               ? success()
               : fail("expected a sum of rows, but got that of all elements");
  const int64_t *whole = llvm::find(block.drop_back(), kWhole);
  if (whole != block.drop_back().end()) {
    bool isColumn =
        block.back() == 1 &&
        llvm::all_of(llvm::make_range(whole, block.end() - 1),
                     [](int64_t extent) { return extent == kWhole; });
    return isColumn ? success()
                    : fail("expected one column's reduction over all rows, but "
                           "got one over others");
  }
  if (block.back() == kWhole &&
      llvm::any_of(block.drop_back(),
                   [](int64_t extent) { return extent != 1; }))
    return fail(
        "expected one row's reduction, but got that of a block of rows");
  for (auto [dim, extent] : llvm::enumerate(block)) {
    if (extent == kWhole)
      continue;
    if (!llvm::isPowerOf2_64(extent) || extent > 128)
      return fail("expected blocks of a power of two up to 128, but got " +
                  Twine(extent));
    if (extent != 1 && dim + 2 < block.size())
      return fail("expected blocks of the last two dimensions");
  }
  if (block.back() > 1 && block.back() < 8)
    return fail("expected blocks of at least 8 columns, but got " +
                Twine(block.back()));
  return success();
}

namespace {
/// A loop's dimension of the domain, and the extent of its blocks.
using DomainLoop = std::pair<int64_t, int64_t>;
} // namespace

/// A loop over nothing of the domain.
static constexpr DomainLoop kNoLoop{-1, 0};

/// What the loops of `op` are: those of the domain, if `isWhole`, or of its
/// blocks, as the layouts of operands say.
static SmallVector<DomainLoop> findLoops(const FusionLayouts &layouts,
                                         linalg::LinalgOp op, bool isWhole) {
  SmallVector<DomainLoop> found(op.getNumLoops(), kNoLoop);
  if (isWhole) {
    for (size_t dim = 0; dim < layouts.getDomain().size(); ++dim)
      found[dim] = {static_cast<int64_t>(dim), 1};
    return found;
  }
  for (OpOperand *input : op.getDpsInputOperands()) {
    const FusionLayout *layout = layouts.lookup(input->get());
    if (!layout)
      continue;
    for (auto [k, expr] :
         llvm::enumerate(op.getMatchingIndexingMap(input).getResults())) {
      auto loop = dyn_cast<AffineDimExpr>(expr);
      if (loop && layout->dims[k] >= 0)
        found[loop.getPosition()] = {layout->dims[k],
                                     layout->block[layout->dims[k]]};
    }
  }
  return found;
}

/// How an operand with this indexing map lies in a domain of `rank` dimensions;
/// `mayBlock` allows an element for each block of a loop's values.
static FailureOr<FusionLayout> getLayoutOf(AffineMap map,
                                           ArrayRef<DomainLoop> loops,
                                           size_t rank, bool mayBlock = false) {
  FusionLayout layout;
  layout.block.assign(rank, kWhole);
  for (AffineExpr expr : map.getResults()) {
    if (auto block = dyn_cast<AffineBinaryOpExpr>(expr);
        block && mayBlock && block.getKind() == AffineExprKind::FloorDiv) {
      auto loop = dyn_cast<AffineDimExpr>(block.getLHS());
      auto size = dyn_cast<AffineConstantExpr>(block.getRHS());
      if (!loop || !size || loops[loop.getPosition()].second != 1)
        return failure();
      int64_t dim = loops[loop.getPosition()].first;
      layout.dims.push_back(dim);
      layout.block[dim] = size.getValue();
      continue;
    }
    auto loop = dyn_cast<AffineDimExpr>(expr);
    auto zero = dyn_cast<AffineConstantExpr>(expr);
    if (!loop && (!zero || zero.getValue() != 0))
      return failure();
    auto [dim, extent] = loop ? loops[loop.getPosition()] : kNoLoop;
    layout.dims.push_back(dim);
    if (dim >= 0)
      layout.block[dim] = extent;
  }
  return layout;
}

/// Whether a tensor has an element for each block of the domain.
static bool hasAllBlocks(Value value, const FusionLayout &layout,
                         ArrayRef<int64_t> domain) {
  auto type = cast<RankedTensorType>(value.getType());
  return llvm::all_of(llvm::enumerate(layout.dims), [&](auto indexed) {
    auto [k, dim] = indexed;
    if (dim < 0 || layout.block[dim] <= 1)
      return true;
    int64_t blocks =
        ShapedType::isDynamic(domain[dim])
            ? ShapedType::kDynamic
            : llvm::divideCeilSigned(domain[dim], layout.block[dim]);
    return type.getDimSize(k) == blocks;
  });
}

/// Fails if the result of a reduction has not one element for each block of the
/// domain, or does not start with a constant.
static LogicalResult checkReduced(OpOperand &init, const FusionLayout &layout,
                                  ArrayRef<int64_t> domain,
                                  std::string &reason) {
  if (!hasAllBlocks(init.get(), layout, domain)) {
    reason = "expected a result for each block";
    return failure();
  }
  auto fill = init.get().getDefiningOp<linalg::FillOp>();
  if (fill && fill.getInputs()[0].getDefiningOp<arith::ConstantOp>())
    return success();
  reason = "expected a reduction that starts with a constant";
  return failure();
}

/// Fails if a result is read as well, or written more than once.
static LogicalResult checkWritten(linalg::LinalgOp op, OpOperand &init,
                                  const FusionLayout &layout,
                                  ArrayRef<DomainLoop> loops,
                                  std::string &reason) {
  if (!op.getMatchingBlockArgument(&init).use_empty()) {
    reason = "expected results that are only written";
    return failure();
  }
  for (auto [loop, range] : llvm::zip_equal(loops, op.getStaticLoopRanges()))
    if (loop != kNoLoop && range != 1 &&
        !llvm::is_contained(layout.dims, loop.first)) {
      reason = "expected results that have all loops";
      return failure();
    }
  return success();
}

LogicalResult FusionLayouts::addGeneric(linalg::LinalgOp op,
                                        std::string &reason) {
  auto fail = [&](const Twine &text) {
    reason = text.str();
    return failure();
  };
  if (!op.hasPureTensorSemantics())
    return fail("expected tensors");
  if (failed(checkBody(*op.getBlock(), reason)))
    return failure();
  SmallVector<int64_t> ranges = op.getStaticLoopRanges();
  SmallVector<DomainLoop> found = findLoops(*this, op, isDomain(ranges));
  for (auto [loop, range] : llvm::zip_equal(found, ranges))
    if (loop == kNoLoop && range != 1)
      return fail("expected loops over the elements of one tensor");

  bool hasFull = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    if (!isa<RankedTensorType>(input->get().getType()))
      continue;
    // What a block has in common is read by the block's index.
    FailureOr<FusionLayout> layout =
        getLayoutOf(op.getMatchingIndexingMap(input), found, domain.size(),
                    /*mayBlock=*/true);
    if (failed(layout))
      return fail("expected operands that are read by the loops' indices");
    if (layout->isFull() && !layout->isOrdered())
      return fail("expected operands that are read in the order of the domain");
    if (!hasAllBlocks(input->get(), *layout, domain))
      return fail("expected operands with an element for each block");
    hasFull |= layout->isFull();
    if (failed(read(*input, *layout, reason)))
      return failure();
  }
  if (failed(addGathers(op, found, reason)))
    return failure();
  hasFull |= !op.getBlock()->getOps<tensor::ExtractOp>().empty();
  if (isDomain(ranges) && !hasFull)
    return fail("expected an operand that has an element for each of the "
                "domain");
  bool reduces = op.getNumReductionLoops() != 0;
  if (reduces && !isDomain(ranges))
    return fail("expected a reduction of the domain's elements");
  if (reduces && !getCombiner(op))
    return fail("expected a sum or a maximum in f32 of the elements of rows or "
                "columns");
  for (OpOperand &init : op.getDpsInitsMutable()) {
    FailureOr<FusionLayout> layout =
        getLayoutOf(op.getMatchingIndexingMap(&init), found, domain.size(),
                    /*mayBlock=*/reduces);
    if (failed(layout))
      return fail("expected results that are written by the loops' indices");
    if (reduces ? failed(checkReduced(init, *layout, domain, reason)) ||
                      failed(checkReduction(*layout, /*isAmax=*/false, reason))
                : failed(checkWritten(op, init, *layout, found, reason)))
      return failure();
    values[op.getTiedOpResult(&init)] = *layout;
  }
  loops[op] = found;
  return success();
}

LogicalResult FusionLayouts::addTranspose(linalg::TransposeOp op,
                                          std::string &reason) {
  const FusionLayout *source = lookup(op.getInput());
  if (!source) {
    if (!isDomain(op.getInput().getType().getShape())) {
      reason = "expected a transpose of the domain";
      return failure();
    }
    reads[&op.getInputMutable()] = getFull();
    source = &reads[&op.getInputMutable()];
  }
  FusionLayout layout{
      applyPermutation(ArrayRef(source->dims), op.getPermutation()),
      source->block};
  values[op->getResult(0)] = layout;
  return success();
}

LogicalResult FusionLayouts::add(Operation *op, std::string &reason) {
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](linalg::GenericOp op) { return addGeneric(op, reason); })
      .Case([&](linalg::TransposeOp op) { return addTranspose(op, reason); })
      .Case([&](AmaxOp op) { return addAmax(op, reason); })
      .Case([&](ComputeScaleOp op) { return addScale(op, reason); })
      .Case([&](HadamardOp op) { return addHadamard(op, reason); })
      .Case([&](QuantizeOp op) { return addQuantize(op, reason); })
      .Case([&](DisassembleOp op) { return addDisassemble(op, reason); })
      .Case([&](DequantizeOp op) { return addDequantize(op, reason); })
      .Case([&](AssembleOp op) { return addAssemble(op, reason); })
      .Case([&](TransposeOp op) { return addTranspose(op, reason); })
      // What starts reductions and holds results.
      .Case<linalg::FillOp, tensor::EmptyOp, tensor::DimOp, arith::ConstantOp>(
          [](auto) { return success(); })
      .Default([&](Operation *op) {
        reason = llvm::formatv("expected what works on a tensor element by "
                               "element, but got {0}",
                               op->getName());
        return failure();
      });
}

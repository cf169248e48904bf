//===- ReadFusion.cpp - Which fusions there are kernels for ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionCodes.h"
#include "FusionSpec.h"
#include "fp8/IR/Formats.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;
/// Rows of a tile, at most.
static constexpr int64_t kMaxHeldRows = 512;
/// A thread's chunk of columns: less of something that is measured below each
/// other is what loops read as it lies.
static constexpr int64_t kMinColumns = 8;

/// So many rows of a batch a thread of a loop adds up as fast as memory has
/// them: a kernel that holds 7 took 2.4 times a copy's time on an H200.
static constexpr int64_t kFewRows = 16;

/// An element type that kernels load and store.
static bool isStored(Type type) {
  const fp8rt::NumberFormat *format = getNumberFormat(type);
  return format && (!format->isCode || hasCodes(type));
}

/// Whether a tensor of integers says where another one is read.
static bool isOfPlaces(BlockArgument argument) {
  return llvm::all_of(argument.getUses(), [](OpOperand &use) {
    auto generic = dyn_cast<linalg::GenericOp>(use.getOwner());
    return generic && isPlace(generic.getMatchingBlockArgument(&use));
  });
}

/// Whether a tensor of integers is what random numbers are made from.
static bool isSeed(BlockArgument argument) {
  return llvm::all_of(argument.getUses(), [](OpOperand &use) {
    auto quantize = dyn_cast<QuantizeOp>(use.getOwner());
    return quantize && use.get() == quantize.getSeed();
  });
}

/// Codes that share bytes are accessed byte by byte.
static LogicalResult checkGroups(const FusionSpec &spec, Type type,
                                 const FusionLayout &layout,
                                 std::string &reason) {
  if (!isPacked(type))
    return success();
  if (!spec.getBlock(layout).isFull()) {
    reason = llvm::formatv("expected a code of {0} for each element",
                           getElementTypeOrSelf(type));
    return failure();
  }
  int64_t extent = spec.isTransposed(layout) ? spec.rows : spec.columns;
  bool isKnown = !ShapedType::isDynamic(extent);
  if (isKnown && getPacking(type).isWhole(extent))
    return success();
  reason = llvm::formatv("expected a known number of codes of {0} in a row "
                         "that fill bytes, but got {1}",
                         getElementTypeOrSelf(type),
                         isKnown ? std::to_string(extent) : "?");
  return failure();
}

static LogicalResult checkTypes(FusionSpec &spec, std::string &reason) {
  auto check = [&](Type type) {
    if (isStored(getElementTypeOrSelf(type)))
      return success();
    reason = llvm::formatv("expected f32, bf16, f16, 8-bit and f4E2M1FN "
                           "elements, but got {0}",
                           type);
    return failure();
  };
  for (const FusionSpec::Input &input : spec.inputs) {
    Type element = getElementTypeOrSelf(input.argument.getType());
    if ((element.isInteger(32) || element.isInteger(64)) &&
        (isOfPlaces(input.argument) || isSeed(input.argument)))
      continue;
    if (failed(check(element)) ||
        failed(checkGroups(spec, element, input.layout, reason)))
      return failure();
  }
  for (auto [i, type] : llvm::enumerate(spec.op.getResultTypes())) {
    const FusionLayout &layout = spec.getResultLayout(i);
    if (failed(check(type)) || failed(checkGroups(spec, type, layout, reason)))
      return failure();
    bool isCode = getElementTypeOrSelf(type).getIntOrFloatBitWidth() <= 8;
    if (spec.isTransposed(layout) && spec.getBlock(layout).isFull() &&
        !isCode) {
      reason = llvm::formatv("expected a transposed result to be codes, but "
                             "got {0}",
                             type);
      return failure();
    }
  }
  return success();
}

/// Whether `op` is all that a fusion computes, of what no other one has: that
/// may be the sums of its parts, which are little.
static bool isLone(const FusionSpec &spec, Operation &op) {
  auto isOfFusion = [](Value operand) {
    return bool(operand.getDefiningOp<FusionOp>());
  };
  return spec.op->getNumResults() == 1 &&
         llvm::none_of(spec.op->getOperands(), isOfFusion) &&
         llvm::all_of(
             spec.getBody().without_terminator(), [&](Operation &other) {
               return &other == &op ||
                      isa<tensor::EmptyOp, linalg::FillOp, arith::ConstantOp>(
                          other);
             });
}

/// What the kernel measures, and of which blocks.
static LogicalResult addReductions(FusionSpec &spec, std::string &reason) {
  auto fail = [&](const Twine &text) {
    reason = text.str();
    return failure();
  };
  for (Operation &op : spec.getBody().without_terminator()) {
    if (!isReduction(&op))
      continue;
    FusionBlock block = spec.getBlock(*spec.layouts.lookup(op.getResult(0)));
    if (block.isSingle()) {
      // Known when all blocks are through.
      for (Operation *user : op.getUsers())
        if (!user->hasTrait<OpTrait::IsTerminator>())
          return fail("expected the amax of the whole tensor to be a result "
                      "only: it is known when the tensor has been read");
      continue;
    }
    if (block.rows == kWhole) {
      if (ShapedType::isDynamic(spec.rows) || spec.rows > kMaxHeldRows)
        return fail("expected columns of at most " + Twine(kMaxHeldRows) +
                    " rows, of which something is measured");
      if (spec.isBatched && block.batches == kWhole)
        return fail("expected columns of one batch, of which something is "
                    "measured");
      if (isa<linalg::GenericOp>(op) && isLone(spec, op) && spec.isBatched &&
          spec.rows <= kFewRows)
        return fail("expected more than a sum of " + Twine(kFewRows) +
                    " rows or fewer, which a loop adds up as they lie");
      spec.heldRows = std::max<int64_t>(2, llvm::PowerOf2Ceil(spec.rows));
      block.rows = spec.heldRows;
    }
    if (isa<linalg::GenericOp>(op) && block.rows > 1 &&
        !ShapedType::isDynamic(spec.columns) && spec.columns < kMinColumns)
      return fail("expected at least " + Twine(kMinColumns) +
                  " columns to add up below each other, but got " +
                  Twine(spec.columns));
    if (block.columns == kWhole)
      spec.reducesRows = true;
    else
      spec.blockColumns = std::max(spec.blockColumns, block.columns);
    spec.blockRows = std::max(spec.blockRows, block.rows);
    if (block.rows > 1)
      spec.leastRows = std::min(spec.leastRows, block.rows);
  }
  return success();
}

/// What of the body takes elements together that are beside or below each
/// other.
static void addPlaces(FusionSpec &spec) {
  for (Operation &op : spec.getBody().without_terminator()) {
    if (!isPositionDependent(&op))
      continue;
    bool isOfRows = spec.isTransposed(*spec.layouts.lookup(op.getResult(0)));
    if (!isa<HadamardOp>(op)) {
      spec.draws = true;
      spec.drawsRows |= isOfRows;
    } else if (isOfRows) {
      // A thread has some rows of a block, or all, and its warp the others.
      spec.rotatesRows = true;
      spec.blockRows = std::max(spec.blockRows, HadamardOp::kSize);
      spec.leastRows = std::min(spec.leastRows, HadamardOp::kSize);
    } else {
      spec.rotatesColumns = true;
      spec.blockColumns = std::max(spec.blockColumns, HadamardOp::kSize);
    }
  }
}

/// Checks that values which several elements have in common are one for a
/// thread's rows and for a chunk.
static LogicalResult checkBlocks(FusionSpec &spec, std::string &reason) {
  for (const FusionSpec::Input &input : spec.inputs) {
    FusionBlock block = spec.getBlock(input.layout);
    if (block.rows > 1 && !llvm::isPowerOf2_64(block.rows)) {
      reason = llvm::formatv("expected values of a power of two of rows to "
                             "read, but got {0}",
                             block.rows);
      return failure();
    }
    if (block.columns > 1 && block.columns % 8 != 0) {
      reason = llvm::formatv("expected values of a multiple of 8 columns to "
                             "read, but got {0}",
                             block.columns);
      return failure();
    }
    if (block.rows > 1)
      spec.leastRows = std::min(spec.leastRows, block.rows);
  }
  return success();
}

static int64_t countHeldTensors(const FusionSpec &spec) {
  llvm::SmallDenseSet<Value> held;
  for (auto quantize : spec.getBody().getOps<QuantizeOp>())
    if (const FusionLayout *scale = spec.layouts.lookup(quantize.getScale());
        scale && !scale->isSingle() && spec.getBlock(*scale).rows > 1)
      held.insert(quantize.getSource());
  return static_cast<int64_t>(held.size());
}

/// Whether an operand is what another fusion has made of a tensor that is read
/// here too.
static bool readsAgain(const FusionSpec &spec) {
  FusionOp op = spec.op;
  return llvm::any_of(op.getInputs(), [&](Value input) {
    auto other = input.getDefiningOp<FusionOp>();
    return other &&
           llvm::any_of(spec.inputs, [&](const FusionSpec::Input &own) {
             return spec.getBlock(own.layout).isFull() &&
                    llvm::is_contained(
                        other.getInputs(),
                        op.getInputs()[own.argument.getArgNumber()]);
           });
  });
}

namespace {
/// Reads a fusion's body into its spec, step by step: inputs, captures,
/// results, extents.
class SpecReader {
public:
  SpecReader(FusionSpec &spec, std::string &reason)
      : spec(spec), body(spec.getBody()), domain(spec.layouts.getDomain()),
        reason(reason) {}

  LogicalResult read();

private:
  LogicalResult fail(const Twine &text) {
    reason = text.str();
    return failure();
  }
  bool hasBatches() const { return domain.size() == 3; }

  LogicalResult addLayouts();
  LogicalResult addInput(BlockArgument argument, const FusionLayout &layout,
                         bool isGathered);
  /// Adds the tensors that `inner` reads element by element.
  LogicalResult addInputs(Operation &inner);
  LogicalResult addYielded(Operation &yield);
  /// Adds the tensors of which `generic` reads rows by an index.
  LogicalResult addGathered(linalg::GenericOp generic);
  LogicalResult addCaptures();
  LogicalResult addResults();
  void setExtents();
  /// Fails if the domain has no elements, but some result has: no block of
  /// threads would write anything.
  LogicalResult checkElements();
  /// Fails if no input tells how large the domain is.
  LogicalResult checkSizes();

  FusionSpec &spec;
  Block &body;
  ArrayRef<int64_t> domain;
  std::string &reason;
  /// Whether something lies otherwise than batch by batch.
  bool tellsBatches = false;
};
} // namespace

/// Whether batches are told apart by what lies so.
static bool liesByBatch(const FusionLayout &layout) {
  return !layout.isOrdered() || layout.block[0] != layout.block[1] ||
         (layout.block[0] != 1 && layout.block[0] != kWhole);
}

LogicalResult SpecReader::addLayouts() {
  if (domain.empty() || domain.size() > 3)
    return fail("expected a domain of one to three dimensions, but got " +
                Twine(domain.size()));
  for (Operation &inner : body.without_terminator())
    if (failed(spec.layouts.add(&inner, reason)))
      return failure();
  return success();
}

LogicalResult SpecReader::addInput(BlockArgument argument,
                                   const FusionLayout &layout,
                                   bool isGathered) {
  if (hasBatches())
    tellsBatches |= liesByBatch(layout);
  auto *known = llvm::find_if(spec.inputs, [&](const FusionSpec::Input &input) {
    return input.argument == argument;
  });
  if (known == spec.inputs.end()) {
    spec.inputs.push_back({argument, layout, isGathered});
    return success();
  }
  if (known->layout == layout && known->isGathered == isGathered)
    return success();
  return fail("expected each input to be read in one way");
}

LogicalResult SpecReader::addInputs(Operation &inner) {
  auto destination = dyn_cast<DestinationStyleOpInterface>(inner);
  for (OpOperand &operand : inner.getOpOperands()) {
    // What a result would be written to has no say here.
    auto argument = dyn_cast<BlockArgument>(operand.get());
    if (!argument || isa<tensor::DimOp>(inner) ||
        (destination && destination.isDpsInit(&operand)) ||
        !isa<RankedTensorType>(argument.getType()))
      continue;
    if (failed(addInput(argument, spec.layouts.lookup(operand),
                        /*isGathered=*/false)))
      return failure();
  }
  return success();
}

LogicalResult SpecReader::addYielded(Operation &yield) {
  for (Value yielded : yield.getOperands()) {
    const FusionLayout *layout = spec.layouts.lookup(yielded);
    if (!layout)
      return fail("expected results that are computed");
    if (hasBatches())
      tellsBatches |= liesByBatch(*layout);
  }
  return success();
}

LogicalResult SpecReader::addGathered(linalg::GenericOp generic) {
  for (auto extract : generic.getBody()->getOps<tensor::ExtractOp>()) {
    auto argument = dyn_cast<BlockArgument>(extract.getTensor());
    if (!argument || argument.getOwner() != &body)
      return fail("expected an input to read rows of by their index");
    if (failed(addInput(argument,
                        spec.layouts.lookup(extract.getTensorMutable()),
                        /*isGathered=*/true)))
      return failure();
  }
  // Rows of all batches have one index together otherwise.
  for (auto index : generic.getBody()->getOps<linalg::IndexOp>())
    tellsBatches |= hasBatches() &&
                    spec.layouts.getLoops(generic)[index.getDim()].first != 2;
  return success();
}

LogicalResult SpecReader::addCaptures() {
  for (BlockArgument argument : body.getArguments()) {
    if (isa<ScaledType>(argument.getType()))
      return fail(
          "expected codes and scale factors as inputs, but got both in one");
    // Sizes of results are the domain's anyway.
    if (!isa<ShapedType>(argument.getType()) &&
        !llvm::all_of(argument.getUsers(), llvm::IsaPred<tensor::EmptyOp>)) {
      if (!argument.getType().isF32())
        return fail("expected scalars of f32");
      spec.captures.push_back(argument);
    }
  }
  return success();
}

LogicalResult SpecReader::addResults() {
  for (Value yielded : body.getTerminator()->getOperands()) {
    const FusionLayout &layout = *spec.layouts.lookup(yielded);
    spec.transposes |= spec.isTransposed(layout) && layout.isFull();
    if (hasBatches() && spec.isTransposed(layout) &&
        (layout.dims.empty() || layout.dims[0] > 0))
      return fail("expected batches to stay in their places");
  }
  return success();
}

void SpecReader::setExtents() {
  // The blocks of a batch's rows begin with it, and so do its codes.
  spec.isBatched =
      tellsBatches || (hasBatches() && (spec.rotatesRows || spec.drawsRows));
  auto product = [](int64_t a, int64_t b) {
    return ShapedType::isDynamic(a) || ShapedType::isDynamic(b)
               ? ShapedType::kDynamic
               : a * b;
  };
  spec.columns = domain.back();
  if (domain.size() >= 2)
    spec.rows = domain[domain.size() - 2];
  if (hasBatches() && spec.isBatched)
    spec.batch = domain[0];
  else if (hasBatches())
    spec.rows = product(domain[0], domain[1]);
}

LogicalResult SpecReader::checkElements() {
  if (!llvm::is_contained(domain, 0))
    return success();
  for (Value yielded : body.getTerminator()->getOperands()) {
    // An amax is 0 before.
    if (yielded.getDefiningOp<AmaxOp>() &&
        spec.layouts.lookup(yielded)->isSingle())
      continue;
    auto type = cast<RankedTensorType>(yielded.getType());
    if (!type.hasStaticShape() || type.getNumElements() != 0)
      return fail("expected a domain with elements, but got none");
  }
  return success();
}

LogicalResult SpecReader::checkSizes() {
  bool hasFull = llvm::any_of(spec.inputs, [&](const FusionSpec::Input &input) {
    return spec.getBlock(input.layout).isFull();
  });
  if (!hasFull)
    return fail("expected an input that has an element for each of the domain");
  for (size_t dim = 0; dim < domain.size(); ++dim)
    if (!spec.findExtent(static_cast<int64_t>(dim)))
      return fail("expected an input that has an element for each row");
  return success();
}

/// Whether something is added up of whole rows: a maximum has no order.
static bool addsUpRows(const FusionSpec &spec) {
  return llvm::any_of(
      spec.getBody().getOps<linalg::GenericOp>(), [&](linalg::GenericOp op) {
        if (!isReduction(op) || !isa<arith::AddFOp>(getCombiner(op)))
          return false;
        FusionBlock block =
            spec.getBlock(*spec.layouts.lookup(op->getResult(0)));
        return !block.isSingle() && block.columns == kWhole;
      });
}

LogicalResult SpecReader::read() {
  if (failed(addLayouts()))
    return failure();
  for (Operation &inner : body) {
    if (inner.hasTrait<OpTrait::IsTerminator>()) {
      if (failed(addYielded(inner)))
        return failure();
      continue;
    }
    if (failed(addInputs(inner)))
      return failure();
    // What is measured may be read by nothing but the body.
    if (hasBatches() && isReduction(&inner))
      tellsBatches |= liesByBatch(*spec.layouts.lookup(inner.getResult(0)));
    if (auto generic = dyn_cast<linalg::GenericOp>(inner);
        generic && failed(addGathered(generic)))
      return failure();
  }
  if (failed(addCaptures()) || failed(addResults()))
    return failure();
  addPlaces(spec);
  setExtents();
  if (failed(checkTypes(spec, reason)) || failed(addReductions(spec, reason)) ||
      failed(checkBlocks(spec, reason)))
    return failure();
  if (spec.reducesRows && ShapedType::isDynamic(spec.columns))
    return fail("expected a static row length for a row reduction");
  if (failed(checkElements()))
    return failure();
  spec.hasInvariantSums = isInvariant(spec.op) && addsUpRows(spec);
  spec.rereads = readsAgain(spec);
  spec.heldTensors = countHeldTensors(spec);
  return checkSizes();
}

FailureOr<FusionSpec> FusionSpec::get(FusionOp op, std::string &reason) {
  FusionSpec spec(FusionLayouts::findDomain(op.getBody().front()));
  spec.op = op;
  if (failed(SpecReader(spec, reason).read()))
    return failure();
  return spec;
}

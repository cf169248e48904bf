//===- FusionSpec.cpp - What a streaming kernel computes ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionSpec.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;
/// A tile has no more.
static constexpr int64_t kMaxHeldRows = 512;
/// A thread's chunk of columns: less of something that is measured below each
/// other is what loops read as it lies.
static constexpr int64_t kFewestColumns = 8;

bool FusionBlock::isSingle() const {
  return batches == kWhole && rows == kWhole && columns == kWhole;
}

FusionBlock FusionSpec::getBlock(const FusionLayout &layout) const {
  FusionBlock block = getBlockOf(layout.block);
  // A tile has all of them.
  if (heldRows > 1 && block.rows == kWhole && block.columns != kWhole)
    block.rows = heldRows;
  return block;
}

FusionBlock FusionSpec::getBlockOf(ArrayRef<int64_t> block) const {
  switch (block.size()) {
  case 1:
    // A single row: what has all columns has all rows.
    return {block[0] == kWhole ? kWhole : 1, block[0] == kWhole ? kWhole : 1,
            block[0]};
  case 2:
    // A single batch, alike.
    return {block[0] == kWhole && block[1] == kWhole ? kWhole : 1, block[0],
            block[1]};
  default:
    if (!isBatched)
      return {block[1] == kWhole && block[2] == kWhole ? kWhole : 1, block[1],
              block[2]};
    return {block[0], block[1], block[2]};
  }
}

bool FusionSpec::isTransposed(const FusionLayout &layout) const {
  return !layout.isOrdered();
}

const FusionLayout &FusionSpec::getResultLayout(unsigned number) const {
  return *layouts.lookup(getBody().getTerminator()->getOperand(number));
}

std::optional<std::pair<unsigned, int64_t>>
FusionSpec::findExtent(int64_t dim) const {
  // Those that have all elements have all extents.
  for (bool isFull : {true, false})
    for (auto [number, input] : llvm::enumerate(inputs)) {
      const auto *at = llvm::find(input.layout.dims, dim);
      if (getBlock(input.layout).isFull() == isFull &&
          at != input.layout.dims.end() && input.layout.block[dim] == 1)
        return std::pair(number, at - input.layout.dims.begin());
    }
  return std::nullopt;
}

bool FusionSpec::hasKnownExtents() const {
  return llvm::none_of(ArrayRef{batch, rows, columns}, ShapedType::isDynamic);
}

std::string FusionSpec::describe() const {
  std::string text = llvm::formatv("{0}x{1}x{2} read", batch, rows, columns);
  llvm::raw_string_ostream os(text);
  for (const Input &input : inputs)
    if (getBlock(input.layout).isFull())
      os << ' ' << getElementTypeOrSelf(input.argument.getType())
         << (input.isGathered ? " by index" : "");
  os << " write";
  for (auto [i, type] : llvm::enumerate(FusionOp(op).getResultTypes())) {
    const FusionLayout &layout = getResultLayout(i);
    if (getBlock(layout).isFull())
      os << ' ' << getElementTypeOrSelf(type)
         << (isTransposed(layout) ? "^T" : "");
  }
  if (blockRows > 1 || blockColumns > 1)
    os << " block " << blockRows << 'x' << blockColumns;
  if (reducesRows)
    os << " by row";
  if (rotatesRows || rotatesColumns)
    os << " rotate";
  if (draws)
    os << " by chance";
  return text;
}

double FusionSpec::getBytes() const {
  double bytes = 0;
  auto add = [&](Type type, const FusionLayout &layout) {
    if (getBlock(layout).isFull())
      bytes += getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8.0;
  };
  for (const Input &input : inputs)
    add(input.argument.getType(), input.layout);
  for (auto [i, type] : llvm::enumerate(FusionOp(op).getResultTypes()))
    add(type, getResultLayout(i));
  return bytes * batch * rows * columns;
}

//===----------------------------------------------------------------------===//
// What there is a kernel for
//===----------------------------------------------------------------------===//

/// An element type that kernels load and store.
static bool isStored(Type type) {
  return isa<Float32Type, BFloat16Type, Float16Type, Float8E4M3FNType,
             Float8E5M2Type, Float8E8M0FNUType, Float4E2M1FNType>(type);
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
static LogicalResult checkPairs(const FusionSpec &spec, Type type,
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
  if (isKnown && extent % kCodesOfByte == 0)
    return success();
  reason = llvm::formatv("expected a known, even number of codes of {0} in a "
                         "row, of which two share a byte, but got {1}",
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
        failed(checkPairs(spec, element, input.layout, reason)))
      return failure();
    if (isa<Float8E8M0FNUType>(element) &&
        spec.getBlock(input.layout).isFull()) {
      reason = llvm::formatv("expected a factor of several elements to read, "
                             "but got one of {0} for each",
                             element);
      return failure();
    }
  }
  for (auto [i, type] : llvm::enumerate(spec.op.getResultTypes())) {
    const FusionLayout &layout = spec.getResultLayout(i);
    if (failed(check(type)) || failed(checkPairs(spec, type, layout, reason)))
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
      spec.heldRows = std::max<int64_t>(2, llvm::PowerOf2Ceil(spec.rows));
      block.rows = spec.heldRows;
    }
    if (isa<linalg::GenericOp>(op) && block.rows > 1 &&
        !ShapedType::isDynamic(spec.columns) && spec.columns < kFewestColumns)
      return fail("expected at least " + Twine(kFewestColumns) +
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
/// thread's rows and of a chunk have one.
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

FailureOr<FusionSpec> FusionSpec::get(FusionOp op, std::string &reason) {
  Block &body = op.getBody().front();
  SmallVector<int64_t> domain = FusionLayouts::findDomain(body);
  FusionSpec spec(domain);
  spec.op = op;
  auto fail = [&](const Twine &text) {
    reason = text.str();
    return failure();
  };
  if (domain.empty() || domain.size() > 3)
    return fail("expected a domain of one to three dimensions, but got " +
                Twine(domain.size()));
  for (Operation &inner : body.without_terminator())
    if (failed(spec.layouts.add(&inner, reason)))
      return failure();

  // Batches are told apart by what lies otherwise than batch by batch.
  auto tellsBatches = [&](const FusionLayout &layout) {
    return !layout.isOrdered() || (layout.block[0] != layout.block[1]) ||
           (layout.block[0] != 1 && layout.block[0] != kWhole);
  };
  bool isBatched = false;
  auto addInput = [&](BlockArgument argument, const FusionLayout &layout,
                      bool isGathered) {
    if (domain.size() == 3)
      isBatched |= tellsBatches(layout);
    auto *known = llvm::find_if(spec.inputs, [&](const Input &input) {
      return input.argument == argument;
    });
    if (known != spec.inputs.end())
      return known->layout == layout && known->isGathered == isGathered;
    spec.inputs.push_back({argument, layout, isGathered});
    return true;
  };
  for (Operation &inner : body) {
    for (OpOperand &operand : inner.getOpOperands()) {
      auto argument = dyn_cast<BlockArgument>(operand.get());
      bool isYield = inner.hasTrait<OpTrait::IsTerminator>();
      if (isYield && !spec.layouts.lookup(operand.get()))
        return fail("expected results that are computed");
      if (isYield && domain.size() == 3)
        isBatched |= tellsBatches(*spec.layouts.lookup(operand.get()));
      // What a result would be written to has no say here.
      auto destination = dyn_cast<DestinationStyleOpInterface>(inner);
      if (!argument || isYield || isa<tensor::DimOp>(inner) ||
          (destination && destination.isDpsInit(&operand)) ||
          !isa<RankedTensorType>(argument.getType()))
        continue;
      if (!addInput(argument, spec.layouts.lookup(operand),
                    /*isGathered=*/false))
        return fail("expected each input to be read in one way");
    }
    auto generic = dyn_cast<linalg::GenericOp>(inner);
    if (!generic)
      continue;
    for (auto extract : generic.getBody()->getOps<tensor::ExtractOp>()) {
      auto argument = dyn_cast<BlockArgument>(extract.getTensor());
      if (!argument || argument.getOwner() != &body)
        return fail("expected an input to read rows of by their index");
      if (!addInput(argument, spec.layouts.lookup(extract.getTensorMutable()),
                    /*isGathered=*/true))
        return fail("expected each input to be read in one way");
    }
    // Rows of all batches have one index together otherwise.
    for (auto index : generic.getBody()->getOps<linalg::IndexOp>())
      isBatched |= domain.size() == 3 &&
                   spec.layouts.getLoops(generic)[index.getDim()].first != 2;
  }
  for (BlockArgument argument : body.getArguments()) {
    if (isa<ScaledType>(argument.getType()))
      return fail("expected codes and factors as inputs, but got both in one");
    // Sizes of results are the domain's anyway.
    if (!isa<ShapedType>(argument.getType()) &&
        !llvm::all_of(argument.getUsers(), llvm::IsaPred<tensor::EmptyOp>)) {
      if (!argument.getType().isF32())
        return fail("expected scalars of f32");
      spec.captures.push_back(argument);
    }
  }
  for (Value yielded : body.getTerminator()->getOperands()) {
    const FusionLayout &layout = *spec.layouts.lookup(yielded);
    spec.transposes |= spec.isTransposed(layout) && layout.isFull();
    if (domain.size() == 3 && spec.isTransposed(layout) &&
        (layout.dims.empty() || layout.dims[0] > 0))
      return fail("expected batches to stay in their places");
  }
  addPlaces(spec);
  // The blocks of a batch's rows begin with it, and so do its codes.
  spec.isBatched =
      isBatched || (domain.size() == 3 && (spec.rotatesRows || spec.drawsRows));
  auto product = [](int64_t a, int64_t b) {
    return ShapedType::isDynamic(a) || ShapedType::isDynamic(b)
               ? ShapedType::kDynamic
               : a * b;
  };
  spec.columns = domain.back();
  if (domain.size() >= 2)
    spec.rows = domain[domain.size() - 2];
  if (domain.size() == 3 && spec.isBatched)
    spec.batch = domain[0];
  else if (domain.size() == 3)
    spec.rows = product(domain[0], domain[1]);
  if (failed(checkTypes(spec, reason)) || failed(addReductions(spec, reason)) ||
      failed(checkBlocks(spec, reason)))
    return failure();
  if (spec.reducesRows && ShapedType::isDynamic(spec.columns))
    return fail("expected a static row length for a row reduction");
  // No block of threads would write anything; an amax is 0 before.
  if (llvm::is_contained(domain, 0))
    for (Value yielded : body.getTerminator()->getOperands())
      if (!yielded.getDefiningOp<AmaxOp>() ||
          !spec.layouts.lookup(yielded)->isSingle())
        if (auto type = cast<RankedTensorType>(yielded.getType());
            !type.hasStaticShape() || type.getNumElements() != 0)
          return fail("expected a domain with elements, but got none");
  spec.rereads = readsAgain(spec);
  spec.heldTensors = countHeldTensors(spec);
  bool hasFull = llvm::any_of(spec.inputs, [&](const Input &input) {
    return spec.getBlock(input.layout).isFull();
  });
  if (!hasFull)
    return fail("expected an input that has an element for each of the domain");
  for (size_t dim = 0; dim < domain.size(); ++dim)
    if (!spec.findExtent(static_cast<int64_t>(dim)))
      return fail("expected an input that has an element for each row");
  return spec;
}

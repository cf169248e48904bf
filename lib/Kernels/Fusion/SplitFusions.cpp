//===- SplitFusions.cpp - Fusions that take several kernels ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A fusion says what stands together, not what one kernel holds. What none
// holds is taken apart here, by results and at reductions, until each part has
// a kernel or is a single result that none computes.
//
//===----------------------------------------------------------------------===//

#include "../TargetLookup.h"
#include "FusionParts.h"
#include "FusionSpec.h"
#include "fp8/Kernels/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_SPLITFUSIONSPASS
#include "fp8/Kernels/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;
/// Rows of a part of a column that is summed by tiles of whole rows.
static constexpr int64_t kPartBesideRows = 32;

namespace {
/// Reductions of a fusion in parts.
struct PartsOfReductions {
  /// What the parts' fusion yields, and for each result of the fusion which of
  /// it, or what is made of it, that result is.
  SmallVector<Value> yields;
  SmallVector<unsigned> places;
  /// What is made of the parts, by their number in `yields`.
  SmallVector<std::pair<unsigned, Value>> wholes;
  /// Those of an unknown number of parts among them, for which there would be
  /// no kernel either.
  llvm::SmallDenseSet<Value> lasts;
};
} // namespace

namespace {
class FusionSplitter {
public:
  explicit FusionSplitter(const KernelTarget &target) : target(target) {}

  /// Whether `op`, which no kernel computes, was taken apart.
  bool split(FusionOp op);

  /// Says why if there is none.
  bool hasKernel(FusionOp op, std::string &reason) const;

private:
  /// Whether there is a kernel for `value` of the body alone.
  bool hasKernel(FusionOp op, Value value) const;
  bool hasKernelInParts(FusionOp op, Value result, ArrayRef<int64_t> domain,
                        int64_t dim);
  /// Each of these does nothing and returns false where it is no help.
  bool splitReductions(FusionOp op, const FusionLayouts &layouts);
  bool splitReductions(FusionOp op, int64_t part);
  PartsOfReductions takeInParts(FusionOp op, const FusionLayouts &layouts,
                                int64_t part);
  bool splitByDependence(FusionOp op, const FusionLayouts &layouts);
  bool splitAtReductions(FusionOp op, const FusionLayouts &layouts);
  bool splitUnsupported(FusionOp op);
  /// The others are made of the first ones where that reads less than what all
  /// are made of.
  void splitResults(FusionOp op, ArrayRef<unsigned> first);

  const KernelTarget &target;
};

struct SplitFusionsPass : fp8::impl::SplitFusionsPassBase<SplitFusionsPass> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const override {
    Base::getDependentDialects(registry);
    registerKernelDialects(registry);
  }
  void runOnOperation() override;
};
} // namespace

//===----------------------------------------------------------------------===//
// What is measured
//===----------------------------------------------------------------------===//

static bool isOfRows(const FusionLayout &layout) {
  return !layout.isSingle() && layout.block.back() == kWhole;
}

/// What is measured of whole rows, or of whole columns.
static bool isHeld(Operation *op, const FusionLayouts &layouts) {
  if (!isReduction(op))
    return false;
  const FusionLayout *layout = layouts.lookup(op->getResult(0));
  return !layout->isSingle() && llvm::is_contained(layout->block, kWhole);
}

/// What is known once whole rows or columns have been measured, for each.
static bool isMeasured(Value value, const FusionLayouts &layouts) {
  const FusionLayout *layout = layouts.lookup(value);
  return layout && !layout->isSingle() &&
         llvm::is_contained(layout->block, kWhole) &&
         llvm::any_of(getSlice(value),
                      [&](Operation *inner) { return isHeld(inner, layouts); });
}

static bool isUsedInside(Operation *op) {
  return llvm::any_of(op->getUsers(), [](Operation *user) {
    return !user->hasTrait<OpTrait::IsTerminator>();
  });
}

//===----------------------------------------------------------------------===//
// Where to split
//===----------------------------------------------------------------------===//

/// A part with some of the results, which replaces them.
static FusionOp extractResults(FusionOp op, ArrayRef<unsigned> numbers,
                               const KnownValues &known = {}) {
  SmallVector<Value> yields;
  for (unsigned number : numbers)
    yields.push_back(getTerminator(op)->getOperand(number));
  FusionOp part = extractFusion(op, yields, known);
  for (auto [number, result] : llvm::zip_equal(numbers, part.getResults()))
    op.getResult(number).replaceAllUsesWith(result);
  return part;
}

/// How many bits a part with some of the results reads.
static int64_t getReadBits(FusionOp op, ArrayRef<unsigned> numbers,
                           const KnownValues &known = {}) {
  // Any extent will do where unknown ones are the same.
  constexpr int64_t kSome = 1024;
  auto yields = llvm::map_to_vector(numbers, [&](unsigned number) {
    return getTerminator(op)->getOperand(number);
  });
  FusionOp part = extractFusion(op, yields, known);
  int64_t bits = 0;
  for (Value input : part.getInputs())
    if (auto type = dyn_cast<RankedTensorType>(input.getType());
        type && type.getElementType().isIntOrFloat()) {
      int64_t own = type.getElementTypeBitWidth();
      for (int64_t extent : type.getShape())
        own *= ShapedType::isDynamic(extent) ? kSome : extent;
      bits += own;
    }
  part.erase();
  return bits;
}

bool FusionSplitter::hasKernel(FusionOp op, std::string &reason) const {
  FailureOr<FusionSpec> spec = FusionSpec::get(op, reason);
  return succeeded(spec) && fp8::hasKernel(*spec, target, reason);
}

bool FusionSplitter::hasKernel(FusionOp op, Value value) const {
  FusionOp part = extractFusion(op, value);
  std::string unused;
  bool found = hasKernel(part, unused);
  part.erase();
  return found;
}

/// Takes reductions of `op` that have no kernel in parts of `part` elements.
PartsOfReductions FusionSplitter::takeInParts(FusionOp op,
                                              const FusionLayouts &layouts,
                                              int64_t part) {
  SmallVector<int64_t> domain = llvm::to_vector(layouts.getDomain());
  PartsOfReductions taken;
  // The results, with those of parts in place of what is made of them.
  llvm::SetVector<Value> made(llvm::from_range,
                              getTerminator(op)->getOperands());
  for (Value yielded : getTerminator(op)->getOperands())
    taken.places.push_back(llvm::find(made, yielded) - made.begin());
  taken.yields.assign(made.begin(), made.end());
  for (Operation &reduction :
       llvm::make_early_inc_range(op.getBody().front().without_terminator())) {
    Value result = reduction.getResult(0);
    if (!isHeld(&reduction, layouts) || isUsedInside(&reduction) ||
        reduction.use_empty() || hasKernel(op, result))
      continue;
    std::optional<int64_t> dim = getPartDim(*layouts.lookup(result), domain);
    if (!dim || !hasKernelInParts(op, result, domain, *dim))
      continue;
    ReductionParts built = *buildParts(op, &reduction, domain, *dim, part);
    for (auto [number, yielded] : llvm::enumerate(taken.yields))
      if (yielded == result) {
        taken.yields[number] = built.parts->getResult(0);
        taken.wholes.emplace_back(number, built.whole->getResult(0));
      }
    if (ShapedType::isDynamic(domain[*dim]))
      taken.lasts.insert(built.whole->getResult(0));
    reduction.replaceAllUsesWith(built.whole);
    reduction.erase();
  }
  return taken;
}

/// Long columns, and rows that are too long, in parts, and those then. Beside
/// what needs whole rows, of which a tile has few, parts of fewer rows.
bool FusionSplitter::splitReductions(FusionOp op,
                                     const FusionLayouts &layouts) {
  // Rows that no kernel holds are taken in parts themselves.
  SmallVector<Value> ofRows;
  for (Operation &inner : op.getBody().front().without_terminator())
    if (isHeld(&inner, layouts) &&
        isOfRows(*layouts.lookup(inner.getResult(0))))
      ofRows.push_back(inner.getResult(0));
  bool needsRows = !ofRows.empty() && llvm::all_of(ofRows, [&](Value value) {
    return hasKernel(op, value);
  });
  if (needsRows && splitReductions(op, kPartBesideRows))
    return true;
  return splitReductions(op, kPart);
}

/// The same in parts of `part`; of other than 128 only if one kernel computes
/// them all.
bool FusionSplitter::splitReductions(FusionOp op, int64_t part) {
  auto copy = cast<FusionOp>(OpBuilder(op).clone(*op));
  FusionLayouts layouts(FusionLayouts::findDomain(copy.getBody().front()));
  std::string unused;
  for (Operation &inner : copy.getBody().front().without_terminator())
    (void)layouts.add(&inner, unused);
  PartsOfReductions taken = takeInParts(copy, layouts, part);
  FusionOp first;
  if (!taken.wholes.empty())
    first = extractFusion(copy, taken.yields);
  if (first && part != kPart && !hasKernel(first, unused)) {
    first.erase();
    first = {};
  }
  if (!first) {
    eraseFusion(copy);
    return false;
  }
  SmallVector<FusionOp> parts{first};
  SmallVector<Value> results(first.getResults());
  for (auto [number, whole] : taken.wholes) {
    KnownValues known;
    known[taken.yields[number]] = first.getResult(number);
    FusionOp second = extractFusion(copy, whole, known);
    results[number] = second.getResult(0);
    if (!taken.lasts.contains(whole))
      parts.push_back(second);
  }
  for (auto [result, place] : llvm::zip_equal(op.getResults(), taken.places))
    result.replaceAllUsesWith(results[place]);
  copy.erase();
  op.erase();
  llvm::for_each(parts, [&](FusionOp part) { split(part); });
  return true;
}

/// Whether there is a kernel for the parts of a reduction of the body alone.
bool FusionSplitter::hasKernelInParts(FusionOp op, Value result,
                                      ArrayRef<int64_t> domain, int64_t dim) {
  FusionOp alone = extractFusion(op, result);
  Operation *reduction = getTerminator(alone)->getOperand(0).getDefiningOp();
  std::optional<ReductionParts> built =
      buildParts(alone, reduction, domain, dim);
  bool found = built && hasKernel(alone, built->parts->getResult(0));
  eraseFusion(alone);
  return found;
}

/// What does not need whole rows to be known, from what does.
bool FusionSplitter::splitByDependence(FusionOp op,
                                       const FusionLayouts &layouts) {
  SmallVector<unsigned> free;
  for (auto [i, value] : llvm::enumerate(getTerminator(op)->getOperands()))
    if (llvm::none_of(getSlice(value), [&](Operation *inner) {
          return isHeld(inner, layouts) &&
                 isOfRows(*layouts.lookup(inner->getResult(0)));
        }))
      free.push_back(i);
  if (free.empty() || free.size() == op.getNumResults())
    return false;
  splitResults(op, free);
  return true;
}

/// What is measured of whole rows, from what waits for it and reads them again.
bool FusionSplitter::splitAtReductions(FusionOp op,
                                       const FusionLayouts &layouts) {
  // With what is made of it for each row, as far as elements need it.
  KnownValues known;
  for (Operation &inner : op.getBody().front())
    for (Value value : inner.getResults())
      if (isMeasured(value, layouts) &&
          llvm::any_of(value.getUsers(), [&](Operation *user) {
            return !user->hasTrait<OpTrait::IsTerminator>() &&
                   (isReduction(user) ||
                    llvm::none_of(user->getResults(), [&](Value made) {
                      return isMeasured(made, layouts);
                    }));
          }))
        known.insert({value, Value()});
  if (known.empty())
    return false;
  // What is a result and made of rows alone is made with them. Factors that are
  // taken from codes in another order are not, though there is one for each
  // row: codes are of elements, which wait for what is known first.
  auto isOfElements = [&](Operation *inner) {
    bool needsRows = false;
    walkOperands(inner, [&](Value operand) {
      needsRows |= isMeasured(operand, layouts);
    });
    return needsRows && llvm::none_of(inner->getResults(), [&](Value made) {
             return isMeasured(made, layouts);
           });
  };
  SmallVector<unsigned> late;
  for (auto [i, value] : llvm::enumerate(getTerminator(op)->getOperands()))
    if (isMeasured(value, layouts) &&
        llvm::none_of(getSlice(value, known), [&](Operation *inner) {
          return isReduction(inner) || isOfElements(inner);
        }))
      known.insert({value, Value()});
    else
      late.push_back(i);
  FusionOp first = extractFusion(
      op, llvm::to_vector(llvm::make_first_range(known.getArrayRef())));
  for (auto [entry, result] : llvm::zip_equal(known, first.getResults()))
    entry.second = result;
  for (auto [result, value] :
       llvm::zip_equal(op.getResults(), getTerminator(op)->getOperands()))
    if (Value made = known.lookup(value))
      result.replaceAllUsesWith(made);
  SmallVector<FusionOp> parts{first};
  if (!late.empty())
    parts.push_back(extractResults(op, late, known));
  op.erase();
  llvm::for_each(parts, [&](FusionOp part) { split(part); });
  return true;
}

/// The first result, and those that have more in common with it than all have:
/// a tensor's codes in both orders and its factors, but not another tensor's.
static SmallVector<unsigned> getFirstTensor(FusionOp op) {
  auto results = llvm::to_vector(getTerminator(op)->getOperands());
  SmallVector<llvm::SmallDenseSet<Value>> made(results.size());
  llvm::SmallDenseSet<Value> common;
  for (auto [i, result] : llvm::enumerate(results)) {
    SmallVector<Value> open{result};
    while (!open.empty()) {
      Value value = open.pop_back_val();
      Operation *inner = value.getDefiningOp();
      if (inner && made[i].insert(value).second)
        walkOperands(inner, [&](Value operand) { open.push_back(operand); });
    }
    if (i == 0)
      common = made[0];
    for (Value value : llvm::to_vector(common))
      if (!made[i].contains(value))
        common.erase(value);
  }
  SmallVector<unsigned> first{0};
  llvm::SmallDenseSet<Value> reached = made[0];
  for (size_t done = 0; done != first.size();) {
    done = first.size();
    for (unsigned i = 0; i < results.size(); ++i)
      if (!llvm::is_contained(first, i) &&
          llvm::any_of(made[i], [&](Value value) {
            return isa<RankedTensorType, ScaledType>(value.getType()) &&
                   !isa<tensor::EmptyOp, linalg::FillOp>(
                       value.getDefiningOp()) &&
                   reached.contains(value) && !common.contains(value);
          })) {
        first.push_back(i);
        reached.insert_range(made[i]);
      }
  }
  return first;
}

/// The results of `op` that are not `first`.
static SmallVector<unsigned> getOthers(FusionOp op, ArrayRef<unsigned> first) {
  SmallVector<unsigned> others;
  for (unsigned i = 0; i < op.getNumResults(); ++i)
    if (!llvm::is_contained(first, i))
      others.push_back(i);
  return others;
}

void FusionSplitter::splitResults(FusionOp op, ArrayRef<unsigned> first) {
  SmallVector<unsigned> others = getOthers(op, first);
  FusionOp firstPart = extractResults(op, first);
  KnownValues known;
  for (auto [number, result] : llvm::zip_equal(first, firstPart.getResults()))
    known.insert({getTerminator(op)->getOperand(number), result});
  if (getReadBits(op, others, known) > getReadBits(op, others))
    known.clear();
  FusionOp secondPart = extractResults(op, others, known);
  op.erase();
  split(firstPart);
  // What is left of them may have nothing in common: what is measured of each
  // of two tensors that were read together and are known now.
  SmallVector<unsigned> tensor = getFirstTensor(secondPart);
  SmallVector<unsigned> rest = getOthers(secondPart, tensor);
  auto all = llvm::to_vector(llvm::seq(secondPart.getNumResults()));
  if (!known.empty() && !rest.empty() &&
      getReadBits(secondPart, tensor) + getReadBits(secondPart, rest) ==
          getReadBits(secondPart, all))
    splitResults(secondPart, tensor);
  else
    split(secondPart);
}

/// Results that have a kernel, from each that has none; or, where they have
/// none together, those of one tensor from the others'.
bool FusionSplitter::splitUnsupported(FusionOp op) {
  SmallVector<unsigned> supported;
  for (auto [i, value] : llvm::enumerate(getTerminator(op)->getOperands()))
    if (hasKernel(op, value))
      supported.push_back(i);
  if (supported.empty() || op.getNumResults() == 1)
    return false;
  if (supported.size() == op.getNumResults()) {
    supported = getFirstTensor(op);
    if (supported.size() == op.getNumResults())
      supported.truncate(1);
  }
  splitResults(op, supported);
  return true;
}

bool FusionSplitter::split(FusionOp op) {
  std::string unused;
  if (op->hasAttr(kConfigAttrName) || hasKernel(op, unused))
    return false;
  FusionLayouts layouts(FusionLayouts::findDomain(op.getBody().front()));
  bool isKnown = llvm::all_of(
      op.getBody().front().without_terminator(),
      [&](Operation &inner) { return succeeded(layouts.add(&inner, unused)); });
  return (isKnown &&
          (splitReductions(op, layouts) || splitByDependence(op, layouts) ||
           splitAtReductions(op, layouts))) ||
         splitUnsupported(op);
}

void SplitFusionsPass::runOnOperation() {
  SmallVector<FusionOp> ops;
  getOperation().walk([&](FusionOp op) { ops.push_back(op); });
  if (ops.empty())
    return markAllAnalysesPreserved();
  FailureOr<KernelTarget> kernelTarget = lookupTarget(getOperation());
  if (failed(kernelTarget))
    return signalPassFailure();
  FusionSplitter splitter(*kernelTarget);
  for (FusionOp op : ops) {
    Location loc = op.getLoc();
    std::string reason;
    splitter.hasKernel(op, reason);
    if (!splitter.split(op))
      continue;
    emitRemark(loc) << "several kernels: " << reason;
    ++numSplit;
  }
}

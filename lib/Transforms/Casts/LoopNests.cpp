//===- LoopNests.cpp - Loops that go together -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoopNests.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-flatten-rows"

using namespace mlir;
using namespace mlir::fp8;

int64_t LoopNest::Access::getPair(int64_t dim) const {
  int64_t first = loops[dim];
  return first >= 0 && loops[dim + 1] == first + 1 ? first : -1;
}

//===----------------------------------------------------------------------===//
// Loops of operations
//===----------------------------------------------------------------------===//

static bool isTensor(Value value) {
  return isa<RankedTensorType>(value.getType());
}

static SmallVector<int64_t> getIdentity(Value value) {
  return llvm::to_vector(
      llvm::seq<int64_t>(0, cast<RankedTensorType>(value.getType()).getRank()));
}

/// Whether `value` is memory for a result, or what a reduction starts from:
/// what has the same belongs together no more than that.
static bool isDestination(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    value = fill.output();
  return value.getDefiningOp<tensor::EmptyOp>() != nullptr;
}

/// Whether `op` is known to compute the same on fewer dimensions.
static bool isSupported(linalg::LinalgOp op) {
  if (isa<linalg::FillOp>(op.getOperation()) || !op.hasPureTensorSemantics())
    return false;
  if (isa<linalg::GenericOp, linalg::ContractOp>(op.getOperation()))
    return true;
  return !linalg::isaContractionOpInterface(op) &&
         !linalg::isaConvolutionOpInterface(op);
}

static std::optional<LoopNest> getLinalgNest(linalg::LinalgOp op) {
  if (!isSupported(op))
    return std::nullopt;
  LoopNest nest{op, op.getNumLoops()};
  SmallVector<utils::IteratorType> iterators = op.getIteratorTypesArray();
  unsigned numPairs = nest.numLoops > 0 ? nest.numLoops - 1 : 0;
  nest.mergeable.assign(numPairs, true);
  nest.isOverBatches.assign(numPairs, false);
  for (unsigned pair = 0; pair < numPairs; ++pair) {
    if (iterators[pair] == iterators[pair + 1])
      continue;
    nest.mergeable[pair] = false;
    nest.isOverBatches[pair] =
        iterators[pair] == utils::IteratorType::reduction;
  }
  auto forbid = [&](int64_t loop) {
    if (loop > 0)
      nest.mergeable[loop - 1] = false;
    if (loop < numPairs)
      nest.mergeable[loop] = false;
  };
  // All rows are those of one batch.
  bool hasOneBatch = numPairs > 0 && op.getStaticLoopRanges().front() == 1;
  for (AffineMap map : op.getIndexingMapsArray()) {
    SmallVector<int64_t> placeOf(nest.numLoops, -1);
    for (auto [place, expr] : llvm::enumerate(map.getResults())) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      if (dim && placeOf[dim.getPosition()] < 0) {
        placeOf[dim.getPosition()] = place;
        continue;
      }
      // Places are computed, or those of a diagonal.
      for (unsigned loop = 0; loop < nest.numLoops; ++loop)
        if (expr.isFunctionOfDim(loop))
          forbid(loop);
    }
    for (unsigned pair = 0; pair < numPairs; ++pair)
      if (placeOf[pair] < 0
              ? placeOf[pair + 1] >= 0 && !(pair == 0 && hasOneBatch)
              : placeOf[pair + 1] != placeOf[pair] + 1)
        nest.mergeable[pair] = false;
  }
  op->walk([&](linalg::IndexOp index) { forbid(index.getDim()); });

  auto addAccess = [&](Value value, AffineMap map, bool isWritten) {
    LoopNest::Access access{value, {}, isWritten};
    for (AffineExpr expr : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(expr);
      access.loops.push_back(dim ? dim.getPosition() : -1);
    }
    nest.accesses.push_back(access);
  };
  for (OpOperand &operand : op->getOpOperands())
    if (isTensor(operand.get()) &&
        !(op.isDpsInit(&operand) && isDestination(operand.get())))
      addAccess(operand.get(), op.getMatchingIndexingMap(&operand),
                /*isWritten=*/false);
  for (OpOperand &init : op.getDpsInitsMutable())
    addAccess(op.getTiedOpResult(&init), op.getMatchingIndexingMap(&init),
              /*isWritten=*/true);
  nest.isContraction = isContraction(op);
  nest.isFused =
      !nest.isContraction && !isa<linalg::TransposeOp>(op.getOperation());
  return nest;
}

/// The nest of operations whose tensors have the same dimensions, but for
/// extents of those that are cut or put together.
static LoopNest getAlignedNest(Operation *op, ValueRange values,
                               llvm::function_ref<bool(int64_t)> isCut) {
  SmallVector<int64_t> identity = getIdentity(op->getResult(0));
  LoopNest nest{op, static_cast<unsigned>(identity.size())};
  for (Value value : values)
    nest.accesses.push_back({value, identity, /*isWritten=*/false});
  for (Value value : op->getResults())
    nest.accesses.push_back({value, identity, /*isWritten=*/true});
  for (int64_t loop = 0; loop + 1 < static_cast<int64_t>(identity.size());
       ++loop)
    nest.mergeable.push_back(!isCut(loop) && !isCut(loop + 1));
  nest.isOverBatches.assign(nest.mergeable.size(), false);
  return nest;
}

/// Whether `slice` has less than all of `whole` along `dim`, as far as can be
/// seen.
template <typename SliceOp>
static bool isSliced(SliceOp slice, Value whole, int64_t dim) {
  int64_t extent = cast<RankedTensorType>(whole.getType()).getDimSize(dim);
  if (!isConstantIntValue(slice.getMixedOffsets()[dim], 0) ||
      !isConstantIntValue(slice.getMixedStrides()[dim], 1))
    return true;
  OpFoldResult size = slice.getMixedSizes()[dim];
  if (!ShapedType::isDynamic(extent))
    return !isConstantIntValue(size, extent);
  auto value = dyn_cast<Value>(size);
  auto asDim = value ? value.getDefiningOp<tensor::DimOp>() : tensor::DimOp();
  return !asDim || asDim.getSource() != whole ||
         asDim.getConstantIndex() != dim;
}

static SmallVector<ReassociationIndices> getGroups(Operation *op) {
  if (auto collapse = dyn_cast<tensor::CollapseShapeOp>(op))
    return collapse.getReassociationIndices();
  return cast<tensor::ExpandShapeOp>(op).getReassociationIndices();
}

/// What has more dimensions of a reshape's source and result.
static Value getWide(Operation *op) {
  return isa<tensor::CollapseShapeOp>(op) ? op->getOperand(0)
                                          : op->getResult(0);
}

static LoopNest getReshapeNest(Operation *op) {
  Value wide = getWide(op);
  Value narrow =
      wide == op->getOperand(0) ? op->getResult(0) : op->getOperand(0);
  auto wideType = cast<RankedTensorType>(wide.getType());
  SmallVector<int64_t> wideLoops(wideType.getRank(), -1), identity;
  SmallVector<int64_t> places;
  for (auto [loop, group] : llvm::enumerate(getGroups(op))) {
    identity.push_back(loop);
    // The only one that may have several elements.
    SmallVector<int64_t> several;
    llvm::copy_if(group, std::back_inserter(several),
                  [&](int64_t dim) { return wideType.getDimSize(dim) != 1; });
    int64_t place = group.size() == 1     ? group.front()
                    : several.size() == 1 ? several.front()
                                          : -1;
    places.push_back(place);
    if (place >= 0)
      wideLoops[place] = loop;
  }
  LoopNest nest{op, static_cast<unsigned>(identity.size())};
  bool isExpand = narrow == op->getOperand(0);
  nest.accesses.push_back({narrow, identity, /*isWritten=*/!isExpand});
  nest.accesses.push_back({wide, wideLoops, /*isWritten=*/isExpand});
  for (size_t loop = 0; loop + 1 < places.size(); ++loop)
    nest.mergeable.push_back(places[loop] >= 0 &&
                             places[loop + 1] == places[loop] + 1);
  nest.isOverBatches.assign(nest.mergeable.size(), false);
  return nest;
}

std::optional<LoopNest> LoopNest::get(Operation *op) {
  if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op))
    return getLinalgNest(linalgOp);
  if (isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    return getReshapeNest(op);
  // They become transposes, which would be one with those around them.
  if (isa<linalg::PackOp, linalg::UnPackOp>(op) && isTensor(op->getResult(0))) {
    LoopNest nest{op, 0};
    for (auto [value, isWritten] :
         {std::pair{op->getOperand(0), false},
          std::pair<Value, bool>{op->getResult(0), true}})
      nest.accesses.push_back(
          {value, SmallVector<int64_t>(getIdentity(value).size(), -1),
           isWritten});
    nest.isFused = true;
    return nest;
  }
  if (auto slice = dyn_cast<tensor::ExtractSliceOp>(op)) {
    if (slice.getSourceType().getRank() != slice.getType().getRank())
      return std::nullopt;
    return getAlignedNest(op, slice.getSource(), [&](int64_t dim) {
      return isSliced(slice, slice.getSource(), dim);
    });
  }
  if (auto slice = dyn_cast<tensor::InsertSliceOp>(op)) {
    if (slice.getSourceType().getRank() != slice.getType().getRank())
      return std::nullopt;
    SmallVector<Value> values{slice.getSource()};
    if (!isDestination(slice.getDest()))
      values.push_back(slice.getDest());
    return getAlignedNest(op, values, [&](int64_t dim) {
      return isSliced(slice, slice.getDest(), dim);
    });
  }
  if (auto concat = dyn_cast<tensor::ConcatOp>(op))
    return getAlignedNest(op, concat.getInputs(), [&](int64_t dim) {
      return dim == static_cast<int64_t>(concat.getDim());
    });
  if (!OpTrait::hasElementwiseMappableTraits(op) || op->getNumResults() != 1 ||
      !isTensor(op->getResult(0)))
    return std::nullopt;
  auto values = llvm::filter_to_vector(op->getOperands(), isTensor);
  LoopNest nest = getAlignedNest(op, values, [](int64_t) { return false; });
  nest.isFused = true;
  return nest;
}

SmallVector<std::pair<Value, int64_t>> fp8::getReshapedPairs(Operation *op) {
  SmallVector<std::pair<Value, int64_t>> pairs;
  if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp>(op))
    return pairs;
  Value wide = getWide(op);
  auto type = cast<RankedTensorType>(wide.getType());
  for (const ReassociationIndices &group : getGroups(op))
    for (int64_t dim : ArrayRef(group).drop_back())
      // Which a reduction leaves of a row: it is nobody's row.
      if (dim + 2 < type.getRank() || type.getDimSize(dim + 1) != 1)
        pairs.emplace_back(wide, dim);
  return pairs;
}

//===----------------------------------------------------------------------===//
// Which of them become one
//===----------------------------------------------------------------------===//

MergedLoops::MergedLoops(Operation *root) {
  root->walk([&](Operation *op) {
    std::optional<LoopNest> nest = LoopNest::get(op);
    if (!nest)
      return;
    for (const LoopNest::Access &access : nest->accesses) {
      SmallVector<unsigned> &known = nestsOf[access.value];
      if (known.empty() || known.back() != nests.size())
        known.push_back(nests.size());
    }
    nests.push_back(std::move(*nest));
  });
  merged = flood(/*allowed=*/nullptr);
  keep();
  if (kept.empty())
    return;
  llvm::SetVector<Pair> allowed;
  for (Pair pair : merged)
    if (!kept.contains(pair))
      allowed.insert(pair);
    else
      LDBG() << "as it is, like what is around it: "
             << OpWithFlags(nests[pair.first].op,
                            OpPrintingFlags().skipRegions());
  merged = flood(&allowed);
}

llvm::SetVector<MergedLoops::Pair>
MergedLoops::flood(const llvm::SetVector<Pair> *allowed) const {
  llvm::SetVector<Pair> found;
  auto reach = [&](Value value, int64_t dim) {
    auto it = nestsOf.find(value);
    if (it == nestsOf.end())
      return;
    for (unsigned number : it->second)
      for (const LoopNest::Access &access : nests[number].accesses) {
        int64_t pair = access.value == value ? access.getPair(dim) : -1;
        if (pair >= 0 && nests[number].mergeable[pair] &&
            (!allowed || allowed->contains({number, pair})))
          found.insert({number, pair});
      }
  };
  for (auto [number, nest] : llvm::enumerate(nests)) {
    for (auto [value, dim] : getReshapedPairs(nest.op))
      reach(value, dim);
    if (nest.isContraction)
      for (auto [pair, isMergeable] : llvm::enumerate(nest.mergeable))
        if (isMergeable)
          found.insert({number, pair});
  }
  for (size_t i = 0; i < found.size(); ++i) {
    auto [number, pair] = found[i];
    for (const LoopNest::Access &access : nests[number].accesses)
      for (size_t dim = 0; dim + 1 < access.loops.size(); ++dim)
        if (access.getPair(dim) == pair)
          reach(access.value, dim);
  }
  return found;
}

MergedLoops::Wish MergedLoops::getWish(Operation *asker, Value value,
                                       int64_t dim, unsigned number) const {
  const LoopNest &nest = nests[number];
  Wish wish = Wish::None;
  for (const LoopNest::Access &access : nest.accesses) {
    if (access.value != value)
      continue;
    int64_t pair = access.getPair(dim);
    if (pair >= 0 && merged.contains({number, pair})) {
      if (!kept.contains({number, pair}))
        return Wish::Flat;
      wish = Wish::Kept;
      continue;
    }
    if (llvm::is_contained(getReshapedPairs(nest.op), std::pair(value, dim)))
      return Wish::Flat;
    bool isOverBatches = pair >= 0 && nest.isOverBatches[pair];
    bool areTransposes =
        isa<linalg::TransposeOp>(nest.op) && isa<linalg::TransposeOp>(asker);
    if ((nest.isFused && !isOverBatches) || areTransposes)
      wish = Wish::Kept;
  }
  return wish;
}

bool MergedLoops::isKept(Pair pair, bool byUsers) const {
  const LoopNest &nest = nests[pair.first];
  if (nest.isContraction)
    return false;
  bool isKept = false;
  for (const LoopNest::Access &access : nest.accesses) {
    if (access.isWritten != byUsers)
      continue;
    for (size_t dim = 0; dim + 1 < access.loops.size(); ++dim) {
      if (access.getPair(dim) != pair.second)
        continue;
      for (unsigned other : nestsOf.at(access.value)) {
        bool isUser = nests[other].op != access.value.getDefiningOp();
        if (other == pair.first || isUser != byUsers)
          continue;
        Wish wish = getWish(nest.op, access.value, dim, other);
        if (wish == Wish::Flat)
          return false;
        isKept |= wish == Wish::Kept;
      }
    }
  }
  return isKept;
}

bool MergedLoops::hasFlatUser(Pair pair) const {
  const LoopNest &nest = nests[pair.first];
  for (const LoopNest::Access &access : nest.accesses) {
    if (!access.isWritten)
      continue;
    for (size_t dim = 0; dim + 1 < access.loops.size(); ++dim) {
      if (access.getPair(dim) != pair.second)
        continue;
      for (unsigned other : nestsOf.at(access.value))
        for (const LoopNest::Access &read : nests[other].accesses) {
          Pair user{other, read.value == access.value ? read.getPair(dim) : -1};
          if (other != pair.first && !nests[other].isContraction &&
              merged.contains(user) && !kept.contains(user))
            return true;
        }
    }
  }
  return false;
}

void MergedLoops::keep() {
  SmallVector<Pair> pairs = llvm::to_vector(merged);
  llvm::sort(pairs);
  // Flat rows on one side only have no more between them than has to be.
  DenseSet<Pair> flat;
  bool isChanged;
  do {
    kept.clear();
    DenseSet<Pair> byOperands;
    size_t before;
    do {
      before = kept.size();
      for (Pair pair : pairs)
        if (!kept.contains(pair) && !flat.contains(pair) &&
            isKept(pair, /*byUsers=*/false)) {
          kept.insert(pair);
          byOperands.insert(pair);
        }
      for (Pair pair : llvm::reverse(pairs))
        if (!kept.contains(pair) && isKept(pair, /*byUsers=*/true))
          kept.insert(pair);
    } while (kept.size() != before);
    isChanged = false;
    for (Pair pair : llvm::reverse(pairs))
      if (byOperands.contains(pair) && hasFlatUser(pair)) {
        kept.erase(pair);
        flat.insert(pair);
        isChanged = true;
      }
  } while (isChanged);
}

SmallVector<bool> MergedLoops::getMerged(unsigned nest) const {
  SmallVector<bool> pairs(nests[nest].mergeable.size(), false);
  for (size_t pair = 0; pair < pairs.size(); ++pair)
    pairs[pair] = merged.contains({nest, static_cast<int64_t>(pair)});
  return pairs;
}

//===- LowerReduction.cpp - Threads that reduce together ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../LinalgToLoops/ScalarBody.h"
#include "Combiner.h"
#include "StridedBody.h"
#include "StridedKernels.h"
#include "fp8/IR/FP8Dialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// Threads that fill a GPU: fewer have more members to a unit, or parts of it.
static constexpr int64_t kEnoughThreads = 1 << 17;
/// Units beside each other of which memory is read in whole pieces.
static constexpr int64_t kFewUnits = 4;
/// What a member has to do before there are more of them.
static constexpr int64_t kOwnSteps = 4;
/// Steps of a part, so that it is worth being one.
static constexpr int64_t kPartSteps = 8;
/// Parts of a reduction whose length is not known.
static constexpr int64_t kParts = 256;
/// Turns that members take along a row, so that few of them idle at its end.
static constexpr int64_t kRowTurns = 4;
/// Operations of the steps whose loads are under way together.
static constexpr int64_t kMaxOperations = 96;

namespace {
/// What shares the work. A unit is some neighbouring results, or one whose
/// terms are neighbours; its members, threads of a block, take turns along what
/// is reduced.
struct Sharing {
  int64_t members = 1;
  /// Blocks that have some of a unit's terms each; what they found is reduced
  /// after them.
  int64_t parts = 1;
};

class ReductionBuilder : IndexBuilder {
public:
  ReductionBuilder(RewriterBase &b, LaunchBuilder &launches,
                   linalg::LinalgOp op, const StridedLoops &loops,
                   const Combiner &combiner)
      : IndexBuilder(b, op.getLoc()), b(b), launches(launches), op(op),
        loc(op.getLoc()), loops(loops), combiner(combiner),
        numParallel(loops.getNumParallel()), along(chooseLoop()),
        isInner(along >= numParallel), body(b, op, loops, along) {}

  /// False if threads have enough to do by themselves.
  bool build(llvm::function_ref<void(linalg::LinalgOp)> lowerRest);

private:
  unsigned chooseLoop() const;
  std::optional<int64_t> countUnits() const;
  std::optional<int64_t> countSteps() const;
  bool hasInvariantSums();
  bool choose();
  /// Loops from `begin` to `end`, of which a unit's neighbours are innermost.
  SmallVector<unsigned> getOrder(unsigned begin, unsigned end) const;

  using Values = SmallVector<Value>;
  Values getIvs(Value unit, Value step, int64_t lanes);
  using GetPlace = llvm::function_ref<Values(Value step)>;
  Values takeTurns(GetPlace getPlace, Value member, Value first, Value end,
                   ValueRange carried, int64_t lanes, int64_t numSteps);
  Values accumulate(Value unit, Value member, Value first, Value end,
                    int64_t lanes);
  Values reduceUnit(Value unit, Value member, Value part);
  void combine(Values &values, Value thread, Value member, Value shared);
  void store(Value unit, Value part, ArrayRef<Value> values);
  linalg::GenericOp finish();

  RewriterBase &b;
  LaunchBuilder &launches;
  linalg::LinalgOp op;
  Location loc;
  const StridedLoops &loops;
  const Combiner &combiner;
  unsigned numParallel;
  /// The loop of a unit's neighbours, and whether these are terms.
  unsigned along;
  bool isInner;
  StridedBody body;
  int64_t lanes = 1;
  Sharing sharing;
  /// Whether members take turns along each row of single elements, and parts
  /// are of rows: nobody divides for the place of a term then.
  bool isByRows = false;
  /// Steps of a part, as far as is known.
  int64_t ownSteps = 1;
  /// On the host: of results, units, a unit's terms and its lanes' steps.
  OpFoldResult elements;
  Value units, terms, partTerms, steps, partSteps;
  Value workspace;
};
} // namespace

/// The one along which most of what is read lies side by side; of equals a
/// parallel one, whose results no threads have to share.
unsigned ReductionBuilder::chooseLoop() const {
  unsigned best = loops.getLoops().size() - 1;
  int64_t most = 0;
  auto consider = [&](unsigned loop) {
    int64_t bytes = 0;
    for (const StridedOperand &operand : loops.getOperands())
      if (operand.isConsecutive(loop) &&
          operand.operand->getOperandNumber() + 1 < loops.getOperands().size())
        bytes += *getElementBytes(getElementTypeOrSelf(operand.operand->get()));
    if (bytes > most) {
      most = bytes;
      best = loop;
    }
  };
  for (unsigned loop = 0; loop < loops.getLoops().size(); ++loop)
    consider(loop);
  return best;
}

static std::optional<int64_t> countAll(ArrayRef<StridedLoop> loops) {
  int64_t count = 1;
  for (const StridedLoop &loop : loops) {
    std::optional<int64_t> size = getConstantIntValue(loop.size);
    if (!size)
      return std::nullopt;
    count *= *size;
  }
  return count;
}

std::optional<int64_t> ReductionBuilder::countUnits() const {
  std::optional<int64_t> count =
      countAll(loops.getLoops().take_front(numParallel));
  return count && !isInner ? *count / lanes : count;
}

std::optional<int64_t> ReductionBuilder::countSteps() const {
  std::optional<int64_t> count =
      countAll(loops.getLoops().drop_front(numParallel));
  return count && isInner ? *count / lanes : count;
}

/// Whether a row's sum may depend on nothing but the row: not on how many there
/// are beside it. What is added up of all rows depends on these anyway.
bool ReductionBuilder::hasInvariantSums() {
  if (!isInvariant(op) || !combiner.hasOrder())
    return false;
  AffineMap map = op.getMatchingIndexingMap(op.getDpsInputOperand(0));
  if (map.getNumResults() < 2)
    return true;
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  return llvm::none_of(reductions, [&](unsigned dim) {
    return map.getResult(0).isFunctionOfDim(dim);
  });
}

/// Whether units have several members, and how many.
bool ReductionBuilder::choose() {
  // Units of what shows when the program runs have no known ends.
  bool isKnown = isInner || getConstantIntValue(loops.getLoops()[along].size);
  lanes = isKnown ? body.chooseLanes(/*isTail=*/false) : 1;
  std::optional<int64_t> numUnits = countUnits(), numSteps = countSteps();
  if (numUnits == 0 || numSteps == 0)
    return false;
  // What is not known is taken to be much.
  int64_t width =
      hasInvariantSums() ? kEnoughThreads : numUnits.value_or(kEnoughThreads);
  int64_t length = numSteps.value_or(kEnoughThreads);
  int64_t most =
      isInner ? kBlockSize
              : kBlockSize /
                    std::min<int64_t>(kFewUnits, llvm::PowerOf2Ceil(width));
  int64_t few =
      isInner ? std::min<int64_t>(kFewUnits, llvm::PowerOf2Ceil(length)) : 1;
  int64_t &members = sharing.members;
  members = std::clamp<int64_t>(llvm::PowerOf2Ceil(length / kOwnSteps), few,
                                isInner ? kWarpSize : kBlockSize / kWarpSize);
  while (members < most && width * members < kEnoughThreads &&
         2 * members <= length)
    members *= 2;
  auto chooseParts = [&](int64_t members) {
    int64_t threads = width * members;
    if (threads >= kEnoughThreads || length <= 2 * kPartSteps * members)
      return int64_t(1);
    return numSteps ? std::min(length / (kPartSteps * members),
                               static_cast<int64_t>(
                                   llvm::divideCeil(kEnoughThreads, threads)))
                    : kParts;
  };
  // Members that have turns along a row, where there are rows for all parts.
  std::optional<int64_t> row =
      getConstantIntValue(loops.getLoops()[along].size);
  std::optional<int64_t> numTerms =
      countAll(loops.getLoops().drop_front(numParallel));
  if (isInner && row && numTerms && *row >= kRowTurns * kWarpSize &&
      *numTerms > *row) {
    int64_t ofRow = std::min<int64_t>(
        members, llvm::bit_floor<uint64_t>(*row / lanes / kRowTurns));
    isByRows = lanes == 1 && chooseParts(ofRow) <= *numTerms / *row;
    if (isByRows)
      members = ofRow;
  }
  sharing.parts = chooseParts(members);
  ownSteps = length / sharing.parts;
  return members > 1 || sharing.parts > 1;
}

SmallVector<unsigned> ReductionBuilder::getOrder(unsigned begin,
                                                 unsigned end) const {
  SmallVector<unsigned> order;
  for (unsigned loop = begin; loop < end; ++loop)
    if (loop != along)
      order.push_back(loop);
  if (begin <= along && along < end)
    order.push_back(along);
  return order;
}

/// Indices of the first lane in a step of a unit.
SmallVector<Value> ReductionBuilder::getIvs(Value unit, Value step,
                                            int64_t lanes) {
  auto split = [&](Value index, ArrayRef<unsigned> order, Values &ivs) {
    Values sizes;
    for (unsigned loop : order) {
      sizes.push_back(get(loops.getLoops()[loop].size));
      if (loop == along && lanes > 1)
        sizes.back() = divide(sizes.back(), constant(lanes));
    }
    for (auto [loop, iv] :
         llvm::zip_equal(order, delinearize(b, loc, index, sizes)))
      ivs[loop] =
          loop == along && lanes > 1 ? multiply(iv, constant(lanes)) : iv;
  };
  Values ivs(loops.getLoops().size());
  split(unit, getOrder(0, numParallel), ivs);
  if (step)
    split(step, getOrder(numParallel, ivs.size()), ivs);
  return ivs;
}

/// What a member finds in its steps from `first` to `end`, of which several
/// steps' loads are under way together, and in `carried`.
SmallVector<Value> ReductionBuilder::takeTurns(GetPlace getPlace, Value member,
                                               Value first, Value end,
                                               ValueRange carried,
                                               int64_t lanes,
                                               int64_t numSteps) {
  int64_t operations = std::max<int64_t>(
      1, llvm::range_size(op.getBlock()->without_terminator()));
  int64_t together = llvm::bit_floor<uint64_t>(
      std::clamp<int64_t>(kMaxOperations / (operations * lanes), 1, 4));
  while (together > 1 && together * sharing.members > numSteps)
    together /= 2;
  auto steps = [&](Value step, ValueRange carried, int64_t count) {
    SmallVector<Values> ivs;
    SmallVector<StridedBody::Lanes> inputs;
    for (int64_t turn = 0; turn < count; ++turn) {
      ivs.push_back(getPlace(
          turn == 0 ? step : add(step, constant(turn * sharing.members))));
      inputs.push_back(body.loadInputs(ivs.back(), lanes));
    }
    Values values(carried.begin(), carried.end());
    for (auto [place, input] : llvm::zip_equal(ivs, inputs)) {
      StridedBody::Lanes inits;
      for (Value value : values)
        inits.push_back({value});
      values.clear();
      for (ArrayRef<Value> lane : body.compute(place, input, inits, isInner))
        values.push_back(lane.front());
    }
    return values;
  };
  Values start(carried.begin(), carried.end());
  Value from = add(first, member), stride = constant(sharing.members);
  if (together > 1) {
    // The steps of which there is a whole number of turns.
    Value far = constant(together * sharing.members);
    Value whole = add(
        first,
        multiply(divide(arith::SubIOp::create(b, loc, end, first), far), far));
    start = loop(from, whole, far, start, [&](Value step, ValueRange carried) {
      return steps(step, carried, together);
    });
    from = add(whole, member);
  }
  return loop(from, end, stride, start, [&](Value step, ValueRange carried) {
    return steps(step, carried, 1);
  });
}

/// What a member finds in steps from `first` to `end`, or rows, of each of the
/// unit's results.
SmallVector<Value> ReductionBuilder::accumulate(Value unit, Value member,
                                                Value first, Value end,
                                                int64_t lanes) {
  Values start(isInner ? 1 : lanes, combiner.createNeutral(b, loc));
  if (!isByRows)
    return takeTurns([&](Value step) { return getIvs(unit, step, lanes); },
                     member, first, end, start, lanes, ownSteps);
  SmallVector<unsigned> order = getOrder(numParallel, loops.getLoops().size());
  order.pop_back();
  Values sizes;
  for (unsigned number : order)
    sizes.push_back(get(loops.getLoops()[number].size));
  const StridedLoop &row = loops.getLoops()[along];
  return loop(
      first, end, constant(1), start, [&](Value index, ValueRange carried) {
        Values ivs = getIvs(unit, /*step=*/Value(), lanes);
        for (auto [number, iv] :
             llvm::zip_equal(order, delinearize(b, loc, index, sizes)))
          ivs[number] = iv;
        auto getPlace = [&](Value step) {
          ivs[along] = step;
          return ivs;
        };
        return takeTurns(getPlace, member, constant(0), get(row.size), carried,
                         lanes, *getConstantIntValue(row.size));
      });
}

/// What a thread finds of its unit.
SmallVector<Value> ReductionBuilder::reduceUnit(Value unit, Value member,
                                                Value part) {
  auto reduce = [&](int64_t lanes, Value steps, Value partSteps) {
    if (isByRows) {
      steps = divide(terms, get(loops.getLoops()[along].size));
      partSteps =
          arith::CeilDivUIOp::create(b, loc, steps, constant(sharing.parts));
    }
    Value first = constant(0), end = steps;
    if (sharing.parts > 1) {
      first = arith::MinUIOp::create(b, loc, multiply(part, partSteps), steps);
      end = arith::MinUIOp::create(b, loc, add(first, partSteps), steps);
    }
    return accumulate(unit, member, first, end, lanes);
  };
  Value rest =
      lanes > 1 ? body.getMisalignment(lanes, /*isTail=*/!isInner) : Value();
  if (!rest)
    return reduce(lanes, steps, partSteps);
  SmallVector<Type> types(isInner ? 1 : lanes, combiner.getType());
  auto ifOp = scf::IfOp::create(b, loc, types, isZero(rest),
                                /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, reduce(lanes, steps, partSteps));
  // The same results, element by element.
  b.setInsertionPointToStart(ifOp.elseBlock());
  body.setAligned(false);
  scf::YieldOp::create(b, loc,
                       isInner ? reduce(1, terms, partTerms)
                               : reduce(lanes, steps, partSteps));
  body.setAligned(true);
  return llvm::to_vector_of<Value>(ifOp.getResults());
}

/// What the members of each unit found together, in the first of them: by
/// shuffles where these are lanes of a warp, by halves in shared memory else.
void ReductionBuilder::combine(Values &values, Value thread, Value member,
                               Value shared) {
  int64_t members = sharing.members;
  if (!shared) {
    for (int64_t distance = members / 2; distance > 0; distance /= 2)
      for (Value &value : values)
        value = combiner.combine(b, loc, value,
                                 combiner.shuffle(b, loc, value, distance));
    return;
  }
  auto getPlace = [&](size_t value, Value thread) {
    return add(thread, constant(value * kBlockSize));
  };
  for (auto [index, value] : llvm::enumerate(values))
    memref::StoreOp::create(b, loc, value, shared, getPlace(index, thread));
  int64_t apart = isInner ? 1 : kBlockSize / members;
  SmallVector<Type> types(values.size(), combiner.getWideType());
  for (int64_t half = members / 2; half > 0; half /= 2) {
    gpu::BarrierOp::create(b, loc);
    auto ifOp =
        scf::IfOp::create(b, loc, types, isBelow(member, constant(half)),
                          /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.elseBlock());
    scf::YieldOp::create(b, loc, values);
    b.setInsertionPointToStart(ifOp.thenBlock());
    Value other = add(thread, constant(half * apart));
    for (auto [index, value] : llvm::enumerate(values)) {
      Value found =
          memref::LoadOp::create(b, loc, shared, getPlace(index, other));
      value = combiner.combine(b, loc, value, found);
      if (half > 1)
        memref::StoreOp::create(b, loc, value, shared, getPlace(index, thread));
    }
    scf::YieldOp::create(b, loc, values);
    values = llvm::to_vector_of<Value>(ifOp.getResults());
  }
}

void ReductionBuilder::store(Value unit, Value part, ArrayRef<Value> values) {
  int64_t count = values.size();
  if (workspace) {
    Value element = multiply(unit, constant(count));
    for (auto [index, value] : llvm::enumerate(values))
      memref::StoreOp::create(b, loc, value, workspace,
                              {part, add(element, constant(index))});
    return;
  }
  // What is known of alignment is known of what is read.
  body.setAligned(false);
  Values ivs = getIvs(unit, /*step=*/Value(), lanes);
  StridedBody::Lanes results;
  for (auto [init, value] : llvm::zip_equal(body.loadInits(ivs, count), values))
    results.push_back({combiner.narrow(
        b, loc,
        combiner.combine(b, loc, combiner.widen(b, loc, init.front()),
                         value))});
  body.storeInits(ivs, results);
}

/// Reduces what the parts found, which lies in the order of units.
linalg::GenericOp ReductionBuilder::finish() {
  OpOperand *init = op.getDpsInitOperand(0);
  SmallVector<OpFoldResult> ranges;
  for (const Range &range : op.createLoopRanges(b, loc))
    ranges.push_back(range.size);
  SmallVector<unsigned> parallel;
  op.getParallelDims(parallel);
  SmallVector<OpFoldResult> sizes{b.getIndexAttr(sharing.parts)};
  SmallVector<OpFoldResult> strides{elements};
  SmallVector<AffineExpr> dims(ranges.size(), b.getAffineConstantExpr(0));
  SmallVector<utils::IteratorType> kinds{utils::IteratorType::reduction};
  for (unsigned dim : parallel) {
    dims[dim] = b.getAffineDimExpr(sizes.size());
    sizes.push_back(ranges[dim]);
    strides.push_back(b.getIndexAttr(0));
    kinds.push_back(utils::IteratorType::parallel);
  }
  OpFoldResult stride = b.getIndexAttr(1);
  for (unsigned loop : llvm::reverse(getOrder(0, numParallel)))
    for (unsigned dim : llvm::reverse(loops.getLoops()[loop].dims)) {
      strides[cast<AffineDimExpr>(dims[dim]).getPosition()] = stride;
      stride = fp8::multiply(b, loc, stride, ranges[dim]);
    }
  Value view = memref::ReinterpretCastOp::create(
      b, loc, workspace, b.getIndexAttr(0), sizes, strides);
  AffineMap written = op.getMatchingIndexingMap(init).replaceDimsAndSymbols(
      dims, {}, sizes.size(), 0);
  auto rest = linalg::GenericOp::create(
      b, loc, ValueRange{view}, ValueRange{init->get()},
      ArrayRef{b.getMultiDimIdentityMap(sizes.size()), written}, kinds,
      [&](OpBuilder &nested, Location loc, ValueRange values) {
        Value sum = combiner.combine(
            nested, loc, combiner.widen(nested, loc, values[1]), values[0]);
        linalg::YieldOp::create(nested, loc, combiner.narrow(nested, loc, sum));
      });
  if (Attribute filled = op->getAttr(kFilledName))
    rest->setAttr(kFilledName, filled);
  return rest;
}

bool ReductionBuilder::build(
    llvm::function_ref<void(linalg::LinalgOp)> lowerRest) {
  if (!choose())
    return false;
  auto countLoops = [&](ArrayRef<StridedLoop> some) {
    OpFoldResult count = b.getIndexAttr(1);
    for (const StridedLoop &loop : some)
      count = fp8::multiply(b, loc, count, loop.size);
    return count;
  };
  elements = countLoops(loops.getLoops().take_front(numParallel));
  terms = get(countLoops(loops.getLoops().drop_front(numParallel)));
  units = get(elements);
  if (!isInner)
    units = divide(units, constant(lanes));
  steps = isInner ? divide(terms, constant(lanes)) : terms;
  auto divideUp = [&](Value value, int64_t by) -> Value {
    return arith::CeilDivUIOp::create(b, loc, value, constant(by));
  };
  partTerms = divideUp(terms, sharing.parts);
  partSteps = divideUp(steps, sharing.parts);
  if (sharing.parts > 1) {
    workspace = memref::AllocOp::create(
        b, loc, ArrayRef<OpFoldResult>{b.getIndexAttr(sharing.parts), elements},
        combiner.getWideType());
  }
  int64_t together = kBlockSize / sharing.members;
  Value blocks = multiply(divideUp(units, together), constant(sharing.parts));
  int64_t numValues = isInner ? 1 : lanes;
  SmallVector<MemRefType> shared;
  if (!isInner || sharing.members > kWarpSize)
    shared.push_back(MemRefType::get(
        {numValues * kBlockSize}, combiner.getWideType(), AffineMap(),
        gpu::AddressSpaceAttr::get(b.getContext(),
                                   gpu::AddressSpace::Workgroup)));
  LaunchBuilder::Place place =
      launches.open(loc, op->getName().stripDialect(), blocks, shared);
  Value parts = constant(sharing.parts);
  Value part = arith::RemUIOp::create(b, loc, place.block, parts);
  Value tile = divide(place.block, parts);
  Value width = constant(isInner ? sharing.members : together);
  Value fast = arith::RemUIOp::create(b, loc, place.thread, width);
  Value slow = divide(place.thread, width);
  Value member = isInner ? fast : slow;
  Value unit = add(multiply(tile, constant(together)), isInner ? slow : fast);
  Value isInside = isBelow(unit, units);
  SmallVector<Type> types(numValues, combiner.getType());
  auto ifOp = scf::IfOp::create(b, loc, types, isInside,
                                /*withElseRegion=*/true);
  b.setInsertionPointToStart(ifOp.thenBlock());
  scf::YieldOp::create(b, loc, reduceUnit(unit, member, part));
  b.setInsertionPointToStart(ifOp.elseBlock());
  scf::YieldOp::create(b, loc,
                       Values(numValues, combiner.createNeutral(b, loc)));
  b.setInsertionPointAfter(ifOp);
  Values values;
  for (Value result : ifOp.getResults())
    values.push_back(combiner.widen(b, loc, result));
  combine(values, place.thread, member,
          shared.empty() ? Value() : place.shared.front());
  branch(arith::AndIOp::create(b, loc, isInside, isZero(member)),
         [&] { store(unit, part, values); });

  if (!workspace)
    return true;
  b.setInsertionPoint(op);
  linalg::GenericOp rest = finish();
  memref::DeallocOp::create(b, loc, workspace);
  b.setInsertionPoint(rest);
  lowerRest(rest);
  b.eraseOp(rest);
  return true;
}

bool fp8::lowerReduction(RewriterBase &b, LaunchBuilder &launches,
                         linalg::LinalgOp op, const StridedLoops &loops,
                         const Combiner &combiner,
                         llvm::function_ref<void(linalg::LinalgOp)> lowerRest) {
  if (loops.getNumParallel() == loops.getLoops().size())
    return false;
  return ReductionBuilder(b, launches, op, loops, combiner).build(lowerRest);
}

//===- LowerElements.cpp - Threads of neighbouring elements ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StridedBody.h"
#include "StridedKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::fp8;

/// What a thread has under way, which hides latency while many others are
/// resident.
static constexpr int64_t kBytesUnderWay = 32;
static constexpr int64_t kMaxUnits = 8;
/// Operations of all units that stand side by side.
static constexpr int64_t kMaxOperations = 256;
/// What a thread writes at once over the ends of rows that are not aligned:
/// elements that it reads for them are as far from those of the next thread.
static constexpr int64_t kFlatBytes = 8;
/// More of them have no indices of 32 bits.
static constexpr int64_t kMaxFlatElements = int64_t(1) << 30;
/// Elements that are wide enough by themselves.
static constexpr int64_t kWideBytes = 4;
/// Blocks that fill a GPU: fewer elements for a thread until there are as many.
static constexpr int64_t kEnoughBlocks = 512;

namespace {
/// A unit is what a thread takes at a time: neighbours along the innermost
/// parallel loop, or along all of them where rows that are not aligned follow
/// each other without a gap ("flat"). Units that a thread takes are a block's
/// threads apart, so that threads beside each other have neighbouring units.
class ElementsBuilder : IndexBuilder {
public:
  ElementsBuilder(RewriterBase &b, LaunchBuilder &launches, linalg::LinalgOp op,
                  const StridedLoops &loops)
      : IndexBuilder(b, op.getLoc()), b(b), launches(launches), op(op),
        loc(op.getLoc()), loops(loops), innermost(loops.getNumParallel() - 1),
        body(b, op, loops, innermost) {}

  void build();

private:
  using Values = SmallVector<Value>;
  /// Whether the last unit may have fewer lanes.
  bool hasTail(int64_t lanes) const {
    if (isFlat)
      return numElements % lanes != 0;
    std::optional<int64_t> size = getConstantIntValue(loops.getLoops()[0].size);
    return innermost == 0 && (!size || *size % lanes != 0);
  }
  int64_t chooseFlatLanes(int64_t lanes);
  /// What lanes write at most.
  int64_t getOwnBytes(int64_t lanes) {
    int64_t widest = 0;
    for (Value init : op.getDpsInits())
      widest = std::max(widest, *getElementBytes(getElementTypeOrSelf(init)));
    return widest * lanes;
  }
  int64_t countUnits(int64_t lanes);
  StridedBody::FlatPlace getFlatPlace(Value unit, int64_t lanes);
  void buildFlatUnits(ArrayRef<Value> units, int64_t lanes);
  SmallVector<Value> getIvs(Value unit, int64_t lanes);
  StridedBody::Lanes reduce(SmallVector<Value> ivs, int64_t lanes);
  void buildUnit(Value unit, int64_t lanes);
  void buildCheckedUnit(Value unit, int64_t lanes);
  void buildUnits(ArrayRef<Value> units, int64_t lanes);
  void buildThread(const LaunchBuilder::Place &place, int64_t lanes,
                   int64_t units);

  RewriterBase &b;
  LaunchBuilder &launches;
  linalg::LinalgOp op;
  Location loc;
  const StridedLoops &loops;
  unsigned innermost;
  StridedBody body;
  SmallVector<Value> extents;
  Value total;
  bool isFlat = false;
  /// How many are written, where that is known.
  int64_t numElements = 0;
};
} // namespace

/// How many neighbours a thread has over the ends of rows, where those of one
/// row are few; 1 where they are not, or something lies between rows.
int64_t ElementsBuilder::chooseFlatLanes(int64_t lanes) {
  if (innermost == 0 || op.getNumReductionLoops() > 0)
    return 1;
  int64_t widest = 1, most = kAccessBytes;
  numElements = 1;
  for (const StridedLoop &loop : loops.getLoops()) {
    std::optional<int64_t> size = getConstantIntValue(loop.size);
    if (!size || *size == 0 || *size > kMaxFlatElements / numElements)
      return 1;
    numElements *= *size;
  }
  for (OpOperand &operand : op->getOpOperands()) {
    if (!op.payloadUsesValueFromOperand(&operand) && !op.isDpsInit(&operand))
      continue;
    if (body.isLoadedFlat(&operand))
      widest = std::max(widest,
                        *getElementBytes(getElementTypeOrSelf(operand.get())));
    else if (op.isDpsInit(&operand))
      return 1;
    else if (isa<MemRefType>(operand.get().getType()))
      most = kFlatBytes;
  }
  if (!op.getBlock()->getOps<memref::LoadOp>().empty())
    most = kFlatBytes;
  int64_t operations = std::max<int64_t>(
      1, llvm::range_size(op.getBlock()->without_terminator()));
  most = std::min<int64_t>(
      most / widest, llvm::bit_floor<uint64_t>(
                         std::max<int64_t>(kMaxOperations / operations, 1)));
  // In two rows at most.
  most = std::min<int64_t>(most, llvm::bit_floor<uint64_t>(*getConstantIntValue(
                                     loops.getLoops()[innermost].size)));
  return lanes * widest >= kWideBytes || most <= lanes ? 1 : most;
}

/// Enough for what a thread is to have under way, but no more than leaves the
/// GPU its blocks.
int64_t ElementsBuilder::countUnits(int64_t lanes) {
  if (op.getNumReductionLoops() > 0)
    return 1;
  int64_t bytes = 0;
  for (const StridedOperand &operand : loops.getOperands())
    if (operand.isStrided && !operand.isSame(innermost) &&
        op.payloadUsesValueFromOperand(operand.operand))
      bytes += lanes *
               *getElementBytes(getElementTypeOrSelf(operand.operand->get()));
  int64_t operations = std::max<int64_t>(
      1, llvm::range_size(op.getBlock()->without_terminator()));
  int64_t units = std::clamp<int64_t>(
      kBytesUnderWay / std::max<int64_t>(bytes, 1), 1, kMaxUnits);
  units = std::clamp<int64_t>(kMaxOperations / (operations * lanes), 1, units);
  int64_t elements = 1;
  for (const StridedLoop &loop : loops.getLoops()) {
    std::optional<int64_t> size = getConstantIntValue(loop.size);
    if (!size)
      return units;
    elements *= *size;
  }
  while (units > 1 && elements < units * lanes * kBlockSize * kEnoughBlocks)
    units /= 2;
  return units;
}

/// Where a unit's lanes are: in its row or the next one, in 32 bits, as the
/// compiler does not know how few there are.
StridedBody::FlatPlace ElementsBuilder::getFlatPlace(Value unit,
                                                     int64_t lanes) {
  auto number = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value));
  };
  auto widen = [&](Value value) -> Value {
    return arith::IndexCastUIOp::create(b, loc, b.getIndexType(), value);
  };
  Values ivs, sizes;
  for (Value iv : delinearize(b, loc, multiply(unit, constant(lanes)), extents))
    ivs.push_back(arith::IndexCastOp::create(b, loc, b.getI32Type(), iv));
  for (const StridedLoop &loop : loops.getLoops())
    sizes.push_back(number(*getConstantIntValue(loop.size)));
  StridedBody::FlatPlace place;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value index = arith::AddIOp::create(b, loc, ivs.back(), number(lane));
    place.isNext.push_back(arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::uge, index, sizes.back()));
    Value behind = arith::SubIOp::create(b, loc, index, sizes.back());
    place.indices.push_back(widen(
        arith::SelectOp::create(b, loc, place.isNext.back(), behind, index)));
  }
  // The row behind the last one has no lanes, and its place is the last one's.
  place.rows[0].resize(ivs.size());
  place.rows[1].resize(ivs.size());
  Value isNext;
  for (unsigned loop = innermost; loop-- > 0;) {
    Value next = arith::AddIOp::create(b, loc, ivs[loop], number(1));
    if (isNext)
      next = arith::SelectOp::create(b, loc, isNext, next, ivs[loop]);
    if (loop == 0) {
      Value last = number(*getConstantIntValue(loops.getLoops()[0].size) - 1);
      next = arith::MinUIOp::create(b, loc, next, last);
    } else {
      isNext = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, next,
                                     sizes[loop]);
      next = arith::SelectOp::create(b, loc, isNext, number(0), next);
    }
    place.rows[0][loop] = widen(ivs[loop]);
    place.rows[1][loop] = widen(next);
  }
  return place;
}

SmallVector<Value> ElementsBuilder::getIvs(Value unit, int64_t lanes) {
  SmallVector<Value> sizes(extents);
  if (innermost > 0 && lanes > 1)
    sizes.back() = divide(sizes.back(), constant(lanes));
  SmallVector<Value> ivs = delinearize(b, loc, unit, sizes);
  if (lanes > 1)
    ivs.back() = multiply(ivs.back(), constant(lanes));
  ivs.resize(loops.getLoops().size());
  return ivs;
}

/// The loops that are no threads, in their order, around the lanes of a unit.
StridedBody::Lanes ElementsBuilder::reduce(SmallVector<Value> ivs,
                                           int64_t lanes) {
  StridedBody::Lanes inits = body.loadInits(ivs, lanes);
  size_t count = op.getNumDpsInits();
  SmallVector<Value> flat;
  for (ArrayRef<Value> values : inits)
    llvm::append_range(flat, values);
  auto split = [&](ValueRange values) {
    StridedBody::Lanes result;
    for (int64_t lane = 0; lane < lanes; ++lane)
      result.push_back(
          llvm::to_vector_of<Value>(values.slice(lane * count, count)));
    return result;
  };
  std::function<SmallVector<Value>(unsigned, ValueRange)> nest =
      [&](unsigned number, ValueRange carried) {
        SmallVector<Value> result;
        if (number == loops.getLoops().size()) {
          for (ArrayRef<Value> values :
               body.compute(ivs, body.loadInputs(ivs, lanes), split(carried)))
            llvm::append_range(result, values);
          return result;
        }
        return loop(constant(0), get(loops.getLoops()[number].size),
                    constant(1), carried, [&](Value iv, ValueRange inner) {
                      ivs[number] = iv;
                      return nest(number + 1, inner);
                    });
      };
  return split(nest(innermost + 1, flat));
}

void ElementsBuilder::buildUnit(Value unit, int64_t lanes) {
  if (op.getNumReductionLoops() == 0)
    return buildUnits({unit}, lanes);
  SmallVector<Value> ivs = getIvs(unit, lanes);
  body.storeInits(ivs, reduce(ivs, lanes));
}

/// All loads before the first is waited for, those of the body before the first
/// store.
void ElementsBuilder::buildUnits(ArrayRef<Value> units, int64_t lanes) {
  if (isFlat && lanes > 1)
    return buildFlatUnits(units, lanes);
  SmallVector<Values> ivs;
  SmallVector<StridedBody::Lanes> inputs, inits, results;
  for (Value unit : units) {
    ivs.push_back(getIvs(unit, lanes));
    inputs.push_back(body.loadInputs(ivs.back(), lanes));
    inits.push_back(body.loadInits(ivs.back(), lanes));
  }
  for (auto [place, input, init] : llvm::zip_equal(ivs, inputs, inits))
    results.push_back(body.compute(place, input, init));
  for (auto [place, result] : llvm::zip_equal(ivs, results))
    body.storeInits(place, result);
}

void ElementsBuilder::buildFlatUnits(ArrayRef<Value> units, int64_t lanes) {
  SmallVector<StridedBody::FlatPlace> places;
  SmallVector<StridedBody::Lanes> inputs, inits, results;
  auto load = [&](auto operands) {
    StridedBody::Lanes values(lanes);
    for (OpOperand *operand : operands) {
      Values loaded(lanes);
      if (op.payloadUsesValueFromOperand(operand))
        loaded = body.loadFlat(operand, places.back());
      for (auto [lane, value] : llvm::zip_equal(values, loaded))
        lane.push_back(value);
    }
    return values;
  };
  for (Value unit : units) {
    places.push_back(getFlatPlace(unit, lanes));
    inputs.push_back(load(op.getDpsInputOperands()));
    inits.push_back(load(llvm::make_pointer_range(op.getDpsInitsMutable())));
  }
  for (auto [place, input, init] : llvm::zip_equal(places, inputs, inits))
    results.push_back(body.computeFlat(place, input, init));
  for (auto [place, result] : llvm::zip_equal(places, results)) {
    Values ivs(place.rows[0]);
    ivs.back() = place.indices.front();
    body.storeInits(ivs, result);
  }
}

/// What may not be all there.
void ElementsBuilder::buildCheckedUnit(Value unit, int64_t lanes) {
  Value width = constant(lanes), first = multiply(unit, width);
  Value isWhole = isAtMost(add(first, width), total);
  if (!hasTail(lanes))
    return branch(isWhole, [&] { buildUnit(unit, lanes); });
  branch(
      isWhole, [&] { buildUnit(unit, lanes); },
      [&] {
        loop(first, total, constant(1), {}, [&](Value element, ValueRange) {
          buildUnit(element, 1);
          return SmallVector<Value>();
        });
      });
}

/// What a thread does: so many units, some of them side by side where the block
/// has all of those.
void ElementsBuilder::buildThread(const LaunchBuilder::Place &place,
                                  int64_t lanes, int64_t units) {
  int64_t operations = std::max<int64_t>(
      1, llvm::range_size(op.getBlock()->without_terminator()));
  int64_t together = units;
  while (together > 1 && (together > kMaxUnits || op.getNumReductionLoops() ||
                          together * lanes * operations > kMaxOperations))
    together /= 2;
  Value first = multiply(place.block, constant(units * kBlockSize));
  auto build = [&](Value first) {
    Value own = add(first, place.thread);
    if (together == 1)
      return buildCheckedUnit(own, lanes);
    Value end = add(first, constant(together * kBlockSize));
    branch(
        isAtMost(multiply(end, constant(lanes)), total),
        [&] {
          SmallVector<Value> all;
          for (int64_t unit = 0; unit < together; ++unit)
            all.push_back(add(own, constant(unit * kBlockSize)));
          buildUnits(all, lanes);
        },
        [&] {
          loop(own, end, constant(kBlockSize), {}, [&](Value unit, ValueRange) {
            buildCheckedUnit(unit, lanes);
            return SmallVector<Value>();
          });
        });
  };
  if (units == together)
    return build(first);
  loop(first, add(first, constant(units * kBlockSize)),
       constant(together * kBlockSize), {}, [&](Value turn, ValueRange) {
         build(turn);
         return SmallVector<Value>();
       });
}

void ElementsBuilder::build() {
  int64_t lanes = body.chooseLanes(/*isTail=*/innermost == 0);
  if (int64_t flat = chooseFlatLanes(lanes); flat > 1) {
    isFlat = true;
    body.setFlat(true);
    lanes = flat;
  }
  while (lanes > 1 && body.loadsElements(lanes) &&
         getOwnBytes(lanes) > kFlatBytes)
    lanes /= 2;
  int64_t units = countUnits(lanes);
  total = constant(1);
  for (const StridedLoop &loop : loops.getLoops().take_front(innermost + 1)) {
    extents.push_back(get(loop.size));
    total = multiply(total, extents.back());
  }
  Value blocks = arith::CeilDivUIOp::create(
      b, loc, total, constant(kBlockSize * lanes * units));
  LaunchBuilder::Place place =
      launches.open(loc, op->getName().stripDialect(), blocks);
  Value rest = lanes > 1 ? body.getMisalignment(lanes, isFlat || innermost == 0)
                         : Value();
  if (!rest)
    return buildThread(place, lanes, units);
  branch(
      isZero(rest), [&] { buildThread(place, lanes, units); },
      [&] { buildThread(place, 1, lanes * units); });
}

void fp8::lowerElements(RewriterBase &b, LaunchBuilder &launches,
                        linalg::LinalgOp op, const StridedLoops &loops) {
  ElementsBuilder(b, launches, op, loops).build();
}

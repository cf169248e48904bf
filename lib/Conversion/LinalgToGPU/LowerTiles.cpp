//===- LowerTiles.cpp - Blocks of tiles in shared memory ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StridedBody.h"
#include "StridedKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// One operand's tile has these, so that a multiprocessor holds many blocks.
static constexpr int64_t kTileBytes = 8192;
/// What rows of a tile are read and written by at least.
static constexpr int64_t kRowBytes = 128;
static constexpr int64_t kMaxOperands = 4;
/// What shared memory has in each bank.
static constexpr int64_t kBankBytes = 4;
/// What memory is moved by at least: neighbours within it cost nothing more.
static constexpr int64_t kSectorBytes = 32;
static constexpr int64_t kMaxOperations = 128;

namespace {
/// A tile has `rows` of the loop that is innermost in what is written, by
/// `columns` of the one that is innermost in what is turned. Threads beside
/// each other have columns while they read, and rows while they write.
class TileBuilder : IndexBuilder {
public:
  TileBuilder(RewriterBase &b, LaunchBuilder &launches, linalg::LinalgOp op,
              const StridedLoops &loops)
      : IndexBuilder(b, op.getLoc()), b(b), launches(launches), op(op),
        loc(op.getLoc()), loops(loops), row(loops.getLoops().size() - 1) {}

  bool build();

private:
  using Values = SmallVector<Value>;
  bool isTurned(const StridedOperand &operand, unsigned loop) const;
  bool choose();
  int64_t getTileSize(unsigned loop, int64_t most, int64_t least) const;
  void loadTile(OpOperand *operand, Value shared, Value thread, Values ivs);
  void buildPasses(const LaunchBuilder::Place &place, const Values &ivs);
  Values getPlace(const Values &ivs, Value thread, int64_t pass);
  StridedBody::Lanes loadInputs(const LaunchBuilder::Place &place,
                                const Values &first, const Values &ivs);
  Value isInside(const Values &ivs) {
    return arith::AndIOp::create(b, loc, isBelow(ivs[row], extents[row]),
                                 isBelow(ivs[column], extents[column]));
  }

  RewriterBase &b;
  LaunchBuilder &launches;
  linalg::LinalgOp op;
  Location loc;
  const StridedLoops &loops;
  unsigned row, column = 0;
  SmallVector<OpOperand *> turned;
  int64_t rows = 0, columns = 0;
  Values extents;
  std::optional<StridedBody> body;
};
} // namespace

/// Whether neighbours of an operand are along `loop`, and along the rows far
/// from each other.
bool TileBuilder::isTurned(const StridedOperand &operand, unsigned loop) const {
  if (!operand.isConsecutive(loop))
    return false;
  std::optional<int64_t> apart = operand.getStride(row);
  Type type = getElementTypeOrSelf(operand.operand->get());
  return !apart || *apart * *getElementBytes(type) >= kSectorBytes ||
         (*apart > 1 &&
          loops.getLoops()[loop].size == OpFoldResult(b.getIndexAttr(*apart)));
}

/// No more than there is, nor than a block has threads; half as many, as long
/// as that are `least`, where more of the last tile is there then.
int64_t TileBuilder::getTileSize(unsigned loop, int64_t most,
                                 int64_t least) const {
  most = std::min(most, kBlockSize);
  std::optional<int64_t> size =
      getConstantIntValue(loops.getLoops()[loop].size);
  if (!size)
    return most;
  int64_t best = std::min<int64_t>(most, llvm::PowerOf2Ceil(*size));
  for (int64_t half = best / 2; half >= least; half /= 2)
    if (llvm::alignTo(*size, half) * 10 <= llvm::alignTo(*size, best) * 9)
      best = half;
  return best;
}

bool TileBuilder::choose() {
  int64_t most = 0, bytes = 1;
  for (unsigned loop = 0; loop < row; ++loop) {
    SmallVector<OpOperand *> found;
    int64_t sum = 0, widest = 1;
    for (OpOperand *input : op.getDpsInputOperands()) {
      const StridedOperand &operand = loops.getOperand(input);
      if (!op.payloadUsesValueFromOperand(input) || !isTurned(operand, loop) ||
          found.size() == kMaxOperands)
        continue;
      int64_t own = *getElementBytes(getElementTypeOrSelf(input->get()));
      found.push_back(input);
      sum += own;
      widest = std::max(widest, own);
    }
    if (sum <= most)
      continue;
    most = sum;
    bytes = widest;
    column = loop;
    turned = found;
  }
  if (turned.empty())
    return false;
  int64_t elements = kTileBytes / bytes;
  int64_t least = 2 * kSectorBytes / bytes;
  columns = getTileSize(column, std::clamp<int64_t>(kRowBytes / bytes, 32, 64),
                        least);
  rows = getTileSize(row, elements / columns, least);
  columns = getTileSize(column, elements / rows, least);
  // What is smaller than a block's threads is no tile.
  return rows * columns >= kBlockSize && rows > 1 && columns > 1;
}

/// Reads rows' neighbours along the columns, all before the first is waited
/// for.
void TileBuilder::loadTile(OpOperand *operand, Value shared, Value thread,
                           Values ivs) {
  StridedBody reading(b, op, loops, column);
  IntegerType word = getWord(getElementTypeOrSelf(operand->get()));
  int64_t down = std::max<int64_t>(kBlockSize / columns, 1);
  Value ownRow = divide(thread, constant(columns));
  Value ownColumn = arith::RemUIOp::create(b, loc, thread, constant(columns));
  Value firstRow = ivs[row];
  ivs[column] = add(ivs[column], ownColumn);
  Values words, places;
  for (int64_t begin = 0; begin < rows; begin += down) {
    places.push_back(add(ownRow, constant(begin)));
    ivs[row] = add(firstRow, places.back());
    auto ifOp = scf::IfOp::create(b, loc, TypeRange{word}, isInside(ivs),
                                  /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(ifOp.thenBlock());
    Value value = reading.load(operand, ivs, /*lanes=*/1).front();
    scf::YieldOp::create(b, loc, toWord(b, loc, value));
    b.setInsertionPointToStart(ifOp.elseBlock());
    Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(word));
    scf::YieldOp::create(b, loc, zero);
    words.push_back(ifOp.getResult(0));
  }
  for (auto [value, place] : llvm::zip_equal(words, places))
    memref::StoreOp::create(b, loc, value, shared,
                            ValueRange{place, ownColumn});
}

/// The loops' indices of what a thread writes in a pass.
SmallVector<Value> TileBuilder::getPlace(const Values &ivs, Value thread,
                                         int64_t pass) {
  int64_t down = std::max<int64_t>(kBlockSize / rows, 1);
  Value across = constant(rows);
  Values place(ivs);
  place[row] = add(ivs[row], arith::RemUIOp::create(b, loc, thread, across));
  place[column] =
      add(ivs[column], add(divide(thread, across), constant(pass * down)));
  return place;
}

StridedBody::Lanes TileBuilder::loadInputs(const LaunchBuilder::Place &place,
                                           const Values &first,
                                           const Values &ivs) {
  Value ownRow = arith::SubIOp::create(b, loc, ivs[row], first[row]);
  Value ownColumn = arith::SubIOp::create(b, loc, ivs[column], first[column]);
  StridedBody::Found found;
  for (auto [operand, shared] : llvm::zip_equal(turned, place.shared)) {
    Value word =
        memref::LoadOp::create(b, loc, shared, ValueRange{ownRow, ownColumn});
    found[operand] = {
        fromWord(b, loc, word, getElementTypeOrSelf(operand->get()))};
  }
  return body->loadInputs(ivs, /*lanes=*/1, found);
}

/// Writes columns' neighbours along the rows, some passes side by side where
/// the tile is whole.
void TileBuilder::buildPasses(const LaunchBuilder::Place &place,
                              const Values &ivs) {
  int64_t passes = rows * columns / kBlockSize;
  int64_t operations = std::max<int64_t>(
      1, llvm::range_size(op.getBlock()->without_terminator()));
  int64_t together = passes;
  while (together > 1 && together * operations > kMaxOperations)
    together /= 2;
  auto write = [&](int64_t begin, int64_t end) {
    SmallVector<Values> places;
    SmallVector<StridedBody::Lanes> inputs, inits;
    for (int64_t pass = begin; pass < end; ++pass) {
      places.push_back(getPlace(ivs, place.thread, pass));
      inputs.push_back(loadInputs(place, ivs, places.back()));
      inits.push_back(body->loadInits(places.back(), /*lanes=*/1));
    }
    for (auto [own, input, init] : llvm::zip_equal(places, inputs, inits))
      body->storeInits(own, body->compute(own, input, init));
  };
  Value endRow = add(ivs[row], constant(rows));
  Value endColumn = add(ivs[column], constant(columns));
  branch(
      arith::AndIOp::create(b, loc, isAtMost(endRow, extents[row]),
                            isAtMost(endColumn, extents[column])),
      [&] {
        for (int64_t pass = 0; pass < passes; pass += together)
          write(pass, pass + together);
      },
      [&] {
        for (int64_t pass = 0; pass < passes; ++pass)
          branch(isInside(getPlace(ivs, place.thread, pass)),
                 [&] { write(pass, pass + 1); });
      });
}

bool TileBuilder::build() {
  if (op.getNumReductionLoops() > 0 || loops.getLoops().size() < 2 || !choose())
    return false;
  body.emplace(b, op, loops, row);
  for (const StridedLoop &loop : loops.getLoops())
    extents.push_back(get(loop.size));
  SmallVector<MemRefType> shared;
  for (OpOperand *operand : turned) {
    IntegerType word = getWord(getElementTypeOrSelf(operand->get()));
    // Rows start in different banks.
    int64_t pad = std::max<int64_t>(8 * kBankBytes / word.getWidth(), 1);
    auto space = gpu::AddressSpaceAttr::get(b.getContext(),
                                            gpu::AddressSpace::Workgroup);
    shared.push_back(
        MemRefType::get({rows, columns + pad}, word, AffineMap(), space));
  }
  auto countTiles = [&](unsigned loop, int64_t size) -> Value {
    return arith::CeilDivUIOp::create(b, loc, extents[loop], constant(size));
  };
  Values counts;
  Value blocks = constant(1);
  for (unsigned loop = 0; loop < extents.size(); ++loop) {
    counts.push_back(loop == row      ? countTiles(loop, rows)
                     : loop == column ? countTiles(loop, columns)
                                      : extents[loop]);
    blocks = multiply(blocks, counts.back());
  }
  LaunchBuilder::Place place =
      launches.open(loc, op->getName().stripDialect(), blocks, shared);
  Values ivs = delinearize(b, loc, place.block, counts);
  ivs[row] = multiply(ivs[row], constant(rows));
  ivs[column] = multiply(ivs[column], constant(columns));
  for (auto [operand, shared] : llvm::zip_equal(turned, place.shared))
    loadTile(operand, shared, place.thread, ivs);
  gpu::BarrierOp::create(b, loc);
  buildPasses(place, ivs);
  return true;
}

bool fp8::lowerTiles(RewriterBase &b, LaunchBuilder &launches,
                     linalg::LinalgOp op, const StridedLoops &loops) {
  return TileBuilder(b, launches, op, loops).build();
}

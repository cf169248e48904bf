//===- FusionKernel.cpp - Kernels that pass over memory -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// A block has one tile, and as many blocks run beside each other as fit. Loads
// of all are under way at once, which hides their latency better than a loop
// over tiles in fewer blocks (measured on an H200).
//
// A copy in the other order goes through shared memory, as bytes: a thread
// turns squares of 4 by 4 in registers, and stores what it has of a column. A
// warp then reads whole lines of 128 bytes. Column c of the tile begins at
// c * rows. In it, 16-byte pieces are exchanged by (c / 8) % 8, and the halves
// of a piece by (c / 64) % 2, so that neither the writing lanes, which differ
// in c / 8, nor the reading ones meet in a bank.

#include "FusionKernel.h"
#include "FusionCodes.h"
#include "FusionValues.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kWhole = ScaledType::kWhole;
/// Bytes that a thread stores at once, at most.
static constexpr int64_t kPiece = 16;

namespace {
class FusionKernel {
public:
  FusionKernel(KernelBuilder &b, const FusionSpec &spec,
               FusionConfigAttr config, llvm::StringMap<Value> params,
               ArrayRef<FusionArgument> inputs,
               ArrayRef<FusionArgument> outputs, ValueRange captures,
               Value shared)
      : b(b), spec(spec), config(config), outputs(outputs), shared(shared),
        tile(b, spec, config, std::move(params)),
        values(b, spec, config, tile, inputs, captures, shared) {}

  void build(bool overlaps);

private:
  Value getResult(int64_t number) const {
    return spec.getBody().getTerminator()->getOperand(number);
  }
  bool isTransposed(const FusionArgument &output) const {
    return output.block.isFull() && spec.isTransposed(output.layout);
  }
  Value isFirstOf(const FusionBlock &block, int64_t chunk);
  void storeElement(const FusionArgument &output, Value element, Value row,
                    Value column, ArrayRef<Value> conditions);
  int64_t getSharing(const FusionArgument &output) const;
  void keepRow(const FusionArgument &output, Value value, int64_t row,
               int64_t chunk);
  void storeRows(const FusionArgument &output, Value value, int64_t chunk);
  void storeBlock(const FusionArgument &output, Value value);
  void storeSingle(const FusionArgument &output, Value value);
  void storeAmax(const FusionArgument &output, AmaxOp op);
  Value permute(Value low, Value high, int64_t selector);
  Value getShared(Value tileStart, Value column, Value row);
  void turn(Value result, Value tileStart);
  void storeTurned(const FusionArgument &output, Value tileStart);
  Value loadTurned(Value tileStart, Value column, Value row, int64_t width);
  void storePieces(const FusionArgument &output, Value tileStart,
                   int64_t width);
  llvm::DenseSet<Operation *> findWaiting();
  void buildInTurn();

  KernelBuilder &b;
  const FusionSpec &spec;
  FusionConfigAttr config;
  ArrayRef<FusionArgument> outputs;
  Value shared;
  FusionTile tile;
  FusionValues values;
  /// What this lane stores of rows, by the output, the first of these and the
  /// chunk.
  std::map<std::tuple<const FusionArgument *, int64_t, int64_t>, Value>
      keptRows;
  /// Results that buildInTurn has dealt with.
  llvm::DenseSet<Value> stored;
};
} // namespace

int64_t fp8::getFusionSharedBytes(const FusionSpec &spec,
                                  FusionConfigAttr config) {
  int64_t bytes =
      llvm::alignTo(FusionValues::getScratchBytes(spec, config), 128);
  for (unsigned i = 0; i < FusionOp(spec.op).getNumResults(); ++i) {
    const FusionLayout &layout = spec.getResultLayout(i);
    if (spec.isTransposed(layout) && layout.isFull())
      bytes += config.getTileRows() * config.getTileColumns();
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Factors, sums and amaxes
//===----------------------------------------------------------------------===//

/// An element as it is stored, from what it is in registers.
static Value toStored(KernelBuilder &b, Value element, Type type) {
  if (type.getIntOrFloatBitWidth() == 8)
    return arith::TruncIOp::create(b, b.getI8Type(), element);
  if (type.isF32())
    return element;
  return arith::TruncFOp::create(b, type, element);
}

/// Whether this is the first thread of a block, or of what the domain has of
/// it; null for all threads.
Value FusionKernel::isFirstOf(const FusionBlock &block, int64_t chunk) {
  Value isFirst;
  Value zero = b.i32(0);
  auto require = [&](Value condition) {
    isFirst = isFirst ? arith::AndIOp::create(b, isFirst, condition).getResult()
                      : condition;
  };
  if (block.rows == kWhole)
    require(b.equal(tile.getRow(0), zero));
  else if (block.rows > 1)
    // Tiles may share one, which one of them stores.
    require(b.equal(
        b.rem(tile.getTileRows() % block.rows ? tile.getRow(0) : tile.rowInTile,
              block.rows),
        zero));
  if (block.columns == kWhole)
    require(b.equal(tile.getColumn(0), zero));
  else if (block.columns > 1)
    require(b.equal(b.rem(tile.getTileColumns() % block.columns
                              ? tile.getColumn(chunk)
                              : tile.getColumnInTile(chunk),
                          block.columns),
                    zero));
  if (block.batches == kWhole && spec.isBatched)
    require(b.equal(tile.batch, zero));
  return isFirst;
}

/// Stores one element where `conditions` that are not null hold.
void FusionKernel::storeElement(const FusionArgument &output, Value element,
                                Value row, Value column,
                                ArrayRef<Value> conditions) {
  Value all;
  for (Value condition : conditions)
    if (condition)
      all = all ? arith::AndIOp::create(b, all, condition).getResult()
                : condition;
  auto store = [&] {
    b.store(toStored(b, element, output.elementType),
            tile.getAddress(output, row, column));
  };
  if (all)
    b.ifThen(all, store);
  else
    store();
}

/// Lanes of a warp that have a row of a block together.
int64_t FusionKernel::getSharing(const FusionArgument &output) const {
  return std::min(config.getLanes(), output.block.columns / kChunk);
}

/// Lanes that have a block of a row each keep the element of a row of their
/// own, which they store.
void FusionKernel::keepRow(const FusionArgument &output, Value value,
                           int64_t row, int64_t chunk) {
  int64_t sharing = getSharing(output);
  Value &kept = keptRows[{&output, row / sharing, chunk}];
  Value element = values.get(value, row, chunk).front(),
        own = b.bitAnd(tile.lane, sharing - 1);
  kept = kept ? b.select(b.equal(own, row % sharing), element, kept) : element;
}

/// What has an element for each row of some columns.
void FusionKernel::storeRows(const FusionArgument &output, Value value,
                             int64_t chunk) {
  int64_t rows = tile.getRows(), sharing = getSharing(output);
  Value own = b.bitAnd(tile.lane, sharing - 1);
  // A block that ends outside has rows in all lanes.
  Value inside;
  if (!tile.hasWholeColumns())
    inside = b.less(b.sub(tile.getColumn(chunk), b.mul(own, kChunk)),
                    tile.numColumns);
  for (int64_t first = 0; first < rows; first += sharing) {
    int64_t count = std::min(sharing, rows - first);
    if (!keptRows.count({&output, first / sharing, chunk}))
      for (int64_t i = 0; i < count; ++i)
        keepRow(output, value, first + i, chunk);
    Value row = b.add(tile.getRow(first), own);
    storeElement(output, keptRows[{&output, first / sharing, chunk}], row,
                 tile.getColumn(chunk),
                 {count < sharing ? b.less(own, b.i32(count)) : Value(),
                  tile.hasWholeRows() ? Value() : b.less(row, tile.numRows),
                  inside});
  }
}

/// Whether a block is some columns of a row. Blocks of other widths, which are
/// given, do not begin with a lane.
static bool isOfRow(const FusionBlock &block) {
  return block.rows == 1 && block.batches != kWhole && block.columns > kChunk &&
         llvm::isPowerOf2_64(block.columns);
}

/// What has an element for a block: a thread of each block stores it.
void FusionKernel::storeBlock(const FusionArgument &output, Value value) {
  const FusionBlock &block = output.block;
  int64_t chunks = block.columns == kWhole ? 1 : tile.getChunks();
  bool isRows = isOfRow(block);
  bool isVector = FusionTile::storesChunks(output);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    if (isRows) {
      storeRows(output, value, chunk);
      continue;
    }
    Value isFirst = isFirstOf(block, chunk);
    for (int64_t row = 0; row < (block.rows == 1 ? tile.getRows() : 1); ++row) {
      SmallVector<Value> elements = values.get(value, row, chunk);
      if (isVector) {
        tile.storeChunk(
            output, row, chunk,
            llvm::map_to_vector(elements,
                                [&](Value element) {
                                  return Value(arith::BitcastOp::create(
                                      b, b.getI32Type(), element));
                                }),
            isFirst);
        continue;
      }
      for (auto [column, element] : llvm::enumerate(elements))
        storeElement(
            output, element, tile.getRow(row),
            b.add(tile.getColumn(chunk), static_cast<int64_t>(column)),
            {isFirst, block.rows == kWhole ? Value() : tile.isRowInside(row),
             block.columns == kWhole ? Value()
                                     : tile.isColumnInside(chunk, column)});
    }
  }
}

void FusionKernel::storeSingle(const FusionArgument &output, Value value) {
  Value element = values.get(value, 0, 0).front();
  Value isFirst =
      arith::AndIOp::create(b, tile.isFirstBlock, b.equal(tile.thread, 0));
  b.ifThen(isFirst, [&] {
    b.store(toStored(b, element, output.elementType),
            tile.getAddress(output, b.i32(0), b.i32(0)));
  });
}

/// One atomic maximum for each block.
void FusionKernel::storeAmax(const FusionArgument &output, AmaxOp op) {
  Value space = values.allocate(config.getWarps() * 4);
  auto getMax = [&](Value bits) -> Value {
    return NVVM::ReduxOp::create(b, b.getI32Type(), bits, NVVM::ReduxKind::UMAX,
                                 b.i32(-1));
  };
  Value largest = getMax(values.getMeasured(op));
  b.ifThen(b.equal(tile.lane, 0),
           [&] { b.store(largest, b.offset(space, b.mul(tile.warp, 4))); });
  NVVM::BarrierOp::create(b);
  b.ifThen(b.equal(tile.warp, 0), [&] {
    Value own = b.min(tile.lane, b.i32(config.getWarps() - 1));
    Value all = getMax(b.load(b.offset(space, b.mul(own, 4)), b.getI32Type()));
    b.ifThen(b.equal(tile.lane, 0), [&] {
      LLVM::AtomicRMWOp::create(b, LLVM::AtomicBinOp::umax,
                                tile.getAddress(output, b.i32(0), b.i32(0)),
                                all, LLVM::AtomicOrdering::monotonic);
    });
  });
}

//===----------------------------------------------------------------------===//
// The other order
//===----------------------------------------------------------------------===//

Value FusionKernel::permute(Value low, Value high, int64_t selector) {
  return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, b.i32(selector),
                                 NVVM::PermuteMode::DEFAULT);
}

/// Where byte `row` of a column of the tile lies; `row` is a multiple of what
/// is accessed at once.
Value FusionKernel::getShared(Value tileStart, Value column, Value row) {
  int64_t rows = config.getTileRows();
  Value place = b.add(b.mul(column, rows), row);
  Value piece = b.bitAnd(b.shiftRight(column, 3),
                         std::min<int64_t>(7, rows / kPiece - 1));
  place = b.bitXor(place, b.mul(piece, kPiece));
  Value half = b.bitAnd(b.shiftRight(column, 6), 1);
  return b.offset(tileStart, b.bitXor(place, b.mul(half, kPiece / 2)));
}

void FusionKernel::turn(Value result, Value tileStart) {
  int64_t rows = tile.getRows();
  for (int64_t chunk = 0; chunk < tile.getChunks(); ++chunk) {
    SmallVector<SmallVector<Value>> words;
    for (int64_t row = 0; row < rows; ++row)
      words.push_back(values.getWords(result, row, chunk));
    for (int64_t half = 0; half < 2; ++half) {
      // For each of 4 columns, the rows in words.
      SmallVector<Value> columns[4];
      for (int64_t row = 0; row < rows; row += 4) {
        Value a = words[row][half], c = words[row + 1][half],
              d = words[row + 2][half], e = words[row + 3][half];
        Value lowFirst = permute(a, c, 0x5140),
              highFirst = permute(a, c, 0x7362),
              lowLast = permute(d, e, 0x5140), highLast = permute(d, e, 0x7362);
        columns[0].push_back(permute(lowFirst, lowLast, 0x5410));
        columns[1].push_back(permute(lowFirst, lowLast, 0x7632));
        columns[2].push_back(permute(highFirst, highLast, 0x5410));
        columns[3].push_back(permute(highFirst, highLast, 0x7632));
      }
      for (int64_t i = 0; i < 4; ++i) {
        Value column = b.add(tile.getColumnInTile(chunk), 4 * half + i);
        // At most 8 bytes at once: halves of pieces have their own places.
        for (int64_t at = 0; at < rows / 4; at += 2) {
          ArrayRef<Value> part =
              ArrayRef(columns[i]).slice(at, std::min<int64_t>(2, rows / 4));
          Value stored = part[0];
          if (part.size() == 2) {
            stored =
                LLVM::UndefOp::create(b, VectorType::get({2}, b.getI32Type()));
            for (int64_t w = 0; w < 2; ++w)
              stored =
                  LLVM::InsertElementOp::create(b, stored, part[w], b.i32(w));
          }
          b.store(stored,
                  getShared(tileStart, column, b.add(tile.rowInTile, at * 4)));
        }
      }
    }
  }
}

/// `width` bytes of a column at a row that is a multiple of it: all of the same
/// inside or outside.
Value FusionKernel::loadTurned(Value tileStart, Value column, Value row,
                               int64_t width) {
  Value start = getShared(tileStart, column, row);
  if (width == kPiece / 2)
    return b.load(start, VectorType::get({2}, b.getI32Type()));
  if (width < kPiece / 2)
    return b.load(start, b.getIntegerType(width * 8));
  // Where halves are exchanged, the place is that of the second.
  Value half = b.bitAnd(b.shiftRight(column, 6), 1);
  start = b.offset(start, b.sub(b.i32(0), b.mul(half, kPiece / 2)));
  Value words = b.load(start, VectorType::get({4}, b.getI32Type()));
  Value isExchanged = b.equal(half, 1);
  SmallVector<Value> read;
  for (int64_t w = 0; w < 4; ++w)
    read.push_back(LLVM::ExtractElementOp::create(b, words, b.i32(w)));
  Value piece = LLVM::UndefOp::create(b, VectorType::get({4}, b.getI32Type()));
  for (int64_t w = 0; w < 4; ++w)
    piece = LLVM::InsertElementOp::create(
        b, piece, b.select(isExchanged, read[(w + 2) % 4], read[w]), b.i32(w));
  return piece;
}

/// Codes of f4E2M1FN in what loadTurned has loaded, as they share bytes.
static Value packTurned(KernelBuilder &b, Value piece, int64_t width) {
  auto getWord = [&](int64_t w) -> Value {
    return LLVM::ExtractElementOp::create(b, piece, b.i32(w));
  };
  if (width < kPiece / 2) {
    Value word = piece;
    if (width < 4)
      word = arith::ExtUIOp::create(b, b.getI32Type(), piece);
    return arith::TruncIOp::create(b, b.getIntegerType(width * 4),
                                   gatherCodes(b, word, b.i32(0)));
  }
  if (width == kPiece / 2)
    return gatherCodes(b, getWord(0), getWord(1));
  Value words = LLVM::UndefOp::create(b, VectorType::get({2}, b.getI32Type()));
  for (int64_t w = 0; w < 2; ++w)
    words = LLVM::InsertElementOp::create(
        b, words, gatherCodes(b, getWord(2 * w), getWord(2 * w + 1)), b.i32(w));
  return words;
}

/// Neighbouring threads store neighbouring pieces, however wide these are.
void FusionKernel::storePieces(const FusionArgument &output, Value tileStart,
                               int64_t width) {
  int64_t pieces = config.getTileRows() / width;
  int64_t all = pieces * config.getTileColumns();
  for (int64_t i = 0; i < all; i += config.getThreads()) {
    Value number = b.add(tile.thread, i);
    Value column = b.div(number, pieces);
    Value row = b.mul(b.rem(number, pieces), width);
    Value globalColumn = b.add(tile.tileColumn, column);
    Value globalRow = b.add(tile.tileRow, row);
    SmallVector<Value> conditions;
    if (!tile.hasWholeColumns())
      conditions.push_back(b.less(globalColumn, tile.numColumns));
    if (!tile.hasWholeRows())
      conditions.push_back(b.less(globalRow, tile.numRows));
    if (all % config.getThreads() != 0 && i + config.getThreads() > all)
      conditions.push_back(b.less(number, b.i32(all)));
    auto store = [&] {
      Value piece = loadTurned(tileStart, column, row, width);
      b.store(output.packing.isPacked() ? packTurned(b, piece, width) : piece,
              tile.getAddress(output, globalRow, globalColumn));
    };
    if (conditions.empty()) {
      store();
      continue;
    }
    Value inside = conditions.front();
    for (Value condition : ArrayRef(conditions).drop_front())
      inside = arith::AndIOp::create(b, inside, condition);
    b.ifThen(inside, store);
  }
}

/// In pieces that columns in memory start at multiples of.
void FusionKernel::storeTurned(const FusionArgument &output, Value tileStart) {
  if (!ShapedType::isDynamic(spec.rows)) {
    int64_t width = kPiece;
    while (spec.rows % width != 0)
      width /= 2;
    storePieces(output, tileStart, width);
    return;
  }
  b.ifThenElse(
      b.equal(b.rem(tile.numRows, kPiece), 0),
      [&] { storePieces(output, tileStart, kPiece); },
      [&] { storePieces(output, tileStart, 1); });
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// What waits for a reduction of several rows, and such reductions.
llvm::DenseSet<Operation *> FusionKernel::findWaiting() {
  llvm::DenseSet<Operation *> waiting;
  for (Operation &op : spec.getBody().without_terminator())
    if ((isReduction(&op) && !values.isOfLanes(&op)) ||
        llvm::any_of(op.getOperands(), [&](Value operand) {
          return waiting.contains(operand.getDefiningOp());
        }))
      waiting.insert(&op);
  return waiting;
}

/// Rows one after the other, each with the loads of a later one behind it: all
/// that waits for no other row is stored, or held for what does.
void FusionKernel::buildInTurn() {
  llvm::DenseSet<Operation *> waiting = findWaiting();
  SetVector<Value> held;
  for (Operation &op : spec.getBody().without_terminator()) {
    if (!waiting.contains(&op))
      continue;
    for (Value operand : op.getOperands())
      if (Operation *source = operand.getDefiningOp();
          source && !waiting.contains(source) &&
          isa<RankedTensorType>(operand.getType()) &&
          isa<linalg::GenericOp, DequantizeOp>(source) &&
          values.getBlock(operand).isFull())
        held.insert(operand);
  }
  for (int64_t row = 0; row < tile.getRows(); ++row) {
    for (int64_t chunk = 0; chunk < tile.getChunks(); ++chunk) {
      for (auto [i, output] : llvm::enumerate(outputs)) {
        Value result = getResult(static_cast<int64_t>(i));
        Operation *op = result.getDefiningOp();
        auto amax = dyn_cast_or_null<AmaxOp>(op);
        if (amax && output.block.isSingle() &&
            !waiting.contains(amax.getSource().getDefiningOp())) {
          values.measure(amax, row, chunk);
          stored.insert(result);
        } else if (output.block.isFull() && !waiting.contains(op)) {
          SmallVector<Value> words = values.getWords(result, row, chunk);
          if (!isTransposed(output))
            tile.storeChunk(output, row, chunk, words);
          stored.insert(result);
        } else if (isOfRow(output.block) && !waiting.contains(op)) {
          keepRow(output, result, row, chunk);
        }
      }
      for (Value value : held)
        values.getWords(value, row, chunk);
    }
    values.loadRow();
  }
}

void FusionKernel::build(bool overlaps) {
  if (overlaps) {
    NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
    NVVM::GriddepcontrolOp::create(b,
                                   NVVM::GridDepActionKind::launch_dependents);
  }
  if (config.getCluster() > 1)
    NVVM::ClusterArriveRelaxedOp::create(b, /*aligned=*/b.getUnitAttr());
  values.loadInputs();
  if (values.loadsInTurn())
    buildInTurn();

  // All that a row needs, row by row, so that few are in registers at once.
  for (int64_t row = 0; row < tile.getRows(); ++row)
    for (int64_t chunk = 0; chunk < tile.getChunks(); ++chunk)
      for (auto [i, output] : llvm::enumerate(outputs)) {
        Value result = getResult(static_cast<int64_t>(i));
        if (output.block.isSingle()) {
          if (auto amax = result.getDefiningOp<AmaxOp>();
              amax && !stored.contains(result))
            values.measure(amax, row, chunk);
        } else if (output.block.isFull() && !stored.contains(result)) {
          SmallVector<Value> words = values.getWords(result, row, chunk);
          if (!isTransposed(output))
            tile.storeChunk(output, row, chunk, words);
        }
      }
  int64_t bytes = config.getTileRows() * config.getTileColumns();
  int64_t start =
      llvm::alignTo(FusionValues::getScratchBytes(spec, config), 128);
  SmallVector<std::pair<const FusionArgument *, Value>> turned;
  for (auto [i, output] : llvm::enumerate(outputs)) {
    if (!isTransposed(output))
      continue;
    Value tileStart = b.offset(shared, b.i32(start));
    start += bytes;
    turn(getResult(static_cast<int64_t>(i)), tileStart);
    turned.emplace_back(&output, tileStart);
  }
  for (auto [i, output] : llvm::enumerate(outputs)) {
    Value result = getResult(static_cast<int64_t>(i));
    if (!output.block.isFull() && !output.block.isSingle())
      storeBlock(output, result);
    else if (output.block.isSingle() && !result.getDefiningOp<AmaxOp>())
      storeSingle(output, result);
  }
  if (!turned.empty()) {
    NVVM::BarrierOp::create(b);
    for (auto [output, tileStart] : turned)
      storeTurned(*output, tileStart);
  }
  for (auto [i, output] : llvm::enumerate(outputs))
    if (auto amax = getResult(static_cast<int64_t>(i)).getDefiningOp<AmaxOp>();
        amax && output.block.isSingle())
      storeAmax(output, amax);
  LLVM::ReturnOp::create(b, ValueRange());
}

void fp8::buildFusionKernel(KernelBuilder &b, const FusionSpec &spec,
                            FusionConfigAttr config,
                            llvm::StringMap<Value> params,
                            ArrayRef<FusionArgument> inputs,
                            ArrayRef<FusionArgument> outputs,
                            ValueRange captures, Value shared, bool overlaps) {
  FusionKernel(b, spec, config, std::move(params), inputs, outputs, captures,
               shared)
      .build(overlaps);
}

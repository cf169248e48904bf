//===- FusionTile.cpp - Threads and elements of a tile --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionTile.h"
#include "FusionCodes.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

static bool isMultiple(int64_t extent, int64_t factor) {
  return !ShapedType::isDynamic(extent) && extent % factor == 0;
}

FusionTile::FusionTile(KernelBuilder &b, const FusionSpec &spec,
                       FusionConfigAttr config, llvm::StringMap<Value> values)
    : b(b), spec(spec), config(config), params(std::move(values)),
      wholeRows(isMultiple(spec.rows, config.getTileRows())),
      wholeColumns(isMultiple(spec.columns,
                              config.getTileColumns() * config.getCluster())) {
  vector = kChunk;
  while (vector > 1 && !isMultiple(spec.columns, vector))
    vector /= 2;
  numRows = params.lookup("rows");
  numColumns = params.lookup("columns");
  thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  warp = b.shiftRight(thread, 5);
  lane = b.bitAnd(thread, 31);
  laneAcross = b.rem(lane, config.getLanes());
  laneDown = b.div(lane, config.getLanes());
  warpAcross = b.rem(warp, config.getAcross());
  warpDown = b.div(warp, config.getAcross());
  group = b.add(b.mul(warpAcross, config.getLanes()), laneAcross);
  Value rowGroup = b.add(b.mul(warpDown, 32 / config.getLanes()), laneDown);
  rowInTile = b.mul(rowGroup, config.getRows());

  Value tile = NVVM::BlockIdXOp::create(b, b.getI32Type());
  // What was read last is in the cache still.
  if (spec.rereads)
    tile = b.sub(b.sub(NVVM::GridDimXOp::create(b, b.getI32Type()), b.i32(1)),
                 tile);
  isFirstBlock = b.equal(tile, 0);
  Value across = config.getCluster() > 1
                     ? b.i32(config.getCluster())
                     : b.ceilDiv(numColumns, getTileColumns());
  blockAcross = b.rem(tile, across);
  tileColumn = b.mul(blockAcross, getTileColumns());
  Value rest = b.div(tile, across);
  if (spec.isBatched) {
    Value down = b.ceilDiv(numRows, getTileRows());
    tileRow = b.mul(b.rem(rest, down), getTileRows());
    batch = b.div(rest, down);
  } else {
    tileRow = b.mul(rest, getTileRows());
    batch = b.i32(0);
  }
}

Value FusionTile::getRow(int64_t row) {
  return b.add(b.add(tileRow, rowInTile), row);
}

Value FusionTile::getClampedRow(int64_t row) {
  Value index = getRow(row);
  return wholeRows ? index : b.min(index, b.sub(numRows, b.i32(1)));
}

Value FusionTile::getColumnInTile(int64_t chunk) {
  return b.mul(b.add(group, chunk * getGroups()), kChunk);
}

Value FusionTile::getColumn(int64_t chunk) {
  return b.add(tileColumn, getColumnInTile(chunk));
}

//===----------------------------------------------------------------------===//
// What is inside
//===----------------------------------------------------------------------===//

Value FusionTile::isRowInside(int64_t row) {
  return wholeRows ? Value() : b.less(getRow(row), numRows);
}

Value FusionTile::isColumnInside(int64_t chunk, int64_t column) {
  if (wholeColumns)
    return {};
  return b.less(b.add(getColumn(chunk), hasWholeChunks() ? 0 : column),
                numColumns);
}

static Value both(KernelBuilder &b, Value lhs, Value rhs) {
  if (!lhs || !rhs)
    return lhs ? lhs : rhs;
  return arith::AndIOp::create(b, lhs, rhs);
}

Value FusionTile::isInside(int64_t row, int64_t chunk, int64_t column) {
  return both(b, isRowInside(row), isColumnInside(chunk, column));
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

/// The element's index in dimension `dim` of the domain, i64; null for one that
/// counts with the next, rows of all batches being one batch's.
Value FusionTile::getCoordinate(const FusionArgument &argument, int64_t dim,
                                Value row, Value column) {
  auto rank = static_cast<int64_t>(argument.layout.block.size());
  Value index;
  int64_t block = argument.layout.block[dim];
  if (dim == rank - 1)
    index = column;
  else if (dim == rank - 2)
    index = row;
  else if (spec.isBatched)
    index = batch;
  else
    return {};
  return b.widen(block == 1 ? index : b.div(index, block));
}

/// The element in memory that has a column's code.
static Value getElement(KernelBuilder &b, const FusionArgument &argument,
                        Value column) {
  assert(argument.packing.getBytes() == 1 && "expected groups to be elements");
  auto codes = static_cast<uint64_t>(argument.packing.getCodes());
  return codes > 1 ? b.shiftRight(column, llvm::Log2_64(codes)) : column;
}

Value FusionTile::getAddress(const FusionArgument &argument, Value row,
                             Value column) {
  Value index = b.i64(0);
  for (auto [k, dim] : llvm::enumerate(argument.layout.dims)) {
    if (dim < 0)
      continue;
    Value coordinate = getCoordinate(argument, dim, row, column);
    if (!coordinate)
      continue;
    if (k + 1 == argument.layout.dims.size())
      coordinate = getElement(b, argument, coordinate);
    Value stride = params.lookup(argument.name + ".stride" + std::to_string(k));
    index = b.add(index, stride ? b.mul(coordinate, stride) : coordinate);
  }
  return b.element(params.lookup(argument.name), index, argument.elementType);
}

/// The start of a thread's row, in memory.
Value FusionTile::getPointer(const FusionArgument &argument, int64_t row,
                             bool clamped) {
  Value &known = pointers[{argument.name, clamped ? row : row + 64}];
  if (known)
    return known;
  return known = getAddress(
             argument, clamped ? getClampedRow(row) : getRow(row), b.i32(0));
}

Value FusionTile::isOutside(const FusionArgument &argument, int64_t dim,
                            Value place) {
  Value extent = params.lookup(argument.name + "_extent" + std::to_string(dim));
  // A negative one is too large.
  return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, place, extent);
}

Value FusionTile::getGathered(const FusionArgument &argument,
                              ArrayRef<Value> places) {
  Value index = b.i64(0);
  for (auto [k, place] : llvm::enumerate(places))
    index = b.add(index, b.mul(place, params.lookup(argument.name + ".stride" +
                                                    std::to_string(k))));
  return b.element(params.lookup(argument.name), index, argument.elementType);
}

bool FusionTile::hasChunks(const FusionArgument &argument) {
  auto last = static_cast<int64_t>(argument.layout.block.size()) - 1;
  if (argument.block.isFull())
    return true;
  return argument.block.columns == 1 && !argument.layout.dims.empty() &&
         argument.layout.dims.back() == last &&
         argument.elementType.getIntOrFloatBitWidth() > 8;
}

SmallVector<Value> FusionTile::loadChunk(const FusionArgument &argument,
                                         int64_t row, int64_t chunk) {
  return loadChunk(argument, getPointer(argument, row, /*clamped=*/true),
                   chunk);
}

SmallVector<Value> FusionTile::loadChunk(const FusionArgument &argument,
                                         Value pointer, int64_t chunk) {
  if (argument.packing.isPacked())
    return loadPacked(pointer, chunk);
  int64_t bytes = argument.elementType.getIntOrFloatBitWidth() / 8;
  SmallVector<Value> words;
  // At most 16 bytes at once.
  int64_t step = std::min(vector, 16 / bytes);
  Value pending;
  int64_t pendingBits = 0;
  for (int64_t e = 0; e < kChunk; e += step) {
    Value column = b.add(getColumn(chunk), e);
    if (!wholeColumns)
      column = b.min(column, b.sub(numColumns, b.i32(vector)));
    // A vector that is loaded in two has its second half here.
    if (!wholeColumns && step < vector)
      column =
          b.add(b.min(getColumn(chunk), b.sub(numColumns, b.i32(vector))), e);
    Value place = b.element(pointer, b.widen(column), argument.elementType);
    int64_t bits = step * bytes * 8;
    if (bits >= 32) {
      llvm::append_range(words, b.loadStreamed(place, bits / 32));
      continue;
    }
    Value loaded = b.loadConstant(place, b.getIntegerType(bits));
    loaded = arith::ExtUIOp::create(b, b.getI32Type(), loaded);
    pending = pending ? arith::OrIOp::create(b, pending,
                                             arith::ShLIOp::create(
                                                 b, loaded, b.i32(pendingBits)))
                            .getResult()
                      : loaded;
    pendingBits += bits;
    if (pendingBits == 32) {
      words.push_back(std::exchange(pending, {}));
      pendingBits = 0;
    }
  }
  return words;
}

/// The codes of a chunk, which are in a word, as elsewhere four to a word.
SmallVector<Value> FusionTile::loadPacked(Value pointer, int64_t chunk) {
  Value word;
  for (int64_t e = 0; e < kChunk; e += vector) {
    Value column = b.add(getColumn(chunk), e);
    if (!wholeColumns)
      column = b.min(column, b.sub(numColumns, b.i32(vector)));
    Value place =
        b.element(pointer, b.widen(b.shiftRight(column, 1)), b.getI8Type());
    if (vector == kChunk)
      return spreadCodes(b, b.loadStreamed(place, 1).front());
    Value loaded = arith::ExtUIOp::create(
        b, b.getI32Type(), b.loadConstant(place, b.getIntegerType(vector * 4)));
    if (e > 0)
      loaded = arith::OrIOp::create(
          b, word, arith::ShLIOp::create(b, loaded, b.i32(e * 4)));
    word = loaded;
  }
  return spreadCodes(b, word);
}

Value FusionTile::loadElement(const FusionArgument &argument, int64_t row,
                              int64_t chunk, int64_t column) {
  Value rowIndex = getClampedRow(row),
        columnIndex = b.add(getColumn(chunk), column);
  if (!wholeColumns)
    columnIndex = b.min(columnIndex, b.sub(numColumns, b.i32(1)));
  Type stored = argument.elementType;
  if (stored.getIntOrFloatBitWidth() == 8)
    stored = b.getI8Type();
  return b.loadConstant(getAddress(argument, rowIndex, columnIndex), stored);
}

SmallVector<Value> FusionTile::loadWords(const FusionArgument &argument,
                                         int64_t count) {
  SmallVector<Value> words;
  for (int64_t i = 0; i < count; ++i)
    words.push_back(b.loadConstant(
        b.element(params.lookup(argument.name), b.i64(i), argument.elementType),
        argument.elementType));
  return words;
}

void FusionTile::storeChunk(const FusionArgument &argument, int64_t row,
                            int64_t chunk, ArrayRef<Value> words,
                            Value condition) {
  int64_t bytes = argument.elementType.getIntOrFloatBitWidth() / 8;
  Value pointer = getPointer(argument, row, /*clamped=*/false);
  int64_t step = std::min(vector, 16 / bytes);
  int64_t elementBits = bytes * 8;
  Value packed;
  if (argument.packing.isPacked()) {
    packed = gatherCodes(b, words[0], words[1]);
    words = packed;
    step = vector;
    elementBits = argument.packing.bits;
  }
  int64_t bits = step * elementBits;
  for (int64_t e = 0; e < kChunk; e += step) {
    int64_t first = e * elementBits;
    Value stored;
    if (bits > 32) {
      stored = LLVM::UndefOp::create(
          b, VectorType::get({bits / 32}, b.getI32Type()));
      for (int64_t i = 0; i < bits / 32; ++i)
        stored = LLVM::InsertElementOp::create(b, stored, words[first / 32 + i],
                                               b.i32(i));
    } else {
      stored = b.shiftRight(words[first / 32], first % 32);
      if (bits < 32)
        stored = arith::TruncIOp::create(b, b.getIntegerType(bits), stored);
    }
    Value column = getElement(b, argument, b.add(getColumn(chunk), e));
    Value place = b.element(pointer, b.widen(column), argument.elementType);
    auto store = [&] { b.store(stored, place); };
    if (Value stores = both(b, condition, isInside(row, chunk, e)))
      b.ifThen(stores, store);
    else
      store();
  }
}

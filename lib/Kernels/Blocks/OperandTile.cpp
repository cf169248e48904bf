//===- OperandTile.cpp - An operand in shared memory ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OperandTile.h"

using namespace mlir;
using namespace mlir::fp8;

Value fp8::swizzleBytes(KernelBuilder &b, Value linear, int64_t width) {
  int64_t mask = width - 16;
  if (mask == 0)
    return linear;
  return b.bitXor(linear, b.bitAnd(b.shiftRight(linear, 3), mask));
}

OperandTile::OperandTile(const OperandSpec &operand, int64_t extent,
                         int64_t blocks, int64_t part)
    : elementType(operand.elementType), major(operand.major),
      elementBytes(operand.getElementBytes()), sharing(operand.getSharing()),
      bytes(extent * kRowBytes), parts(blocks),
      swizzle(getSwizzle(part ? part : extent)) {
  // An atom has 8 rows of K, or a line of rows; narrower ones would cost more
  // than sharing saves.
  if (extent % (8 * blocks) != 0 || getSwizzle(extent / blocks) != swizzle)
    parts = 1;
  boxRows = isTransposed() ? swizzle / elementBytes : getPartRows();
}

OperandTile OperandTile::getPacked(OperandTile lifted, Lifting lifting,
                                   int64_t blocks) {
  OperandTile packed = lifted;
  fp8rt::CodePacking packing = getLiftedPacking(lifting);
  packed.elementBytes = 1;
  packed.sharing = packing.getCodes();
  packed.rowBytes =
      blocks * packing.getBytesOf(kRowBytes / lifted.elementBytes);
  packed.bytes =
      blocks * packing.getBytesOf(lifted.bytes / lifted.elementBytes);
  packed.swizzle = packed.rowBytes;
  return packed;
}

int64_t OperandTile::getSwizzle(int64_t rows) const {
  int64_t width = kRowBytes;
  if (isTransposed())
    while (width > 16 && rows * elementBytes % width != 0)
      width /= 2;
  return width;
}

SmallVector<int64_t> OperandTile::getBox() const {
  if (isTransposed())
    return {boxRows, getBoxK()};
  return {getBoxK(), boxRows};
}

int64_t OperandTile::getBoxBytes() const { return boxRows * rowBytes; }

/// The bytes of a word at `first` that are before `end`, as a mask.
static Value getMaskBefore(KernelBuilder &b, Value first, Value end) {
  Value count = b.select(b.less(first, end), b.sub(end, first), b.i32(0));
  Value bits = b.widen(b.mul(b.min(count, b.i32(4)), 8));
  Value mask = b.sub(arith::ShLIOp::create(b, b.i64(1), bits), b.i64(1));
  return arith::TruncIOp::create(b, b.getI32Type(), mask);
}

void OperandTile::clearOutside(KernelBuilder &b, Value stage, Value begin,
                               Value end, Value thread, int64_t threads) const {
  auto forEachWord = [&](llvm::function_ref<void(Value)> body) {
    b.loopRolled(thread, b.i32(bytes / 4), b.i32(threads), {},
                 [&](Value index, ValueRange) -> SmallVector<Value> {
                   body(index);
                   return {};
                 });
  };
  // Whether the word at byte `first` has any of it.
  auto isOutside = [&](Value first, Value begin, Value end) -> Value {
    return arith::OrIOp::create(b, b.less(first, begin),
                                b.less(end, b.add(first, 4)));
  };
  if (isTransposed()) {
    // Whole lines, which are swizzled in themselves.
    Value firstLine = b.mul(begin, swizzle), lastLine = b.mul(end, swizzle);
    forEachWord([&](Value index) {
      Value inBox = b.mul(b.rem(index, getBoxBytes() / 4), 4);
      b.ifThen(isOutside(inBox, firstLine, lastLine),
               [&] { b.store(b.i32(0), b.offset(stage, b.mul(index, 4))); });
    });
    return;
  }
  Value beginByte = b.mul(begin, elementBytes);
  Value endByte = b.mul(end, elementBytes);
  forEachWord([&](Value index) {
    Value row = b.div(index, kRowBytes / 4);
    Value word = b.rem(index, kRowBytes / 4), first = b.mul(word, 4);
    b.ifThen(isOutside(first, beginByte, endByte), [&] {
      // Address bits 4.. are exclusive-ored with those of the row.
      Value chunk = b.bitXor(b.shiftRight(word, 2), b.bitAnd(row, 7));
      Value address =
          b.offset(stage, b.add(b.add(b.mul(row, kRowBytes), b.mul(chunk, 16)),
                                b.mul(b.bitAnd(word, 3), 4)));
      // What is before the end and not before the beginning, which lies ahead.
      Value mask = b.bitXor(getMaskBefore(b, first, endByte),
                            getMaskBefore(b, first, beginByte));
      b.store(b.bitAnd(b.load(address, b.getI32Type()), mask), address);
    });
  });
}

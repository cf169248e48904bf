//===- TransposeFragments.cpp - Codes with rows innermost -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma reads operands of 8 bits from shared memory with K innermost only. A
// from registers it takes as words of four K. A line of a stage has one K of
// some rows. Read as 8x8 matrices of 16 bits, transposed, a thread gets two
// rows of two K: two matrices are the words of two rows, after two byte
// permutations. These rows are neighbours, in place of 8 apart, and so are
// those of the sums.
//
// The first matrix of 16 lines has 0 1 4 5 10 11 14 15: lines of 128 bytes are
// swizzled by their number modulo 8, and these eight differ in it. So threads
// of the upper 8 K have the upper half of their four first.
//
//===----------------------------------------------------------------------===//

#include "TransposeFragments.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// K of an instruction, whose words one load brings, and rows of a subtile.
static constexpr int64_t kStep = 32, kSubtileRows = 64;

FragmentTransposer::FragmentTransposer(const MatmulContext &kernel, Value slice)
    : kernel(kernel), b(kernel.b), tile(kernel.layout.rows) {
  // A lane gives the address of a line of one of four matrices: 16 K have two.
  Value line = b.bitAnd(kernel.lane, 7);
  Value matrix = b.shiftRight(kernel.lane, 3);
  Value quad = b.shiftRight(line, 1);
  Value isUpper = b.shiftRight(quad, 1);
  Value pair = b.bitXor(b.bitAnd(matrix, 1), isUpper);
  Value k = b.add(b.add(b.mul(b.shiftRight(matrix, 1), 16), b.mul(quad, 4)),
                  b.add(b.mul(pair, 2), b.bitAnd(line, 1)));
  Value warp = b.shiftRight(b.bitAnd(kernel.thread, 127), 5);
  Value row = b.add(b.mul(slice, kSubtileRows), b.mul(warp, 16));
  // A subtile lies in one box, as boxes have 64 or 128 rows.
  int64_t width = tile.getSwizzle();
  Value inBox =
      width == kSubtileRows ? b.mul(warp, 16) : b.bitAnd(row, width - 1);
  Value box = b.div(row, width);
  Value linear = b.add(b.mul(k, width), inBox);
  place =
      b.add(b.add(b.mul(box, tile.getBoxBytes()), tile.getSwizzled(b, linear)),
            kernel.layout.offsetRows);
  Value isSecond = b.shiftRight(b.bitAnd(kernel.lane, 3), 1);
  Value swaps = b.equal(isSecond, 1);
  evenBytes = b.select(swaps, b.i32(0x2064), b.i32(0x6420));
  oddBytes = b.select(swaps, b.i32(0x3175), b.i32(0x7531));
}

SmallVector<Value> FragmentTransposer::load(Value stage, int64_t subtile) {
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  auto words = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getI32Type()));
  int64_t width = tile.getSwizzle();
  int64_t rows = subtile * kernel.config.getSharers() * kSubtileRows;
  Value first = b.add(place, b.mul(stage, tile.getBytes()));
  // Sharers are 1 or 3 where subtiles cut a box of 128: then it is half of it.
  if (rows % width != 0)
    first = b.bitXor(first, b.i32(rows % width));
  first = b.add(first, rows / width * tile.getBoxBytes());
  SmallVector<Value> all;
  for (int64_t k = 0; k < tile.getBlockK(); k += kStep) {
    Value loaded = NVVM::LdMatrixOp::create(
        b, words, b.offset(kernel.shared, b.add(first, k * width)), /*num=*/4,
        NVVM::MMALayout::col, shape, NVVM::LdStMatrixEltType::B16);
    for (int64_t half : {0, 2}) {
      Value low = LLVM::ExtractValueOp::create(b, loaded, half);
      Value high = LLVM::ExtractValueOp::create(b, loaded, half + 1);
      for (Value selector : {evenBytes, oddBytes})
        all.push_back(NVVM::PermuteOp::create(b, b.getI32Type(), low, high,
                                              selector,
                                              NVVM::PermuteMode::DEFAULT));
    }
  }
  return all;
}

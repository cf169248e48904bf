//===- LiftFragments.cpp - Codes to what wgmma takes as A -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What lifters write to shared memory tensor cores read there again: for each
// E4M3 six bytes pass its port. In registers there are two. The order of K is
// the program's, for sums depend on it: of 16 codes a thread has 2 c, 2 c + 1
// and those 8 behind. Of E4M3 it loads them, 16 bits at a time. Of E2M1 all
// four threads of a row load the same 16 bytes, and select theirs.
//
// Rows are swizzled by as many bytes as they have, so that eight of them lie in
// different banks.
//
//===----------------------------------------------------------------------===//

#include "LiftFragments.h"
#include "../Blocks/Rounding.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

/// Instructions of a K block, and bytes from one row to that 8 further on of
/// the words of factors.
static constexpr int64_t kSteps = FragmentLifter::kWords / 4,
                         kFactorBytes = 8 * 4;

FragmentLifter::FragmentLifter(const MatmulContext &kernel, Value slice)
    : kernel(kernel), b(kernel.b), layout(*kernel.layout.lift), bytes(kernel) {
  Value warp = b.shiftRight(b.bitAnd(kernel.thread, 127), 5);
  Value row = b.add(b.add(b.mul(slice, 64), b.mul(warp, 16)),
                    b.shiftRight(kernel.lane, 2));
  Value quad = b.bitAnd(kernel.lane, 3);
  codes = b.add(
      layout.packed.getSwizzled(b, b.mul(row, layout.packed.getRowBytes())),
      layout.offsetCodes);
  factors = b.add(b.mul(row, 4), layout.offsetExponents);
  if (layout.lifting == Lifting::MXFP8)
    codes = b.add(codes, b.mul(quad, 2));
  else
    // Bytes c and c + 4.
    selector = b.add(b.mul(quad, 0x11), 0x40);
}

FragmentLifter::Rows FragmentLifter::loadFactors(Value place, Value k) {
  Rows words;
  for (int64_t i = 0; i < 2; ++i) {
    Value at = b.offset(kernel.shared, b.add(place, i * kFactorBytes));
    words[i] = b.load(at, b.getI32Type());
    // Where they are few, a word has those of two K blocks.
    if (layout.lifting != Lifting::NVFP4)
      words[i] = arith::ShRUIOp::create(b, words[i],
                                        b.mul(b.bitAnd(k, 1), int64_t(16)));
  }
  return words;
}

FragmentLifter::Rows FragmentLifter::getFactors(const Rows &words,
                                                int64_t index) {
  Rows found;
  for (int64_t i = 0; i < 2; ++i) {
    Value byte =
        b.bitAnd(index ? b.shiftRight(words[i], 8 * index) : words[i], 0xff);
    found[i] = bytes.loadFactor(byte);
  }
  return found;
}

/// The bf16 of two E4M3. In f16 and f32 they are exact.
static Value liftPair(KernelBuilder &b, Value codes, Value factor) {
  auto halves = VectorType::get({2}, b.getF16Type());
  Value pair = NVVM::ConvertF8x2ToF16x2Op::create(
      b, halves,
      LLVM::BitcastOp::create(b, VectorType::get({2}, b.getI8Type()), codes),
      /*relu=*/false, Float8E4M3FNType::get(b.getContext()));
  Value wide[2];
  for (int64_t i = 0; i < 2; ++i)
    wide[i] = arith::ExtFOp::create(
        b, b.getF32Type(),
        LLVM::ExtractElementOp::create(b, pair, b.i32(i)).getResult());
  Value bits = LLVM::BitcastOp::create(
      b, b.getI32Type(), roundPair(b, b.getBF16Type(), wide[0], wide[1]));
  return ByteLifter::multiply(b, bits, factor);
}

SmallVector<Value> FragmentLifter::liftE4M3(Value place, const Rows &words) {
  SmallVector<Value> lifted;
  Rows multipliers;
  int64_t rowBytes = layout.packed.getRowBytes();
  for (int64_t step = 0; step < kSteps; ++step) {
    if (step % 2 == 0)
      multipliers = getFactors(words, step / 2);
    Value at = step ? b.bitXor(place, b.i32(step * 16)) : place;
    // Rows of a lower 8 of K first, then of the upper.
    for (int64_t half = 0; half < 2; ++half)
      for (int64_t i = 0; i < 2; ++i) {
        Value own = b.load(
            b.offset(kernel.shared, b.add(at, half * 8 + i * 8 * rowBytes)),
            b.getIntegerType(16));
        lifted.push_back(liftPair(b, own, multipliers[i]));
      }
  }
  return lifted;
}

SmallVector<Value> FragmentLifter::liftE2M1(Value place, const Rows &words) {
  SmallVector<Value> lifted;
  auto permute = [&](Value low, Value high, Value selector) -> Value {
    return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, selector,
                                   NVVM::PermuteMode::DEFAULT);
  };
  auto four = VectorType::get({4}, b.getI32Type());
  int64_t perFactor = getLiftedGroup(layout.lifting) / 16;
  Rows multipliers;
  for (int64_t half = 0; half < 2; ++half) {
    Value at = half ? b.bitXor(place, b.i32(16)) : place;
    Rows loaded;
    for (int64_t i = 0; i < 2; ++i)
      loaded[i] =
          b.load(b.offset(kernel.shared,
                          b.add(at, i * 8 * layout.packed.getRowBytes())),
                 four);
    for (int64_t i = 0; i < 2; ++i) {
      int64_t step = 2 * half + i;
      if (step % perFactor == 0)
        multipliers = getFactors(words, step / perFactor);
      Rows own;
      for (auto [word, all] : llvm::zip_equal(own, loaded)) {
        Value low = LLVM::ExtractElementOp::create(b, all, b.i32(2 * i));
        Value high = LLVM::ExtractElementOp::create(b, all, b.i32(2 * i + 1));
        word = permute(low, high, selector);
      }
      // The codes of both rows: of each the lower 8 of K first.
      Value both = permute(own[0], own[1], b.i32(0x5410));
      SmallVector<Value> fours = bytes.liftE2M1(both, multipliers);
      for (int64_t index : {0, 2, 1, 3})
        lifted.push_back(fours[index]);
    }
  }
  return lifted;
}

SmallVector<Value> FragmentLifter::lift(Value stage, Value k, int64_t subtile) {
  int64_t rows = subtile * kernel.config.getSharers() * 64;
  Value place = b.add(b.add(b.mul(stage, layout.codeStride), codes),
                      rows * layout.packed.getRowBytes());
  Value ofFactors =
      b.add(b.add(b.mul(stage, layout.exponentStride), factors), rows * 4);
  Rows words = loadFactors(ofFactors, k);
  return layout.lifting == Lifting::MXFP8 ? liftE4M3(place, words)
                                          : liftE2M1(place, words);
}

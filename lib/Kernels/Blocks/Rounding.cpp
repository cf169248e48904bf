//===- Rounding.cpp - f32 to 16 bits in kernels ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Rounding.h"

using namespace mlir;
using namespace mlir::fp8;

Value fp8::roundPair(KernelBuilder &b, Type type, Value first, Value second) {
  auto pair = VectorType::get({2}, type);
  // The first operand goes to the upper half.
  if (type.isBF16())
    return NVVM::ConvertF32x2ToBF16x2Op::create(b, pair, second, first,
                                                /*random_bits=*/Value(),
                                                NVVM::FPRoundingMode::RN);
  return NVVM::ConvertF32x2ToF16x2Op::create(b, pair, second, first,
                                             /*random_bits=*/Value(),
                                             NVVM::FPRoundingMode::RN);
}

std::pair<Value, Value> fp8::roundAlone(KernelBuilder &b, Type type,
                                        Value value) {
  Value pair = roundPair(b, type, b.f32(0.0f), value);
  Value narrow = LLVM::ExtractElementOp::create(b, pair, b.i32(1));
  Value wide;
  if (type.isBF16())
    wide = LLVM::BitcastOp::create(b, b.getF32Type(), pair);
  return {narrow, wide};
}

SmallVector<Value> fp8::packFragment(KernelBuilder &b, Type type,
                                     ArrayRef<Value> accumulators) {
  SmallVector<Value> words;
  for (size_t i = 0; i < accumulators.size(); i += 2)
    words.push_back(LLVM::BitcastOp::create(
        b, b.getI32Type(),
        roundPair(b, type, accumulators[i], accumulators[i + 1])));
  return words;
}

SmallVector<Value> fp8::unpackFragment(KernelBuilder &b, Type type,
                                       ArrayRef<Value> words) {
  Type f32 = b.getF32Type();
  SmallVector<Value> numbers;
  for (Value word : words) {
    if (type.isBF16()) {
      // Its bits are the upper half of an f32's.
      Value low = arith::ShLIOp::create(b, word, b.i32(16));
      Value high = b.bitAnd(word, int64_t(0xffff0000));
      for (Value bits : {low, high})
        numbers.push_back(LLVM::BitcastOp::create(b, f32, bits));
      continue;
    }
    Value pair = LLVM::BitcastOp::create(b, VectorType::get({2}, type), word);
    for (int64_t i : {0, 1})
      numbers.push_back(arith::ExtFOp::create(
          b, f32,
          LLVM::ExtractElementOp::create(b, pair, b.i32(i)).getResult()));
  }
  return numbers;
}

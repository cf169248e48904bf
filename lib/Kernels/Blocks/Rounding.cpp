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

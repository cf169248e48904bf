//===- AttentionProducts.cpp - Products of attention's tiles --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionProducts.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

Value sm90::moveDescriptor(KernelBuilder &b, Value descriptor, Value stage,
                           const SharedMatrix &matrix, int64_t bytes) {
  int64_t stageBytes = llvm::alignTo(matrix.getBytes(), 1024);
  Value distance = b.i32(bytes >> 4);
  if (stage)
    distance = b.add(b.mul(stage, stageBytes >> 4), distance);
  // The upper word stays, a constant, which a sum of 64 bits would have in
  // registers.
  Value low =
      b.add(arith::TruncIOp::create(b, b.getI32Type(), descriptor), distance);
  Value high = b.bitAnd(descriptor, b.i64(int64_t(-1) << 32));
  return arith::OrIOp::create(b, high, b.widen(low));
}

SmallVector<Value> sm90::getRegisters(KernelBuilder &b, Value accumulator) {
  auto type = cast<LLVM::LLVMStructType>(accumulator.getType());
  SmallVector<Value> registers;
  for (int64_t i = 0, e = static_cast<int64_t>(type.getBody().size()); i < e;
       ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, accumulator, i));
  return registers;
}

Value sm90::makeAccumulator(KernelBuilder &b, ArrayRef<Value> registers) {
  Value accumulator = LLVM::UndefOp::create(
      b,
      LLVM::LLVMStructType::getLiteral(
          b.getContext(), SmallVector<Type>(registers.size(), b.getF32Type())));
  for (auto [i, value] : llvm::enumerate(registers))
    accumulator =
        LLVM::InsertValueOp::create(b, accumulator, value, int64_t(i));
  return accumulator;
}

void sm90::storeFragment(KernelBuilder &b, ArrayRef<Value> words,
                         const SharedMatrix &matrix, Value shared, Value place,
                         Value row, Value lane) {
  // Rows 0 to 7 and 8 to 15 of 8 columns, then of the next 8.
  Value line = b.add(row, b.bitAnd(lane, 15));
  for (size_t first = 0; first < words.size(); first += 4) {
    Value chunk = b.add(b.shiftRight(lane, 4), static_cast<int64_t>(first / 2));
    Value at = b.add(matrix.locate(b, line, chunk), place);
    NVVM::StMatrixOp::create(
        b, b.offset(shared, at), words.slice(first, 4), NVVM::MMALayout::row,
        NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8),
        NVVM::LdStMatrixEltType::B16);
  }
}

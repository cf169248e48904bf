//===- Wgmma.cpp - Warpgroup matrix multiply-accumulate on 8-bit floats ---===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"
#include "fp8/IR/FP8Attrs.h"

using namespace mlir;
using namespace mlir::fp8;

/// K of one instruction on 8-bit operands.
static constexpr int64_t kInstructionK = 32;

/// The fields of a shared memory matrix descriptor beside the address (PTX ISA,
/// "Matrix Descriptor"). Low word: leading dimension offset 1, which a swizzled
/// K-major matrix ignores. High word: stride 1024 bytes >> 4 between groups of
/// 8 rows; 128-byte swizzle.
static constexpr int64_t kDescriptorLow = 1 << 16;
static constexpr uint64_t kDescriptorHigh = (1024 >> 4) | (uint64_t(1) << 30);

static NVVM::WGMMATypes getWgmmaType(Type type) {
  return isa<Float8E5M2Type>(type) ? NVVM::WGMMATypes::e5m2
                                   : NVVM::WGMMATypes::e4m3;
}

Wgmma::Wgmma(KernelBuilder &b, int64_t cols, Type aType, Type bType)
    : cols(cols), aType(getWgmmaType(aType)), bType(getWgmmaType(bType)) {
  accumulatorType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(getNumRegisters(), b.getF32Type()));
}

Value Wgmma::getUndefined(KernelBuilder &b) {
  return LLVM::UndefOp::create(b, accumulatorType);
}

Value Wgmma::getZeros(KernelBuilder &b) {
  return LLVM::ZeroOp::create(b, accumulatorType);
}

SmallVector<Value> Wgmma::getRegisters(KernelBuilder &b, Value accumulator) {
  SmallVector<Value> registers;
  for (int64_t i = 0; i < getNumRegisters(); ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, accumulator, i));
  return registers;
}

Value Wgmma::getDescriptor(KernelBuilder &b, Value address) {
  Value field = b.bitAnd(b.shiftRight(address, 4), 0x3fff);
  return arith::OrIOp::create(b, field, b.i32(kDescriptorLow));
}

Value Wgmma::advance(KernelBuilder &b, Value descriptor, Value bytes) {
  // The instruction takes its descriptors from uniform registers. If ptxas does
  // not know the value to be uniform it computes each in the others and moves
  // it, four times an instruction: a second warpgroup's epilogue then delays
  // the next one beyond the end of the last.
  return b.uniform(b.add(descriptor, b.shiftRight(bytes, 4)));
}

Value Wgmma::advance(KernelBuilder &b, Value descriptor, int64_t bytes) {
  return b.add(descriptor, bytes >> 4);
}

/// All of a descriptor, from its low word.
static Value complete(KernelBuilder &b, Value low) {
  return arith::OrIOp::create(b, b.widen(low), b.i64(kDescriptorHigh << 32));
}

Value Wgmma::multiply(KernelBuilder &b, Value aDescriptor, Value bDescriptor,
                      Value accumulator, bool overwrite) {
  auto shape = NVVM::MMAShapeAttr::get(b.getContext(), 64, cols, kInstructionK);
  for (int64_t k = 0; k < GemmConfigAttr::kTileK; k += kInstructionK) {
    // Inside of a swizzle atom, K advances the start address.
    accumulator = NVVM::WgmmaMmaAsyncOp::create(
        b, accumulatorType, accumulator,
        complete(b, advance(b, aDescriptor, k)),
        complete(b, advance(b, bDescriptor, k)), shape, aType, bType,
        NVVM::WGMMATypes::f32,
        overwrite && k == 0 ? NVVM::WGMMAScaleOut::zero
                            : NVVM::WGMMAScaleOut::one,
        NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row,
        NVVM::MMALayout::col, /*satfinite=*/nullptr);
  }
  return accumulator;
}

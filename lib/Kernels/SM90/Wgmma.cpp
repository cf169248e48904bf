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

/// The fields of a shared memory matrix descriptor that never change (PTX ISA,
/// "Matrix Descriptor"): leading dimension offset 1, which a swizzled K-major
/// matrix ignores; stride 1024 bytes >> 4 between groups of 8 rows; 128-byte
/// swizzle.
static constexpr uint64_t kDescriptorFields =
    (uint64_t(1) << 16) | (uint64_t(1024 >> 4) << 32) | (uint64_t(1) << 62);

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
  return arith::OrIOp::create(b, b.widen(field), b.i64(kDescriptorFields));
}

Value Wgmma::advance(KernelBuilder &b, Value descriptor, Value bytes) {
  return b.add(descriptor, b.widen(b.shiftRight(bytes, 4)));
}

Value Wgmma::advance(KernelBuilder &b, Value descriptor, int64_t bytes) {
  return b.add(descriptor, bytes >> 4);
}

Value Wgmma::multiply(KernelBuilder &b, Value aDescriptor, Value bDescriptor,
                      Value accumulator, bool overwrite) {
  auto shape = NVVM::MMAShapeAttr::get(b.getContext(), 64, cols, kInstructionK);
  for (int64_t k = 0; k < GemmConfigAttr::kTileK; k += kInstructionK) {
    // Inside of a swizzle atom, K advances the start address.
    accumulator = NVVM::WgmmaMmaAsyncOp::create(
        b, accumulatorType, accumulator, advance(b, aDescriptor, k),
        advance(b, bDescriptor, k), shape, aType, bType, NVVM::WGMMATypes::f32,
        overwrite && k == 0 ? NVVM::WGMMAScaleOut::zero
                            : NVVM::WGMMAScaleOut::one,
        NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one, NVVM::MMALayout::row,
        NVVM::MMALayout::col, /*satfinite=*/nullptr);
  }
  return accumulator;
}

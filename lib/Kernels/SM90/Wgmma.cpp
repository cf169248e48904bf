//===- Wgmma.cpp - Warpgroup matrix multiply-accumulate -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Wgmma.h"
#include "../Blocks/Hazards.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

static uint64_t getSwizzleMode(const OperandTile &tile) {
  switch (tile.getSwizzle()) {
  case 128:
    return 1;
  case 64:
    return 2;
  case 32:
    return 3;
  default:
    return 0;
  }
}

/// The instruction's name for what it takes elements for, if it has one.
static std::optional<NVVM::WGMMATypes> findWgmmaType(Type type) {
#define FP8_TENSOR_CORE_TYPE(NAME, TEXT, TYPE, ...)                            \
  if (isa<TYPE##Type>(type))                                                   \
    return NVVM::symbolizeWGMMATypes(TEXT);
#include "fp8/Formats.def"
  return std::nullopt;
}

static NVVM::WGMMATypes getWgmmaType(Type type) {
  std::optional<NVVM::WGMMATypes> found = findWgmmaType(type);
  assert(found && "expected a type that checkOperands has let through");
  return *found;
}

bool Wgmma::takes(Type type) { return findWgmmaType(type).has_value(); }

Wgmma::Wgmma(KernelBuilder &b, int64_t cols, const OperandTile &aTile,
             const OperandTile &bTile)
    : cols(cols), aTile(aTile), bTile(bTile) {
  accumulatorType = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(getNumRegisters(), b.getF32Type()));
}

Value Wgmma::getUndefined(KernelBuilder &b) {
  return LLVM::UndefOp::create(b, accumulatorType);
}

Value Wgmma::getZeros(KernelBuilder &b) {
  return LLVM::ZeroOp::create(b, accumulatorType);
}

SmallVector<Value> Wgmma::getRegisters(KernelBuilder &b,
                                       Value accumulator) const {
  SmallVector<Value> registers;
  for (int64_t i = 0; i < getNumRegisters(); ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, accumulator, i));
  return registers;
}

Value Wgmma::getAccumulator(KernelBuilder &b, ArrayRef<Value> registers) const {
  Value accumulator = LLVM::UndefOp::create(b, accumulatorType);
  for (auto [i, value] : llvm::enumerate(registers))
    accumulator =
        LLVM::InsertValueOp::create(b, accumulator, value, int64_t(i));
  return accumulator;
}

Value Wgmma::getDescriptor(KernelBuilder &b, const OperandTile &tile,
                           Value address) {
  Value field = b.bitAnd(b.shiftRight(address, 4), 0x3fff);
  return arith::OrIOp::create(b, field,
                              b.i32(tile.getLeadingOffset() >> 4 << 16));
}

Value Wgmma::advance(KernelBuilder &b, Value descriptor, Value bytes) {
  // The instruction takes its descriptors from uniform registers, and `bytes`
  // must be in them already. If ptxas does not know it to be uniform, it moves
  // each descriptor, four times an instruction, which delays the next one
  // beyond the end of the last.
  return b.add(descriptor, b.shiftRight(bytes, 4));
}

Value Wgmma::advance(KernelBuilder &b, Value descriptor, int64_t bytes) {
  return b.add(descriptor, bytes >> 4);
}

/// All of a descriptor, from its low word.
static Value complete(KernelBuilder &b, const OperandTile &tile, Value low) {
  uint64_t high = tile.getStrideOffset() >> 4 | getSwizzleMode(tile) << 30;
  return arith::OrIOp::create(b, b.widen(low), b.i64(high << 32));
}

Value Wgmma::multiplyStep(KernelBuilder &b, Value aDescriptor,
                          Value bDescriptor, Value accumulator, int64_t step,
                          bool overwrite) {
  WgmmaInstruction instruction{cols, aTile.getElementType(),
                               bTile.getElementType(), aTile.isTransposed(),
                               bTile.isTransposed()};
  // Inside of a swizzle atom, K advances the start address.
  Value a = advance(b, aDescriptor, step * aTile.getStepBytes());
  Value otherB = advance(b, bDescriptor, step * bTile.getStepBytes());
  return instruction.multiply(b, complete(b, aTile, a),
                              complete(b, bTile, otherB), accumulator,
                              overwrite);
}

Value Wgmma::multiply(KernelBuilder &b, Value aDescriptor, Value bDescriptor,
                      Value accumulator, bool overwrite) {
  for (int64_t step = 0; step < getNumSteps(); ++step)
    accumulator = multiplyStep(b, aDescriptor, bDescriptor, accumulator, step,
                               overwrite && step == 0);
  return accumulator;
}

Value Wgmma::multiplyFragments(KernelBuilder &b, ArrayRef<Value> words,
                               Value bDescriptor, Value accumulator,
                               Value accumulates) const {
  WgmmaInstruction instruction{cols, aTile.getElementType(),
                               bTile.getElementType(), /*transposedA=*/false,
                               bTile.isTransposed()};
  for (int64_t step = 0; !words.empty(); ++step, words = words.drop_front(4)) {
    Value low = advance(b, bDescriptor, step * bTile.getStepBytes());
    accumulator =
        instruction.multiply(b, words.take_front(4), complete(b, bTile, low),
                             accumulator, step == 0 ? accumulates : b.i32(1));
  }
  return accumulator;
}

//===----------------------------------------------------------------------===//
// One instruction
//===----------------------------------------------------------------------===//

LLVM::LLVMStructType WgmmaInstruction::getAccumulatorType() const {
  MLIRContext *context = aType.getContext();
  return LLVM::LLVMStructType::getLiteral(
      context, SmallVector<Type>(cols / 2, Float32Type::get(context)));
}

Value WgmmaInstruction::multiply(KernelBuilder &b, Value aDescriptor,
                                 Value bDescriptor, Value accumulator,
                                 bool overwrite) const {
  auto shape = NVVM::MMAShapeAttr::get(b.getContext(), 64, cols, getK());
  return NVVM::WgmmaMmaAsyncOp::create(
      b, accumulator.getType(), accumulator, aDescriptor, bDescriptor, shape,
      getWgmmaType(aType), getWgmmaType(bType), NVVM::WGMMATypes::f32,
      overwrite ? NVVM::WGMMAScaleOut::zero : NVVM::WGMMAScaleOut::one,
      NVVM::WGMMAScaleIn::one, NVVM::WGMMAScaleIn::one,
      transposedA ? NVVM::MMALayout::col : NVVM::MMALayout::row,
      transposedB ? NVVM::MMALayout::row : NVVM::MMALayout::col,
      /*satfinite=*/nullptr);
}

Value WgmmaInstruction::multiply(KernelBuilder &b, ArrayRef<Value> aFragment,
                                 Value bDescriptor, Value accumulator,
                                 bool overwrite) const {
  return multiply(b, aFragment, bDescriptor, accumulator,
                  b.i32(overwrite ? 0 : 1));
}

Value WgmmaInstruction::multiply(KernelBuilder &b, ArrayRef<Value> aFragment,
                                 Value bDescriptor, Value accumulator,
                                 Value accumulates) const {
  int64_t registers = cols / 2, words = aFragment.size();
  std::string code, constraints;
  llvm::raw_string_ostream text(code), ties(constraints);
  text << "{\n.reg .pred p;\nsetp.ne.b32 p, $" << 2 * registers + words + 1
       << ", 0;\nwgmma.mma_async.sync.aligned.m64n" << cols << 'k' << getK()
       << ".f32." << stringifyWGMMATypes(getWgmmaType(aType)) << '.'
       << stringifyWGMMATypes(getWgmmaType(bType)) << " {";
  // "=f,...,0,...,r,r,r,r,l": accumulators are read and written.
  SmallVector<Value> inputs;
  for (int64_t i = 0; i < registers; ++i) {
    text << (i ? ", $" : "$") << i;
    ties << (i ? ",=f" : "=f");
    inputs.push_back(LLVM::ExtractValueOp::create(b, accumulator, i));
  }
  for (int64_t i = 0; i < registers; ++i)
    ties << ',' << i;
  text << "}, {";
  for (auto [i, word] : llvm::enumerate(aFragment)) {
    text << (i ? ", $" : "$") << 2 * registers + static_cast<int64_t>(i);
    ties << ",r";
    inputs.push_back(word);
  }
  text << "}, $" << 2 * registers + words << ", p, 1, 1";
  if (aType.getIntOrFloatBitWidth() == 16)
    text << ", " << transposedB;
  text << ";\n}";
  // What is known is in the text.
  ties << ",l," << (matchPattern(accumulates, m_Constant()) ? 'n' : 'r');
  inputs.append({bDescriptor, accumulates});
  return LLVM::InlineAsmOp::create(
             b, accumulator.getType(), inputs, code, constraints,
             /*has_side_effects=*/true, /*is_align_stack=*/false,
             LLVM::TailCallKind::None,
             LLVM::AsmDialectAttr::get(b.getContext(),
                                       LLVM::AsmDialect::AD_ATT),
             /*operand_attrs=*/ArrayAttr())
      .getRes();
}

SmallVector<Value> sm90::waitForAccumulators(KernelBuilder &b, int64_t pending,
                                             ValueRange accumulators) {
  std::string code =
      "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";";
  return tieRegisters(b, code, accumulators);
}

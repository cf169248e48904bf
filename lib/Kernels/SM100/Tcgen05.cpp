//===- Tcgen05.cpp - Tensor cores of the fifth generation -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Tcgen05.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// The swizzle of a matrix descriptor (PTX ISA, "Shared memory descriptor").
static uint64_t getSwizzleMode(int64_t swizzle) {
  switch (swizzle) {
  case 128:
    return 2;
  case 64:
    return 4;
  case 32:
    return 6;
  default:
    return 0;
  }
}

static NVVM::Tcgen05MMAKind getKind(Type type) {
  switch (type.getIntOrFloatBitWidth()) {
  case 8:
    return NVVM::Tcgen05MMAKind::F8F6F4;
  case 16:
    return NVVM::Tcgen05MMAKind::F16;
  default:
    return NVVM::Tcgen05MMAKind::TF32;
  }
}

/// A type's code in an instruction descriptor (PTX ISA), if there is one: types
/// are told apart within their kind, which of E2M1 is that of 4 bits alone.
static std::optional<int64_t> findTypeCode(Type type) {
  if (type.isF32())
    return 2;
  if (isa<BFloat16Type, Float8E5M2Type, Float4E2M1FNType>(type))
    return 1;
  if (isa<Float16Type, Float8E4M3FNType>(type))
    return 0;
  return std::nullopt;
}

static int64_t getTypeCode(Type type) {
  std::optional<int64_t> code = findTypeCode(type);
  assert(code && "expected a type that checkOperands has let through");
  return *code;
}

bool Tcgen05::takes(Type type) { return findTypeCode(type).has_value(); }

/// What instruction descriptors of all kinds have alike.
static int64_t getShape(Type a, Type b, bool transposedA, bool transposedB,
                        int64_t rows, int64_t cols) {
  return getTypeCode(a) << 7 | getTypeCode(b) << 10 |
         int64_t(transposedA) << 15 | int64_t(transposedB) << 16 |
         cols >> 3 << 17 | rows >> 4 << 24;
}

/// Sums are f32, which instructions with factors do not say.
static constexpr int64_t kSumsAreF32 = 1 << 4;

int64_t Tcgen05::getInstruction(int64_t factor) const {
  int64_t shared =
      getShape(aTile.getElementType(), bTile.getElementType(),
               aTile.isTransposed(), bTile.isTransposed(), 128 * blocks, cols);
  if (factorK) {
    int64_t isE8M0 = factorK == 32;
    return shared | factor << 4 | isE8M0 << 23 | factor << 29;
  }
  return shared | kSumsAreF32;
}

/// The pointer to `address` (i32) of tensor memory.
static Value getMemory(KernelBuilder &b, Value address) {
  return LLVM::IntToPtrOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 6), address);
}

Value sm100::makeDescriptor(KernelBuilder &b, Value address,
                            int64_t leadingOffset, int64_t strideOffset,
                            int64_t swizzle) {
  constexpr uint64_t version = 1;
  uint64_t fields = static_cast<uint64_t>(leadingOffset) >> 4 << 16 |
                    static_cast<uint64_t>(strideOffset) >> 4 << 32 |
                    version << 46 | getSwizzleMode(swizzle) << 61;
  Value start = b.bitAnd(b.shiftRight(address, 4), 0x3fff);
  return arith::OrIOp::create(b, b.widen(start),
                              b.i64(static_cast<int64_t>(fields)));
}

Value Tcgen05::getDescriptor(KernelBuilder &b, const OperandTile &tile,
                             Value address) {
  return makeDescriptor(b, address, tile.getLeadingOffset(),
                        tile.getStrideOffset(), tile.getSwizzle());
}

Value Tcgen05::getFactorDescriptor(KernelBuilder &b, Value address) {
  constexpr int64_t groupBytes = 8 * 16;
  return makeDescriptor(b, address, /*leadingOffset=*/0, groupBytes,
                        /*swizzle=*/0);
}

void Tcgen05::copyFactors(KernelBuilder &b, Value address,
                          Value descriptor) const {
  NVVM::Tcgen05CpOp::create(b, NVVM::Tcgen05CpShape::SHAPE_32x128b, getGroup(),
                            NVVM::Tcgen05CpMulticast::WARPX4,
                            /*srcFormat=*/nullptr, getMemory(b, address),
                            descriptor);
}

Value Tcgen05::advance(KernelBuilder &b, Value descriptor, Value bytes) {
  return b.add(descriptor, b.widen(b.shiftRight(bytes, 4)));
}

// LLVM would print the sum of a register and a constant in the instruction, as
// if it were an address.
Value sm100::advanceBy(KernelBuilder &b, Value descriptor, int64_t bytes) {
  if (bytes == 0)
    return descriptor;
  auto sum = NVVM::InlinePtxOp::create(
      b, TypeRange(b.getI64Type()), ValueRange{descriptor, b.i64(bytes >> 4)},
      ValueRange(), b.getStringAttr("add.s64 {$w0}, {$r0}, {$r1};"),
      /*predicate=*/Value());
  return sum.getResult(0);
}

/// One instruction without factors; A as Tcgen05Instruction has it.
static void multiplyOnce(KernelBuilder &b, Type type, NVVM::CTAGroupKind group,
                         Value sums, Value aOperand, Value bDescriptor,
                         int64_t instruction, Value accumulates) {
  NVVM::Tcgen05MMAOp::create(
      b, getKind(type), group, NVVM::Tcgen05MMACollectorOp::DISCARD,
      /*aShift=*/false, sums, aOperand, bDescriptor, b.i32(instruction),
      accumulates, /*scaleInputD=*/Value(), /*disableOutputLane=*/Value());
}

void Tcgen05Instruction::multiply(KernelBuilder &builder, Value address,
                                  Value aOperand, Value bDescriptor,
                                  Value accumulates) const {
  if (aOperand.getType().isInteger(32))
    aOperand = getMemory(builder, aOperand);
  multiplyOnce(builder, a, NVVM::CTAGroupKind::CTA_1,
               getMemory(builder, address), aOperand, bDescriptor,
               getShape(a, b, transposedA, transposedB, /*rows=*/128, cols) |
                   kSumsAreF32,
               accumulates);
}

void Tcgen05::multiplyScaled(KernelBuilder &b, Value sums, Value aDescriptor,
                             Value bDescriptor, Value accumulates, int64_t part,
                             Factors factors) const {
  int64_t first = part * aTile.getInstructionK() / factorK;
  int64_t atom = first / 4;
  bool isFP4 = isa<Float4E2M1FNType>(aTile.getElementType());
  NVVM::Tcgen05MMABlockScaleOp::create(
      b,
      isFP4 ? NVVM::MMABlockScaleKind::MXF4NVF4
            : NVVM::MMABlockScaleKind::MXF8F6F4,
      getGroup(),
      !isFP4          ? NVVM::Tcgen05MMABlockScale::DEFAULT
      : factorK == 16 ? NVVM::Tcgen05MMABlockScale::BLOCK16
                      : NVVM::Tcgen05MMABlockScale::BLOCK32,
      NVVM::Tcgen05MMACollectorOp::DISCARD, sums, aDescriptor, bDescriptor,
      b.i32(getInstruction(first % 4)), accumulates,
      getMemory(b, b.add(factors.a, atom * factors.stepA)),
      getMemory(b, b.add(factors.b, atom * factors.stepB)));
}

void Tcgen05::multiply(KernelBuilder &b, Value address, Value aDescriptor,
                       Value bDescriptor, Value accumulates,
                       Factors factors) const {
  Value sums = getMemory(b, address);
  int64_t instructionK = aTile.getInstructionK();
  for (int64_t i = 0, e = aTile.getBlockK() / instructionK; i < e; ++i) {
    // Inside of a swizzle atom, K advances the start address.
    Value a = advanceBy(b, aDescriptor, i * aTile.getStepBytes());
    Value otherB = advanceBy(b, bDescriptor, i * bTile.getStepBytes());
    Value keeps = i == 0 ? accumulates : b.i1(true);
    if (factorK) {
      multiplyScaled(b, sums, a, otherB, keeps, i, factors);
      continue;
    }
    multiplyOnce(b, aTile.getElementType(), getGroup(), sums, a, otherB,
                 getInstruction(0), keeps);
  }
}

void Tcgen05::commit(KernelBuilder &b, Value barrier) const {
  if (blocks == 1) {
    NVVM::Tcgen05CommitOp::create(b, barrier, /*multicastMask=*/Value());
    return;
  }
  Value both = arith::ConstantOp::create(b, b.getI16IntegerAttr(3));
  NVVM::Tcgen05CommitOp::create(b, barrier, both, NVVM::CTAGroupKind::CTA_2);
}

//===----------------------------------------------------------------------===//
// Tensor memory
//===----------------------------------------------------------------------===//

/// What moves data, and waits for that.
static LLVM::InlineAsmOp makeAssembly(KernelBuilder &b, Type type,
                                      ValueRange operands, StringRef code,
                                      StringRef constraints) {
  return LLVM::InlineAsmOp::create(
      b, type, operands, code, constraints, /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
}

/// Cuts columns into loads or stores, which have a power of two each.
static void forEachMove(int64_t columns,
                        llvm::function_ref<void(int64_t, int64_t)> move) {
  for (int64_t first = 0, count; first < columns; first += count) {
    count = static_cast<int64_t>(llvm::bit_floor(
        static_cast<uint64_t>(std::min<int64_t>(columns - first, 128))));
    move(first, count);
  }
}

/// "{$first, ...}" of `count` registers of an assembly.
static void printRegisters(llvm::raw_ostream &os, int64_t first,
                           int64_t count) {
  os << '{';
  for (int64_t i = 0; i < count; ++i)
    os << (i ? ", $" : "$") << first + i;
  os << '}';
}

SmallVector<Value> sm100::loadColumns(KernelBuilder &b,
                                      ArrayRef<MemoryColumns> parts) {
  // One assembly for all: between the loads and the wait nothing else may use
  // the registers, and LLVM knows of no order between them.
  std::string code, constraints;
  llvm::raw_string_ostream codeOS(code), constraintsOS(constraints);
  int64_t total = 0;
  for (const MemoryColumns &part : parts)
    total += part.count;
  SmallVector<Value> addresses;
  int64_t number = 0;
  for (const MemoryColumns &part : parts)
    forEachMove(part.count, [&](int64_t first, int64_t count) {
      codeOS << "tcgen05.ld.sync.aligned.32x32b.x" << count << ".b32 ";
      printRegisters(codeOS, number, count);
      number += count;
      codeOS << ", [$" << total + static_cast<int64_t>(addresses.size())
             << "]; ";
      addresses.push_back(b.add(part.address, first));
    });
  codeOS << "tcgen05.wait::ld.sync.aligned;";
  for (int64_t i = 0; i < total; ++i)
    constraintsOS << (i ? ",=f" : "=f");
  for (size_t i = 0; i < addresses.size(); ++i)
    constraintsOS << ",r";
  auto type = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(total, b.getF32Type()));
  auto assembly = makeAssembly(b, type, addresses, code, constraints);
  SmallVector<Value> registers;
  for (int64_t i = 0; i < total; ++i)
    registers.push_back(LLVM::ExtractValueOp::create(b, assembly.getRes(), i));
  return registers;
}

void sm100::storeColumns(KernelBuilder &b, Value address, ArrayRef<Value> words,
                         bool waits) {
  std::string code, constraints;
  llvm::raw_string_ostream codeOS(code);
  auto total = static_cast<int64_t>(words.size());
  SmallVector<Value> operands(words);
  forEachMove(total, [&](int64_t first, int64_t count) {
    codeOS << "tcgen05.st.sync.aligned.32x32b.x" << count << ".b32 [$"
           << operands.size() << "], ";
    printRegisters(codeOS, first, count);
    codeOS << "; ";
    operands.push_back(b.add(address, first));
  });
  if (waits)
    codeOS << "tcgen05.wait::st.sync.aligned;";
  for (size_t i = 0; i < operands.size(); ++i)
    constraints += i ? ",r" : "r";
  makeAssembly(b, /*type=*/Type(), operands, code, constraints);
}

FragmentLayout sm100::getFragmentLayout(int64_t cols) {
  FragmentLayout layout;
  layout.warpRows = 32;
  layout.lanesPerRow = 1;
  layout.rows = {0};
  for (int64_t col = 0; col < cols; col += 2)
    layout.pairs.push_back({0, col});
  return layout;
}

void sm100::fenceBeforeSync(KernelBuilder &b) {
  NVVM::Tcgen05FenceOp::create(b, NVVM::Tcgen05FenceKind::BEFORE_THREAD_SYNC);
}

void sm100::fenceAfterSync(KernelBuilder &b) {
  NVVM::Tcgen05FenceOp::create(b, NVVM::Tcgen05FenceKind::AFTER_THREAD_SYNC);
}

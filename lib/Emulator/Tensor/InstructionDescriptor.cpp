//===- InstructionDescriptor.cpp - What tcgen05.mma computes --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "InstructionDescriptor.h"

using namespace fp8emu;

static uint32_t getField(uint64_t bits, unsigned first, unsigned last) {
  return static_cast<uint32_t>(bits >> first &
                               ((uint64_t{1} << (last - first + 1)) - 1));
}

/// "expected X in bits 7 to 9 of the instruction descriptor, its type of A, but
/// got 6".
static std::string wrong(const char *descriptor, unsigned first, unsigned last,
                         const char *field, const std::string &expected,
                         uint32_t got) {
  return "expected " + expected + " in bit" +
         (first == last
              ? " " + std::to_string(first)
              : "s " + std::to_string(first) + " to " + std::to_string(last)) +
         " of the " + descriptor + ", " + field + ", but got " +
         std::to_string(got);
}

static std::string wrongField(uint32_t bits, unsigned first, unsigned last,
                              const char *field, const std::string &expected) {
  return wrong("instruction descriptor", first, last, field, expected,
               getField(bits, first, last));
}

/// Types of 8 bits and less, by their number; 2 is no type.
static constexpr Element kSmallTypes[] = {Element::E4M3, Element::E5M2,
                                          Element::E4M3, Element::E2M3,
                                          Element::E3M2, Element::E2M1};

std::string TensorInstruction::decodeTypes(uint32_t bits) {
  struct Place {
    unsigned first, last;
    const char *name;
    Element *type;
    bool *isSigned;
  };
  unsigned lastB = isFP4() ? 11 : 12;
  for (Place at : {Place{7, 9, "the type of A", &typeA, &signedA},
                   Place{10, lastB, "the type of B", &typeB, &signedB}}) {
    uint32_t code = getField(bits, at.first, at.last);
    auto fail = [&](const char *expected) {
      return wrongField(bits, at.first, at.last, at.name, expected);
    };
    switch (kind) {
    case TensorKind::F16:
      if (code > 1)
        return fail("0 (f16) or 1 (bf16)");
      *at.type = code ? Element::BF16 : Element::F16;
      break;
    case TensorKind::TF32:
      if (code != 2)
        return fail("2 (tf32)");
      *at.type = Element::TF32;
      break;
    case TensorKind::F8F6F4:
    case TensorKind::MXF8F6F4:
      if (code == 2 || code > 5)
        return fail("0 (e4m3), 1 (e5m2), 3 (e2m3), 4 (e3m2) or 5 (e2m1)");
      *at.type = kSmallTypes[code];
      break;
    case TensorKind::I8:
      if (code > 1)
        return fail("0 (u8) or 1 (s8)");
      *at.type = Element::E4M3;
      *at.isSigned = code;
      break;
    case TensorKind::MXF4:
    case TensorKind::MXF4NVF4:
      if (code != 1)
        return fail("1 (e2m1)");
      *at.type = Element::E2M1;
      break;
    }
  }
  if (kind == TensorKind::F16 && typeA != typeB)
    return wrongField(bits, 10, 12, "the type of B", "that of A");
  return "";
}

/// PTX ISA, "Matrix Shape": which M and N there are.
std::string TensorInstruction::checkShape() const {
  bool m = group == 2 ? rows == 128 || rows == 256
                      : rows == 128 || (rows == 64 && !isScaled());
  if (!m)
    return "expected M of " +
           std::string(group == 2   ? "128 or 256"
                       : isScaled() ? "128"
                                    : "64 or 128") +
           " in the instruction descriptor, but got " + std::to_string(rows);
  unsigned step = group == 2 ? 16 : 8;
  // Units of 16 bytes, in each block.
  if ((transposeB && getBytes(typeB) == 1) || kind == TensorKind::I8)
    step = group == 2 ? 32 : 16;
  if (kind == TensorKind::I8 && group == 1 && !transposeB &&
      (columns == 8 || columns == 24))
    return "";
  if (columns == 0 || columns > kMaxColumns || columns % step != 0)
    return "expected N to be a multiple of " + std::to_string(step) +
           " up to 256 in bits 17 to 22 of the instruction descriptor, but "
           "got " +
           std::to_string(columns);
  return "";
}

std::string TensorInstruction::decode(uint32_t bits) {
  auto zero = [&](unsigned first, unsigned last, const char *field) {
    return getField(bits, first, last)
               ? wrongField(bits, first, last, field, "0")
               : std::string();
  };
  std::string text;
  auto require = [&](std::string found) {
    text = std::move(found);
    return text.empty();
  };
  if (!require(zero(2, 2, "sparsity, which is not modelled")) ||
      !require(zero(0, 1, "which of sparse elements")) ||
      (kind != TensorKind::I8 &&
       !require(
           zero(3, 3, isScaled() ? "reserved" : "saturation of integers"))) ||
      !require(zero(6, 6, "reserved")) || !require(decodeTypes(bits)))
    return text;
  negateA = getField(bits, 13, 13);
  negateB = getField(bits, 14, 14);
  transposeA = getField(bits, 15, 15);
  transposeB = getField(bits, 16, 16);
  columns = getField(bits, 17, 22) * 8;
  rows = getField(bits, 24, 28) * 16;
  if (!isScaled()) {
    uint32_t d = getField(bits, 4, 5);
    if (kind == TensorKind::I8) {
      if (d != 2)
        return wrongField(bits, 4, 5, "the type of D", "2 (s32)");
      if (!require(zero(13, 14, "negation, which integers have not")))
        return text;
      saturate = getField(bits, 3, 3);
    } else if (d > 1 || (d == 0 && kind == TensorKind::TF32))
      return wrongField(bits, 4, 5, "the type of D",
                        kind == TensorKind::TF32 ? "1 (f32)"
                                                 : "0 (f16) or 1 (f32)");
    half = d == 0;
    if (!require(zero(23, 23, "reserved")) ||
        !require(zero(29, 29, "reserved")) ||
        !require(zero(30, 31, "the shift of .ws")))
      return text;
    return checkShape();
  }
  if (!require(zero(24, 26, "reserved")))
    return text;
  factorB = getField(bits, 4, 5);
  factorA = getField(bits, 29, 30);
  scale = getField(bits, 23, 23) ? ScaleType::UE8M0 : ScaleType::UE4M3;
  if (scale == ScaleType::UE4M3 &&
      !(kind == TensorKind::MXF4NVF4 && factors == 4))
    return wrongField(bits, 23, 23, "the type of factors", "1 (ue8m0)");
  if (isFP4()) {
    if (!require(zero(12, 12, "reserved")) ||
        !require(zero(15, 15, "rows of A side by side, which FP4 has not")) ||
        !require(zero(16, 16, "rows of B side by side, which FP4 has not")) ||
        !require(zero(31, 31, "K of 96, which sm_100 has not")))
      return text;
  } else if (!require(zero(31, 31, "reserved"))) {
    return text;
  }
  for (bool isA : {true, false}) {
    uint32_t id = isA ? factorA : factorB;
    if ((factors == 2 && id % 2) || (factors == 4 && id))
      return wrongField(bits, isA ? 29 : 4, isA ? 30 : 5,
                        isA ? "the first factor of A" : "the first factor of B",
                        factors == 2 ? "0 or 2" : "0");
  }
  return checkShape();
}

std::string fp8emu::decodeDescriptor(uint64_t bits, Descriptor &descriptor) {
  constexpr const char *name = "matrix descriptor";
  struct Zero {
    unsigned first, last;
    const char *field;
  };
  for (Zero zero : {Zero{14, 15, "reserved"}, Zero{30, 31, "reserved"},
                    Zero{49, 51, "a base offset, which is not modelled"},
                    Zero{52, 52, "absolute strides, which sm_100 has not"},
                    Zero{53, 60, "reserved"}})
    if (uint32_t got = getField(bits, zero.first, zero.last))
      return wrong(name, zero.first, zero.last, zero.field, "0", got);
  if (uint32_t got = getField(bits, 46, 48); got != 1)
    return wrong(name, 46, 48, "its version", "1", got);
  uint32_t mode = getField(bits, 61, 63);
  if (mode != 0 && mode != 2 && mode != 4 && mode != 6)
    return wrong(name, 61, 63, "the swizzle",
                 "0 (none), 2 (128 bytes), 4 (64 bytes) or 6 (32 bytes)", mode);
  descriptor = Descriptor(bits & ((uint64_t{1} << 46) - 1));
  // 128, 64 and 32 bytes, as tensor maps count them.
  descriptor.swizzle = mode == 0 ? 0 : 4 - mode / 2;
  return "";
}

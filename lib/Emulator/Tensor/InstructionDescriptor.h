//===- InstructionDescriptor.h - What tcgen05.mma computes ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_TENSOR_INSTRUCTIONDESCRIPTOR_H
#define FP8_LIB_EMULATOR_TENSOR_INSTRUCTIONDESCRIPTOR_H

#include "Descriptor.h"
#include "TensorCore/BlockDot.h"

#include <string>

namespace fp8emu {

enum class TensorKind : uint8_t {
  F16,
  TF32,
  F8F6F4,
  I8,
  MXF8F6F4,
  MXF4,
  MXF4NVF4
};

/// An instruction's opcode, and its descriptor of 32 bits (PTX ISA,
/// "Instruction Descriptor").
struct TensorInstruction {
  TensorKind kind;
  unsigned group;                        /* of blocks: 1 or 2 */
  unsigned factors;                      /* of a row, where blocks are scaled */
  Element typeA, typeB;                  /* of integers any type of a byte */
  bool signedA = false, signedB = false; /* of integers */
  bool half = false;                     /* D is f16 */
  bool saturate = false; /* D, of integers, stays at its limits */
  bool negateA = false, negateB = false;
  bool transposeA = false, transposeB = false; /* rows lie side by side */
  unsigned rows = 0, columns = 0;              /* of both blocks */
  unsigned factorA = 0, factorB = 0;           /* the first factor's byte */
  ScaleType scale = ScaleType::None;

  bool isScaled() const { return kind >= TensorKind::MXF8F6F4; }
  bool isFP4() const { return kind >= TensorKind::MXF4; }
  /// Along K.
  unsigned products() const { return isFP4() ? 64 : 32 / getBytes(typeA); }
  unsigned rowsOfBlock() const { return rows / group; }
  /// Two halves of the columns lie one below the other.
  bool isStacked() const { return group == 2 && rows == 128; }

  /// Takes the fields; what is wrong with them, or "".
  std::string decode(uint32_t bits);

private:
  std::string decodeTypes(uint32_t bits);
  std::string checkShape() const;
};

/// A matrix descriptor of sm_100; what is wrong with it, or "".
std::string decodeDescriptor(uint64_t bits, Descriptor &descriptor);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_TENSOR_INSTRUCTIONDESCRIPTOR_H

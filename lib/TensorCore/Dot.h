//===- Dot.h - Sums of the tensor cores, to the bit -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One instruction adds all its products and the accumulator at once. Each is
// aligned to the largest exponent and cut off F bits below it, toward zero; the
// sum is exact, and is cut off to the result's mantissa. See docs/Emulator.md
// for where that is known from.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TENSORCORE_DOT_H
#define FP8_LIB_TENSORCORE_DOT_H

#include "fp8/Formats.h"

#include <cstdint>

namespace fp8emu {

/// With the numbers of fp8rt_tensor_core_type.
enum class Element : uint8_t {
#define FP8_TENSOR_CORE_TYPE(NAME, TEXT, TYPE, NUMBER, ...) NAME = NUMBER,
#include "fp8/Formats.def"
};

constexpr const fp8rt::NumberFormat &getFormat(Element type) {
  return fp8rt::kTensorCoreFormats[static_cast<unsigned>(type)];
}
constexpr unsigned getBits(Element type) {
  return static_cast<unsigned>(getFormat(type).getBits());
}

/// Bytes of an element by itself; less than 8 bits are the lowest of one, and a
/// TF32 is the upper bits of an f32.
constexpr unsigned getBytes(Element type) {
  unsigned bits = getBits(type);
  return bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
}

constexpr unsigned kMaxProducts = 32; /* of an instruction: 32 bytes of K */
constexpr unsigned kMaxColumns = 256;
constexpr unsigned kWarpRows = 16; /* of the 64 of an instruction */

/// An operand's rows of 32 bytes; of B the rows are columns of the product.
struct Operands {
  Element typeA, typeB;
  unsigned columns;
  uint8_t a[kWarpRows][32];
  uint8_t b[kMaxColumns][32];
};

/// accumulators[row * columns + column] = that, or 0 if `fresh`, plus A * B^T.
void multiplyAccumulate(const Operands &operands, bool fresh,
                        float *accumulators);

/// The same of types of 8 bits by Ada's mma.sync: 16 products at a time, of
/// ascending k.
void multiplyAccumulateHalves(const Operands &operands, float *accumulators);

/// The same by that of sm_120, whose sums keep 25 bits.
void multiplyAccumulateWide(const Operands &operands, float *accumulators);

/// Those of 8 bits converted to f16, whose exponents count where sums are cut
/// off, in two sums of 16: of the k that are 0 or 1 in 4, and of the others.
void multiplyAccumulateAsHalf(const Operands &operands, float *accumulators);

/// The same with sums of f32, one product after the other: sooner done.
void multiplyAccumulatePlain(const Operands &operands, bool fresh,
                             float *accumulators);

/// Element k of a row.
double getValue(Element type, const uint8_t *row, unsigned k);

} // namespace fp8emu

#endif // FP8_LIB_TENSORCORE_DOT_H

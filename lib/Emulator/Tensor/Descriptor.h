//===- Descriptor.h - Matrices in shared memory -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_TENSOR_DESCRIPTOR_H
#define FP8_LIB_EMULATOR_TENSOR_DESCRIPTOR_H

#include <cstdint>

namespace fp8emu {

/// A matrix descriptor's fields (PTX ISA, "Matrix Descriptor Format").
struct Descriptor {
  explicit Descriptor(uint64_t bits)
      : start(static_cast<uint32_t>(bits & 0x3fff) << 4),
        leading(static_cast<uint32_t>(bits >> 16 & 0x3fff) << 4),
        stride(static_cast<uint32_t>(bits >> 32 & 0x3fff) << 4),
        baseOffset(bits >> 49 & 7),
        // 1, 2, 3 are 128, 64 and 32 bytes; here as tensor maps count them.
        swizzle((4 - static_cast<unsigned>(bits >> 62)) & 3) {}
  uint32_t start, leading, stride;
  unsigned baseOffset, swizzle;

  unsigned width() const { return swizzle ? 16u << swizzle : 16; }

  /// Address of a row's byte in the instruction's 32 bytes of K.
  uint32_t locateK(unsigned row, unsigned byte) const {
    uint32_t address = start + row / 8 * stride + row % 8 * width();
    if (swizzle == 0)
      return address + byte / 16 * leading + byte % 16;
    return mix(address + byte);
  }
  /// Address of an element where the rows are what lies side by side.
  uint32_t locateMN(unsigned row, unsigned k, unsigned bytes) const {
    uint32_t along = row * bytes;
    uint32_t address = swizzle == 0
                           ? start + along / 16 * stride + k / 8 * leading
                           : start + along / width() * leading + k / 8 * stride;
    return mix(address + k % 8 * width() + along % width());
  }
  uint32_t mix(uint32_t address) const {
    uint32_t mask = swizzle == 0 ? 0 : (1u << swizzle) - 1;
    return address ^ (address >> 7 & mask) << 4;
  }
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_TENSOR_DESCRIPTOR_H

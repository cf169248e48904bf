//===- TensorMap.h - What cuTensorMapEncodeTiled writes ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A chip's 128 bytes are its secret; these are a plain description, under a
// number that nothing else begins with.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_ASYNC_TENSORMAP_H
#define FP8_LIB_EMULATOR_ASYNC_TENSORMAP_H

#include <cstdint>

namespace fp8emu {

constexpr uint64_t kTensorMapMagic = 0x70614d726f736e65;
/// CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B: two elements a byte.
constexpr int kPacked4 = 13;
/// CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B: the same, of which each 16 are 16
/// bytes in shared memory, 8 of them unused.
constexpr int kPadded4 = 14;

struct TensorMap {
  uint64_t magic;
  /// CuTe clears a bit of this word where it takes the driver for an old one.
  uint64_t unused;
  uint64_t address;
  uint64_t strides[5];   /* bytes; the first is that of an element */
  uint32_t lastIndex[5]; /* extents less 1 */
  uint16_t box[5];
  uint8_t elementBytes, rank, swizzle, type;
  uint8_t promotion; /* bytes that L2 fetches, of no matter here */
};
static_assert(sizeof(TensorMap) <= 128);

/// Bytes after which a swizzle begins again: 0 is none.
constexpr unsigned getSwizzleBytes(unsigned swizzle) {
  return swizzle == 0 ? 0 : 16u << swizzle;
}

/// Where a byte lies in shared memory: bits 4 to 6 of the address, as many as
/// the swizzle has, are mixed with those three above the bits of a row of 128.
constexpr uint32_t swizzleOffset(uint32_t address, unsigned swizzle) {
  uint32_t mask = swizzle == 0 ? 0 : (1u << swizzle) - 1;
  return address ^ ((address >> 7 & mask) << 4);
}

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_ASYNC_TENSORMAP_H

//===- TensorOperands.cpp - What tcgen05.mma reads and where --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TensorProduct.h"

using namespace fp8emu;

//===----------------------------------------------------------------------===//
// Where operands are
//===----------------------------------------------------------------------===//

/// Units of 16 bytes of shared memory: those of a row along K, or of rows side
/// by side. Of FP4 and FP6 beside larger types 16 elements are one.
template <class F>
void TensorProduct::forEachUnit(const Descriptor &descriptor, unsigned rows,
                                Element type, bool transposed, F visit) const {
  if (!transposed) {
    for (unsigned row = 0; row < rows; ++row)
      for (unsigned byte = 0; byte < 32; byte += 16)
        visit(descriptor.locateK(row, byte), row, byte);
    return;
  }
  unsigned bytes = getBytes(type);
  for (unsigned row = 0; row < rows; row += 16 / bytes)
    for (unsigned k = 0; k < instruction.products(); ++k)
      visit(descriptor.locateMN(row, k, bytes), row, k);
}

void TensorProduct::unpack(const uint8_t *unit, Element type,
                           uint8_t *codes) const {
  unsigned bits = getBits(type);
  if (!instruction.isFP4() && !isPadded(type)) {
    std::memcpy(codes, unit, 16);
    return;
  }
  unsigned count = instruction.isFP4() ? 32 : 16;
  for (unsigned i = 0; i < count; ++i) {
    unsigned bit = i * bits;
    unsigned two = unit[bit / 8] | (bit / 8 < 15 ? unit[bit / 8 + 1] << 8 : 0);
    codes[i] = static_cast<uint8_t>(two >> bit % 8 & ((1 << bits) - 1));
  }
}

void TensorProduct::read(Cta &cta, const Descriptor &descriptor, unsigned rows,
                         Element type, bool transposed,
                         uint8_t (*out)[kRowBytes]) const {
  unsigned bytes = getBytes(type);
  forEachUnit(
      descriptor, rows, type, transposed,
      [&](uint32_t address, unsigned row, unsigned k) {
        if (address < kSharedBase || address + 16 > cta.sharedBytes)
          warp->fault(*op, lane, kIllegalAddress,
                      "an operand at " + toHex(address) +
                          " of shared memory is out of bounds: the block has " +
                          toHex(kSharedBase) + " to " + toHex(cta.sharedBytes));
        if (!transposed) {
          unsigned perByte = instruction.isFP4() ? 2 : 1;
          unpack(cta.shared + address, type, out[row] + k * perByte);
          return;
        }
        uint8_t codes[16];
        unpack(cta.shared + address, type, codes);
        for (unsigned i = 0; i < 16 / bytes; ++i)
          std::memcpy(out[row + i] + k * bytes, codes + i * bytes, bytes);
      });
}

/// A row of A: 32 bytes of 8 columns.
void TensorProduct::readTensor(TensorMemory &memory, unsigned at,
                               uint8_t *out) const {
  uint32_t words[8];
  for (unsigned i = 0; i < 8; ++i)
    words[i] = memory.word(at, aAt.column + i);
  for (unsigned unit = 0; unit < 2; ++unit)
    unpack(reinterpret_cast<const uint8_t *>(words + 4 * unit),
           instruction.typeA, out + unit * (instruction.isFP4() ? 32 : 16));
}

void TensorProduct::readFactors(TensorMemory &memory, unsigned at,
                                uint32_t column, unsigned first,
                                uint8_t *out) const {
  uint32_t word = memory.word(at, column);
  for (unsigned i = 0; i < instruction.factors; ++i)
    out[i] = static_cast<uint8_t>(word >> 8 * (first + i));
}

unsigned TensorProduct::columnsOfFactors(bool ofA) const {
  unsigned rows = ofA ? instruction.rowsOfBlock() : columnsOfD();
  return (rows + 31) / 32;
}

/// Lanes of D and of A in tensor memory: a block's 64 rows are 16 in each 32,
/// unless there is a pair of which the columns' second half is in the upper 64.
unsigned TensorProduct::laneOfRow(unsigned row) const {
  if (instruction.rowsOfBlock() == 64 && !instruction.isStacked())
    return d.lane + row % 16 + row / 16 * 32;
  return row;
}

uint8_t TensorProduct::lanesOfD() const {
  if (instruction.rowsOfBlock() == 64 && !instruction.isStacked())
    return d.lane ? 0xaa : 0x55;
  return kAllTensorLanes;
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

void TensorProduct::checkRegions() {
  bool quarters = instruction.rowsOfBlock() == 64 && !instruction.isStacked();
  for (const TensorAddress *at : {&d, &aAt, &factorsA, &factorsB}) {
    bool mayBe16 = quarters && (at == &d || at == &aAt);
    if (at->lane != 0 && !(mayBe16 && at->lane == 16))
      warp->fault(*op, lane, kIllegalAddress,
                  std::string("expected an address at lane 0 ") +
                      (mayBe16 ? "or 16 " : "") +
                      "of tensor memory, but got lane " +
                      std::to_string(at->lane));
  }
  for (Cta *cta : blocks) {
    requireAllocated(*warp, *op, lane, *cta, d.column, columnsOfD(), "D");
    if (aInTensor)
      requireAllocated(*warp, *op, lane, *cta, aAt.column, 8, "A");
    if (!instruction.isScaled())
      continue;
    requireAllocated(*warp, *op, lane, *cta, factorsA.column,
                     columnsOfFactors(true), "factors of A");
    requireAllocated(*warp, *op, lane, *cta, factorsB.column,
                     columnsOfFactors(false), "factors of B");
  }
}

void TensorProduct::announce(Checker &checker, Announcement done) {
  for (Cta *cta : blocks) {
    auto readShared = [&](uint32_t address, unsigned, unsigned) {
      if (address >= kSharedBase && address + 16 <= cta->sharedBytes)
        checker.accessLater(*warp, *op, lane, *cta, address, 16, kAsyncProxy,
                            done);
    };
    if (!aInTensor)
      forEachUnit(a, instruction.rowsOfBlock(), instruction.typeA,
                  instruction.transposeA, readShared);
    forEachUnit(b, instruction.columns / instruction.group, instruction.typeB,
                instruction.transposeB, readShared);
    auto use = [&](const TensorAddress &at, unsigned columns, uint8_t lanes,
                   TensorUse how) {
      checker.accessTensor(*warp, *op, lane, *cta, {at.column, columns, lanes},
                           how, done);
    };
    if (aInTensor)
      use(aAt, 8, lanesOfD(), TensorUse::Operand);
    if (instruction.isScaled()) {
      use(factorsA, columnsOfFactors(true), kAllTensorLanes,
          TensorUse::Factors);
      use(factorsB, columnsOfFactors(false), kAllTensorLanes,
          TensorUse::Factors);
    }
    use(d, columnsOfD(), lanesOfD(),
        fresh ? TensorUse::Result : TensorUse::Accumulator);
  }
}

//===- TensorProduct.h - A tcgen05.mma that was issued ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_TENSOR_TENSORPRODUCT_H
#define FP8_LIB_EMULATOR_TENSOR_TENSORPRODUCT_H

#include "InstructionDescriptor.h"
#include "TensorMemory.h"

namespace fp8emu {

struct TensorProduct {
  Warp *warp;
  const Op *op;
  Mask lane;
  TensorInstruction instruction;
  TensorBlocks blocks;
  Descriptor a{0}, b{0};
  bool aInTensor = false, fresh = false;
  TensorAddress d{0}, aAt{0}, factorsA{0}, factorsB{0};
  int shrink = 0;         /* D is taken times 2^-shrink */
  uint32_t skip[8] = {0}; /* lanes of D, of both blocks, that stay */

  void checkRegions();
  void announce(Checker &checker, Announcement done);
  void multiply();

private:
  unsigned columnsOfD() const {
    return instruction.columns / (instruction.isStacked() ? 2 : 1);
  }
  unsigned columnsOfFactors(bool ofA) const;
  unsigned laneOfRow(unsigned row) const;
  uint8_t lanesOfD() const;
  bool isPadded(Element type) const {
    return getBits(type) < 8 && !instruction.isFP4();
  }
  template <class F>
  void forEachUnit(const Descriptor &descriptor, unsigned rows, Element type,
                   bool transposed, F visit) const;
  void unpack(const uint8_t *unit, Element type, uint8_t *codes) const;
  void read(Cta &cta, const Descriptor &descriptor, unsigned rows, Element type,
            bool transposed, uint8_t (*out)[kRowBytes]) const;
  void readTensor(TensorMemory &memory, unsigned lane, uint8_t *out) const;
  void readFactors(TensorMemory &memory, unsigned lane, uint32_t column,
                   unsigned first, uint8_t *out) const;
  void multiplyBlock(Cta &cta, const uint32_t *skipped, BlockSums &sums,
                     const uint8_t (*columns)[kRowBytes]);
};
} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_TENSOR_TENSORPRODUCT_H

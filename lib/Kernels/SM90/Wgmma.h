//===- Wgmma.h - Warpgroup matrix multiply-accumulate -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM90_WGMMA_H
#define FP8_LIB_KERNELS_SM90_WGMMA_H

#include "../Blocks/Fragment.h"
#include "../Blocks/OperandTile.h"

namespace mlir::fp8::sm90 {

/// D (64 x cols, f32) (+)= A (64 x K) * B (cols x K)^T of a stage of the ring.
/// NVGPU's warpgroup ops cannot express it: they take B for row-major KxN.
class Wgmma {
public:
  Wgmma(KernelBuilder &b, int64_t cols, const OperandTile &aTile,
        const OperandTile &bTile);

  /// Whether the instruction multiplies elements of this type.
  static bool takes(Type type);

  /// The accumulator of one thread, cols / 2 registers:
  /// FragmentLayout::ofMatrices.
  LLVM::LLVMStructType getAccumulatorType() const { return accumulatorType; }
  int64_t getNumRegisters() const { return cols / 2; }
  Value getUndefined(KernelBuilder &b);
  Value getZeros(KernelBuilder &b);
  SmallVector<Value> getRegisters(KernelBuilder &b, Value accumulator) const;
  /// The accumulator of these registers.
  Value getAccumulator(KernelBuilder &b, ArrayRef<Value> registers) const;

  /// The low word of the descriptor of the matrix that lies at byte `address`
  /// (i32) of shared memory as `tile` says.
  static Value getDescriptor(KernelBuilder &b, const OperandTile &tile,
                             Value address);
  /// `descriptor` moved by `bytes`, a multiple of 16, the same for the warp.
  static Value advance(KernelBuilder &b, Value descriptor, Value bytes);
  static Value advance(KernelBuilder &b, Value descriptor, int64_t bytes);

  /// Multiplies one K block. `overwrite` ignores what the accumulator
  /// held.
  Value multiply(KernelBuilder &b, Value aDescriptor, Value bDescriptor,
                 Value accumulator, bool overwrite);
  /// One instruction of those, the `step`-th.
  Value multiplyStep(KernelBuilder &b, Value aDescriptor, Value bDescriptor,
                     Value accumulator, int64_t step, bool overwrite);
  /// Multiplies one K block whose A is in registers, four words an instruction.
  /// Ignores what the accumulator held where `accumulates` (i32) is 0.
  Value multiplyFragments(KernelBuilder &b, ArrayRef<Value> words,
                          Value bDescriptor, Value accumulator,
                          Value accumulates) const;
  int64_t getNumSteps() const {
    return aTile.getBlockK() / aTile.getInstructionK();
  }

private:
  int64_t cols;
  OperandTile aTile, bTile;
  LLVM::LLVMStructType accumulatorType;
};

/// What one wgmma multiplies: D (64 x cols, f32), A of `aType`, and B of
/// `bType`, whose columns rather than K are innermost if it is transposed (16
/// bits alone).
struct WgmmaInstruction {
  int64_t cols;
  Type aType, bType;
  bool transposedA = false, transposedB = false;

  /// K of an instruction, which takes 32 bytes of it.
  int64_t getK() const { return 256 / aType.getIntOrFloatBitWidth(); }
  LLVM::LLVMStructType getAccumulatorType() const;

  /// D += A B, or D = A B if it overwrites, of matrix descriptors (i64).
  Value multiply(KernelBuilder &b, Value aDescriptor, Value bDescriptor,
                 Value accumulator, bool overwrite) const;
  /// The same with A in registers: four words (i32) of a thread (PTX ISA,
  /// "Register Fragments and Shared Memory Matrix Layouts" of wgmma). No
  /// instruction of the NVVM dialect takes it so.
  Value multiply(KernelBuilder &b, ArrayRef<Value> aFragment, Value bDescriptor,
                 Value accumulator, bool overwrite) const;
  /// The same, which overwrites where `accumulates` (i32) is 0.
  Value multiply(KernelBuilder &b, ArrayRef<Value> aFragment, Value bDescriptor,
                 Value accumulator, Value accumulates) const;
};

/// Waits until at most `pending` groups of wgmma are in flight, and makes
/// `accumulators` results of the wait. The instruction names no registers
/// (PTX ISA, wgmma.wait_group), so without the tie LLVM may read the
/// accumulators above it.
SmallVector<Value> waitForAccumulators(KernelBuilder &b, int64_t pending,
                                       ValueRange accumulators);

} // namespace mlir::fp8::sm90

#endif // FP8_LIB_KERNELS_SM90_WGMMA_H

//===- Tcgen05.h - Tensor cores of the fifth generation ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_SM100_TCGEN05_H
#define FP8_LIB_KERNELS_SM100_TCGEN05_H

#include "../Blocks/Fragment.h"
#include "../Blocks/OperandTile.h"

namespace mlir::fp8::sm100 {

/// The descriptor (i64) of a matrix at byte `address` (i32) of shared memory,
/// swizzled in lines of `swizzle` bytes (PTX ISA, "Shared memory descriptor").
Value makeDescriptor(KernelBuilder &b, Value address, int64_t leadingOffset,
                     int64_t strideOffset, int64_t swizzle);
/// `descriptor` moved by a constant, a multiple of 16.
Value advanceBy(KernelBuilder &b, Value descriptor, int64_t bytes);

/// One instruction: D (128 x cols, f32, in tensor memory) (+)= A (128 x 32
/// bytes) * B (cols x 32 bytes)^T.
struct Tcgen05Instruction {
  Type a, b;
  /// Whether B has its columns innermost.
  bool transposedB;
  int64_t cols;
  /// The same of A's rows, in shared memory.
  bool transposedA = false;

  int64_t getK() const { return 256 / a.getIntOrFloatBitWidth(); }
  /// A is a descriptor (i64), or where it is in tensor memory (i32), as the
  /// sums are at `address` (i32); `accumulates` (i1) keeps what they were.
  void multiply(KernelBuilder &builder, Value address, Value aOperand,
                Value bDescriptor, Value accumulates) const;
};

/// D (128 x cols, f32, in tensor memory) (+)= A (128 x K) * B (cols x K)^T of a
/// stage of the ring (PTX ISA, "Tensorcore 5th Generation Family
/// Instructions"). One thread issues it.
class Tcgen05 {
public:
  /// `factorK` of K share a factor that is in tensor memory, 0 for none. Two
  /// `blocks` multiply together: each has half of the rows of either operand in
  /// its shared memory, and the sums of half of the rows.
  Tcgen05(const OperandTile &aTile, const OperandTile &bTile, int64_t cols,
          int64_t factorK, int64_t blocks)
      : aTile(aTile), bTile(bTile), cols(cols), blocks(blocks),
        factorK(factorK) {}

  /// Whether an instruction multiplies elements of this type.
  static bool takes(Type type);

  /// The descriptor (i64) of the matrix that lies at byte `address` (i32) of
  /// shared memory as `tile` says.
  static Value getDescriptor(KernelBuilder &b, const OperandTile &tile,
                             Value address);
  /// `descriptor` moved by `bytes` (i32), a multiple of 16.
  static Value advance(KernelBuilder &b, Value descriptor, Value bytes);

  /// The descriptor of atoms of factors, which are not swizzled.
  static Value getFactorDescriptor(KernelBuilder &b, Value address);
  /// Copies an atom of factors to four columns of tensor memory at `address`
  /// (i32), before the products that this thread issues next.
  /// Of two blocks each from its own shared memory.
  void copyFactors(KernelBuilder &b, Value address, Value descriptor) const;

  /// Where factors of A and of B are in tensor memory (i32), if there are any;
  /// and columns from four along K to the next four.
  struct Factors {
    Value a, b;
    int64_t stepA = 0, stepB = 0;
  };
  /// Multiplies one K block into the sums at `address` (i32) of tensor memory;
  /// `accumulates` (i1) keeps what they were.
  void multiply(KernelBuilder &b, Value address, Value aDescriptor,
                Value bDescriptor, Value accumulates, Factors factors) const;
  /// Has the products that this thread has issued so far, when they are done,
  /// arrive at a barrier, of two blocks at that of each.
  void commit(KernelBuilder &b, Value barrier) const;

private:
  NVVM::CTAGroupKind getGroup() const {
    return blocks == 2 ? NVVM::CTAGroupKind::CTA_2 : NVVM::CTAGroupKind::CTA_1;
  }
  /// The instruction descriptor of a part of a K block, whose factors begin
  /// with `factor` of four.
  int64_t getInstruction(int64_t factor) const;
  void multiplyScaled(KernelBuilder &b, Value sums, Value aDescriptor,
                      Value bDescriptor, Value accumulates, int64_t part,
                      Factors factors) const;

  OperandTile aTile, bTile;
  int64_t cols, blocks, factorK;
};

//===----------------------------------------------------------------------===//
// Tensor memory
//===----------------------------------------------------------------------===//

/// Columns of a warp's lanes, from a first one.
struct MemoryColumns {
  Value address;
  int64_t count;
};

/// Takes columns of the sums, `count` of each part, and waits until they are
/// there: register i of lane l is column i of the warp's lane l. Whole warps.
SmallVector<Value> loadColumns(KernelBuilder &b, ArrayRef<MemoryColumns> parts);

/// Writes columns of a warp's lanes, from `address` (i32) on: word i (i32) of
/// lane l is column i of the warp's lane l. With `waits` all that the warp has
/// written is there then.
void storeColumns(KernelBuilder &b, Value address, ArrayRef<Value> words,
                  bool waits);

/// What a thread has of `cols` columns then.
FragmentLayout getFragmentLayout(int64_t cols);

/// Orders what this thread has issued, or waited for, before the
/// synchronization that follows; and what it will, after the one before.
void fenceBeforeSync(KernelBuilder &b);
void fenceAfterSync(KernelBuilder &b);

} // namespace mlir::fp8::sm100

#endif // FP8_LIB_KERNELS_SM100_TCGEN05_H

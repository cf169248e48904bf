//===- TensorMemory.h - Tensor memory of a block ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_TENSOR_TENSORMEMORY_H
#define FP8_LIB_EMULATOR_TENSOR_TENSORMEMORY_H

#include "Check/Checker.h"

namespace fp8emu {

/// An address: the lane in the upper half, the column in the lower.
struct TensorAddress {
  explicit TensorAddress(uint32_t bits)
      : lane(bits >> 16), column(bits & 0xffff) {}
  uint32_t lane, column;
};

/// 128 lanes of 512 columns of 32 bits, which a block allocates by columns.
struct TensorMemory {
  uint32_t &word(unsigned lane, unsigned column) {
    return words[size_t{column} * kTensorLanes + lane];
  }
  /// The allocation that has all of these columns, or null.
  struct Allocation {
    uint32_t column, columns;
    const Op *op;
  };
  const Allocation *find(uint32_t column, uint32_t columns) const;
  /// Where so many columns are free in both, at a multiple of their number;
  /// -1 if nowhere.
  static int findFree(Cluster &cluster, const TensorMemory &a,
                      const TensorMemory &b, uint32_t columns);

  std::vector<uint32_t> words =
      std::vector<uint32_t>(size_t{kTensorLanes} * kTensorColumns, 0xffffffff);
  std::vector<Allocation> allocations;
  bool relinquished = false;
  uint32_t last = kTensorColumns; /* columns that were allocated last */
  /// A request, which both blocks of a pair make.
  struct Request {
    bool open = false, granted = false;
    uint32_t columns = 0, column = 0;
    const Warp *owner = nullptr;
  } request;
};

TensorMemory &getTensorMemory(Cta &cta);

/// The blocks that an instruction of this one is for: itself, or both of its
/// pair, the even one first. Throws Fault if there is no pair.
struct TensorBlocks {
  Cta *blocks[2];
  unsigned count;
  Cta **begin() { return blocks; }
  Cta **end() { return blocks + count; }
};
TensorBlocks getTensorBlocks(Warp &warp, const Op &op, Mask lane,
                             unsigned group);

/// Throws Fault unless the columns are allocated.
void requireAllocated(Warp &warp, const Op &op, Mask lanes, Cta &cta,
                      uint32_t column, uint32_t columns, const char *what);

/// Takes .cta_group::1 or ::2, the same in all of a kernel.
unsigned takeGroup(Decoder &decoder, Modifiers &modifiers);

/// An instruction that a thread's next tcgen05.commit waits for: its place in
/// the order of these, and what announces its end.
struct TensorIssue {
  uint64_t stream;
  Announcement done;
};
TensorIssue issueTensorWork(Warp &warp, unsigned lane);
/// What a thread has issued, also if nothing.
TensorIssue getTensorIssue(Warp &warp, unsigned lane);

/// Loads whose registers the statement needs take place.
void settleLoads(Warp &warp, const Op &op);

void decodeAllocation(Decoder &decoder, Modifiers &modifiers, Op &op,
                      std::string_view what);
void decodeTensorLoad(Decoder &decoder, Modifiers &modifiers, Op &op,
                      bool isLoad);
void decodeTensorWait(Decoder &decoder, Modifiers &modifiers, Op &op,
                      bool ofLoads);
void decodeTensorFill(Decoder &decoder, Modifiers &modifiers, Op &op);
void decodeTensorProduct(Decoder &decoder, Modifiers &modifiers, Op &op);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_TENSOR_TENSORMEMORY_H

//===- GroupTable.h - Where groups begin ------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_GROUPTABLE_H
#define FP8_LIB_KERNELS_BLOCKS_GROUPTABLE_H

#include "KernelBuilder.h"

namespace mlir::fp8 {

/// Ranges of rows, or of K, one after the other, whose bounds are in memory; or
/// each at the beginning of its own, whose counts are. A block reads them once,
/// to a table in shared memory: where each begins, or ends, and how many tiles
/// there are before it.
class GroupTable {
public:
  /// For so many groups, at `offset` bytes from `base`.
  GroupTable(KernelBuilder &b, int64_t groups, bool masked, Value base,
             int64_t offset)
      : b(b), groups(groups), masked(masked), base(base), offset(offset) {}

  static int64_t getBytes(int64_t groups) { return 2 * 4 * (groups + 1); }

  /// All threads of the block, of which `thread` is the number and `threads`
  /// how many there are, before any of them asks. A bound, or a count, beyond
  /// `extent` is taken for it. A range has a tile for every `tileExtent`.
  void build(Value bounds, Value extent, int64_t tileExtent, Value thread,
             int64_t threads);

  int64_t getNumGroups() const { return groups; }
  bool isMasked() const { return masked; }
  /// Where group `group` (i32) begins. It may be one more than there are unless
  /// they are masked: where the last one ends.
  Value getBegin(Value group) const {
    return masked ? b.i32(0) : load(group, 0);
  }
  /// Where it ends, and not before it begins.
  Value getEnd(Value group) const;
  /// How many tiles the groups before it have.
  Value getFirstTile(Value group) const { return load(group, 1); }
  Value getNumTiles() const { return getFirstTile(b.i32(groups)); }
  /// The group that has tile `tile`.
  Value find(Value tile) const;

private:
  Value getAddress(Value index, int64_t table) const;
  Value load(Value index, int64_t table) const;

  KernelBuilder &b;
  int64_t groups;
  bool masked;
  Value base;
  int64_t offset;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_GROUPTABLE_H

//===- TuningTable.h - Measured choices of configs --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_TUNINGTABLE_H
#define FP8_KERNELS_TUNINGTABLE_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "fp8/Kernels/KernelSpec.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {

/// The fastest configs that `fp8-tune` measured on GPUs of one chip, as
/// docs/Kernels.md describes the file. A table never changes what a program
/// computes.
class TuningTable {
public:
  explicit TuningTable(StringRef chip) : chip(chip) {}

  struct Entry {
    KernelConfigAttrInterface config;
    double microseconds = 0;
  };

  /// Reads a file, into `context`. Reports at `loc`, of any context, what is
  /// malformed as an error, with the file and the key. Leaves out entries that
  /// this compiler does not know, those of another chip for one, with a remark.
  /// Reads those that an earlier version wrote, with a warning.
  LogicalResult load(StringRef path, MLIRContext *context, Location loc);

  /// The entry of a kernel for `spec`; null for none, or if an extent is not
  /// known.
  const Entry *lookup(const KernelSpec &spec) const;

  /// Adds or replaces. The extents of `spec` are known.
  void insert(const KernelSpec &spec, Entry entry);

  /// What stands for the kernel in the table: its kind, and what describes it.
  static std::string describe(const KernelSpec &spec);

  /// What the entries were measured on, for readers.
  std::string device;

  void write(raw_ostream &os) const;

private:
  std::string chip;
  /// By what describes the kernel.
  llvm::StringMap<Entry> entries;
};

} // namespace mlir::fp8

#endif // FP8_KERNELS_TUNINGTABLE_H

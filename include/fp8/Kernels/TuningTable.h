//===- TuningTable.h - Measured choices of configs -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_TUNINGTABLE_H
#define FP8_KERNELS_TUNINGTABLE_H

#include "fp8/Kernels/MatmulSpec.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {

/// The fastest configs that `fp8-tune` measured, as docs/Kernels.md describes
/// the file. A table never changes what a program computes.
class TuningTable {
public:
  struct Entry {
    GemmConfigAttr config;
    double microseconds = 0;
  };

  /// Reads a file. Reports what is malformed through `emitError`, with the file
  /// and the key; entries that this compiler does not know, those of another
  /// target for one, are left out, with a remark through `emitRemark`.
  static FailureOr<TuningTable>
  load(StringRef path, MLIRContext *context,
       llvm::function_ref<InFlightDiagnostic()> emitError,
       llvm::function_ref<InFlightDiagnostic()> emitRemark);

  /// The entry of a matmul of these types, factors, epilogue and extents; null
  /// for none, or if an extent is not known.
  const Entry *lookup(const MatmulSpec &spec) const;

  /// Adds or replaces. The extents of `spec` are known.
  void insert(const MatmulSpec &spec, Entry entry);

  /// What stands for the matmul in the table.
  static std::string describe(const MatmulSpec &spec);

  /// What the entries were measured on, for readers.
  std::string device;

  void write(raw_ostream &os) const;

private:
  /// By what describes the matmul.
  llvm::StringMap<Entry> entries;
};

} // namespace mlir::fp8

#endif // FP8_KERNELS_TUNINGTABLE_H

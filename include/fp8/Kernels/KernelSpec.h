//===- KernelSpec.h - What kernels compute ----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_KERNELSPEC_H
#define FP8_KERNELS_KERNELSPEC_H

#include "mlir/IR/Value.h"

#include <memory>
#include <string>

namespace mlir::fp8 {

/// Everything about an operation that its kernel is made from. What kinds there
/// are, only those know who make specs and build kernels of them.
class KernelSpec {
public:
  virtual ~KernelSpec();

  /// What the kernel computes, one word, e.g. "matmul": with the architecture
  /// it names the generator.
  StringRef getKind() const { return kind; }

  /// Whether all extents are known that `describe` tells apart.
  virtual bool hasKnownExtents() const = 0;

  /// What kernels of equal speed have in common, extents included: the key of
  /// tuning tables. Without the kind.
  virtual std::string describe() const = 0;

protected:
  explicit KernelSpec(StringRef kind) : kind(kind) {}

private:
  StringRef kind;
};

/// What an operation is launched with: a kernel's arguments, in order.
struct KernelOperands {
  SmallVector<Value> ins, captures, outs;
};

} // namespace mlir::fp8

#endif // FP8_KERNELS_KERNELSPEC_H

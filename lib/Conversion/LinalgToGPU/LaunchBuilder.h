//===- LaunchBuilder.h - Launches of loops ----------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_LINALGTOGPU_LAUNCHBUILDER_H
#define FP8_LIB_CONVERSION_LINALGTOGPU_LAUNCHBUILDER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// Threads of a block: enough to hide latency.
inline constexpr int64_t kBlockSize = 256;
inline constexpr int64_t kWarpSize = 32;

/// Makes launches of kernels that are outlined into one gpu.module.
class LaunchBuilder {
public:
  explicit LaunchBuilder(RewriterBase &b) : b(b) {}

  struct Place {
    Value block, thread;
    /// Memory that the threads of a block have together.
    SmallVector<Value> shared;
  };
  /// A launch of so many blocks, in whose body the builder is left.
  Place open(Location loc, StringRef name, Value blocks,
             ArrayRef<MemRefType> shared = {});

  /// A launch with a thread for each element of `sizes`, in whose body the
  /// builder is left; returns the element's indices.
  SmallVector<Value> build(Location loc, StringRef name,
                           ArrayRef<OpFoldResult> sizes);

private:
  RewriterBase &b;
  unsigned numKernels = 0;
};

/// Arithmetic and control flow on indices.
class IndexBuilder {
public:
  IndexBuilder(RewriterBase &b, Location loc) : b(b), loc(loc) {}

  Value constant(int64_t value);
  Value get(OpFoldResult value);
  Value add(Value lhs, Value rhs);
  Value multiply(Value lhs, Value rhs);
  Value divide(Value lhs, Value rhs);
  Value isBelow(Value lhs, Value rhs);
  Value isAtMost(Value lhs, Value rhs);
  Value isZero(Value value);
  /// Calls what builds either branch.
  void branch(Value condition, llvm::function_ref<void()> ifSo,
              llvm::function_ref<void()> ifNot = nullptr);
  /// Calls what builds the body; returns what it carries at its end.
  SmallVector<Value>
  loop(Value from, Value to, Value step, ValueRange carried,
       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> inner);

private:
  RewriterBase &b;
  Location loc;
};

/// The indices of an element of `sizes` by its number.
SmallVector<Value> delinearize(OpBuilder &b, Location loc, Value index,
                               ArrayRef<Value> sizes);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_LINALGTOGPU_LAUNCHBUILDER_H

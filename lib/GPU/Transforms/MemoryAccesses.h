//===- MemoryAccesses.h - What an operation does with memory ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_GPU_TRANSFORMS_MEMORYACCESSES_H
#define FP8_LIB_GPU_TRANSFORMS_MEMORYACCESSES_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::fp8 {

/// What an operation does with memory, by where that begins. Only of modules
/// whose functions have no two arguments that share memory.
struct Accesses {
  llvm::SmallDenseSet<Value> reads, writes;
  bool isKnown = true;

  void add(const Accesses &other);
};

/// Whether a caller gives `value`. Arguments of loops and branches are no such
/// thing: one may be the same memory as another value.
bool isFunctionArgument(Value value);

Accesses findAccesses(Operation *op);

/// Whether those who do these may not change places.
bool conflict(const Accesses &a, const Accesses &b);

} // namespace mlir::fp8

#endif // FP8_LIB_GPU_TRANSFORMS_MEMORYACCESSES_H

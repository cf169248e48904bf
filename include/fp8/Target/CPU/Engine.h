//===- Engine.h - Compiling and running on this machine ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A module in the LLVM dialect becomes machine code for this very processor,
// in this process. Arithmetic stays what the IR says: no fast-math, no
// contraction of a multiplication and an addition, subnormal numbers kept.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TARGET_CPU_ENGINE_H
#define FP8_TARGET_CPU_ENGINE_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

#include <memory>

namespace mlir {
class ExecutionEngine;
class ModuleOp;
} // namespace mlir

namespace mlir::fp8 {

struct CPUEngineOptions {
  /// 0 to 3, as in -O3; for the optimizer and for code generation.
  unsigned optLevel = 3;
};

class CPUEngine {
public:
  /// Compiles `module`. What it calls but does not define is looked up in the
  /// process, which links the runtime (libfp8rt).
  static llvm::Expected<std::unique_ptr<CPUEngine>>
  create(ModuleOp module, const CPUEngineOptions &options = {});
  ~CPUEngine();

  /// A function that had the attribute `llvm.emit_c_interface`, behind one
  /// signature for all. Each element points to one argument, in order:
  ///
  /// - first, if there are several results or one memref, a pointer to a
  ///   struct of the results: scalars, and memref descriptors;
  /// - then the arguments: a pointer to the descriptor of a memref, the value
  ///   of a scalar;
  /// - last, if the only result is a scalar, the place of that result.
  ///
  /// Valid as long as the engine is.
  using Function = void (*)(void **arguments);
  llvm::Expected<Function> lookup(StringRef name) const;

private:
  explicit CPUEngine(std::unique_ptr<ExecutionEngine> engine);

  std::unique_ptr<ExecutionEngine> engine;
};

} // namespace mlir::fp8

#endif // FP8_TARGET_CPU_ENGINE_H

//===- Object.h - Object files for this machine -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TARGET_CPU_OBJECT_H
#define FP8_TARGET_CPU_OBJECT_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <string>

namespace llvm {
class Module;
} // namespace llvm

namespace mlir {
class ModuleOp;
}

namespace mlir::fp8 {

struct ObjectOptions {
  /// 0 to 3, as in -O3.
  unsigned optLevel = 3;
  /// As Processor.h has it.
  std::string cpu = "native";
  /// Changes the translated module before it is optimized: what is to be seen
  /// of the object.
  std::function<void(llvm::Module &)> addInterface;
  /// Told what begins: LLVM's translation, optimization, code generation.
  std::function<void(StringRef)> beginStep;
  /// LLVM IR as text, in place of an object.
  bool emitLLVM = false;
};

/// Compiles `module`, of the LLVM dialect, to a relocatable object for this
/// operating system. The object needs libfp8rt and libm; an error names a
/// function that these and the module lack.
llvm::Expected<std::string> emitObject(ModuleOp module,
                                       const ObjectOptions &options = {});

} // namespace mlir::fp8

#endif // FP8_TARGET_CPU_OBJECT_H

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

namespace llvm {
class raw_pwrite_stream;
}

namespace mlir {
class ModuleOp;
}

namespace mlir::fp8 {

/// Compiles `module`, of the LLVM dialect, to a relocatable object for this
/// machine at -O`optLevel` (0 to 3) and writes it to `os`. Functions that had
/// the attribute `llvm.emit_c_interface` are called as `_mlir_ciface_NAME`; the
/// object needs libfp8rt and libm.
llvm::Error emitObject(ModuleOp module, llvm::raw_pwrite_stream &os,
                       unsigned optLevel = 3);

} // namespace mlir::fp8

#endif // FP8_TARGET_CPU_OBJECT_H

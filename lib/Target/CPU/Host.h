//===- Host.h - The machine that programs are compiled for ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TARGET_CPU_HOST_H
#define FP8_LIB_TARGET_CPU_HOST_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/CodeGen.h"
#include "llvm/Support/Error.h"
#include <memory>

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir {
class ModuleOp;
}

namespace mlir::fp8 {

/// Makes LLVM's registry know this machine. Any number of threads may ask for
/// it at the same time.
void initializeHost();

/// The machine we run on, or another processor in its place, less what would
/// change results.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createHostMachine(unsigned optLevel,
                  std::optional<llvm::Reloc::Model> relocation = std::nullopt,
                  StringRef cpu = "native");

/// Checks that `module` holds nothing but the LLVM dialect and registers its
/// translation.
llvm::Error prepareTranslation(ModuleOp module);

/// The address of a symbol of this process or of the runtime, or null.
void *findSymbol(StringRef name);

/// Names the first function that neither `module` nor this process, which links
/// the runtime, defines. LLVM's JIT prints such names and returns another
/// error, and a linker would leave them to the user.
llvm::Error checkSymbols(const llvm::Module &module);

} // namespace mlir::fp8

#endif // FP8_LIB_TARGET_CPU_HOST_H

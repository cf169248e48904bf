//===- PTX.h - Kernels to PTX and machine code ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TARGET_NVPTX_PTX_H
#define FP8_TARGET_NVPTX_PTX_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include <string>

namespace mlir::fp8 {

struct PTXOptions {
  PTXOptions() = default;
  explicit PTXOptions(GPUTargetAttr target)
      : chip(target.getChip()), features(target.getFeatures()) {}

  /// As LLVM and ptxas call it.
  std::string chip;
  /// Features of LLVM: the version of PTX, as its default for a chip may be too
  /// old for what the chip can do.
  std::string features;
  unsigned optLevel = 3;
  /// Path of ptxas; if empty, it is that of the toolkit that CUDA_HOME,
  /// CUDA_PATH or CUDA_ROOT names; without such a variable, the one in PATH or
  /// in /usr/local/cuda (findPtxas).
  std::string ptxas;
};

/// Translates the kernels of `module`, in the LLVM dialect, to PTX. Errors are
/// emitted on the module.
FailureOr<std::string> emitPTX(gpu::GPUModuleOp module,
                               const PTXOptions &options);

/// What there is to say without it.
inline constexpr llvm::StringLiteral kNoPtxas =
    "expected ptxas in the CUDA toolkit of CUDA_HOME, in PATH or in "
    "/usr/local/cuda, but got none";

/// The ptxas to use if nobody names one, or an empty string.
std::string findPtxas();

/// Whether FP8_CUDA_DRIVER names the emulator of a GPU, libfp8emu, which runs
/// PTX only: kernels are embedded as that if nobody says otherwise.
bool isForEmulator();

/// What a ptxas says of itself, its release and its build; empty if it cannot
/// be run.
std::string getPtxasVersion(StringRef ptxas);

/// What ptxas is told, beside the files.
SmallVector<std::string> getPtxasFlags(const PTXOptions &options);

/// Assembles PTX to a cubin. `log` receives what ptxas -v says of registers,
/// spills and warnings. Errors go through `emitError`.
FailureOr<SmallVector<char>>
assemblePTX(StringRef ptx, const PTXOptions &options, std::string &log,
            llvm::function_ref<InFlightDiagnostic()> emitError);

/// Registers --kernels-to-ptx, --kernels-to-cubin and --kernels-to-json with
/// mlir-translate-like tools.
void registerKernelTranslations();

} // namespace mlir::fp8

#endif // FP8_TARGET_NVPTX_PTX_H

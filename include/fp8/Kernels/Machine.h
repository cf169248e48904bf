//===- Machine.h - Which GPU's numbers count ------------------ -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_MACHINE_H
#define FP8_KERNELS_MACHINE_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "llvm/Support/MemoryBuffer.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::fp8 {

/// The target of the machine that is meant where only a chip is known; null if
/// the compiler has none of it.
GPUTargetAttr getUsualTarget(StringRef chip, MLIRContext *context);

/// The target of a machine with `chip` that `machine` says: the name of one
/// that the compiler has; "device:" and the driver's name of a GPU, for which
/// the chip's usual machine stands in, with a remark, if nobody knows it; or
/// else a file. Reports what is wrong with it through `emitError`.
FailureOr<GPUTargetAttr>
lookupMachine(StringRef machine, StringRef chip, MLIRContext *context,
              llvm::function_ref<InFlightDiagnostic()> emitError,
              llvm::function_ref<InFlightDiagnostic()> emitRemark);

/// The same of the text of a file, which `name` calls.
FailureOr<GPUTargetAttr>
parseMachine(std::unique_ptr<llvm::MemoryBuffer> text, StringRef name,
             StringRef chip, MLIRContext *context,
             llvm::function_ref<InFlightDiagnostic()> emitError);

void registerMachines(DialectRegistry &registry);

} // namespace mlir::fp8

#endif // FP8_KERNELS_MACHINE_H

//===- OutputFile.h - Writing files whole or not at all ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_OUTPUTFILE_H
#define FP8_SUPPORT_OUTPUTFILE_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// Writes `contents` to the file at `path`, which holds all of it or what it
/// held before, or to the standard output for "-". Devices and pipes are
/// written to, not replaced. The error names the file.
llvm::Error writeOutputFile(StringRef path, StringRef contents,
                            bool isExecutable = false);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_OUTPUTFILE_H

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

/// What a file is to hold; "-" is the standard output.
struct OutputFile {
  StringRef path;
  StringRef contents;
  bool isExecutable = false;
  /// Whether nobody else may read or write it.
  bool isPrivate = false;
};

/// Writes files, each another one, that belong together: after an error all of
/// them are as they were before. Devices and pipes are written to, not
/// replaced, and before any file is. The error names the file.
llvm::Error writeOutputFiles(ArrayRef<OutputFile> files);

/// The same of one file.
llvm::Error writeOutputFile(StringRef path, StringRef contents);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_OUTPUTFILE_H

//===- SharedObject.h - Programs as shared objects --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PROGRAM_SHAREDOBJECT_H
#define FP8_PROGRAM_SHAREDOBJECT_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

#include <string>
#include <vector>

namespace mlir::fp8 {

struct LinkOptions {
  /// Path or name of the linker; if empty, ld.lld, ld.lld-22, or ld of PATH.
  std::string linker;
  /// Where the loader looks for libfp8rt beside the folder of the shared object
  /// and where it was when this was linked.
  std::vector<std::string> rpaths;
};

/// Links objects that `emitObject` made to a shared object that is to be called
/// `soname`, and returns the contents of the file.
llvm::Expected<std::string> linkSharedObject(ArrayRef<std::string> objects,
                                             StringRef soname,
                                             const LinkOptions &options = {});

} // namespace mlir::fp8

#endif // FP8_PROGRAM_SHAREDOBJECT_H

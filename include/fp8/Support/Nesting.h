//===- Nesting.h - How deep a source is nested ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's parser, and what walks an operation after it, call themselves for
// every region, list and type in another one: a source that is nested deep
// enough ends the process. It is looked at before.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_NESTING_H
#define FP8_SUPPORT_NESTING_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// Brackets of any kind in each other that a source may have.
inline constexpr unsigned kMaxNested = 256;

/// An error, with the line, if brackets of `source`, the text of `name`, are
/// nested deeper than `kMaxNested`. What is no text is not looked at.
llvm::Error checkNesting(StringRef source, StringRef name);

/// The same of each of a tool's `arguments` that is a file, for tools whose
/// main function is upstream's. Others are left to it.
llvm::Error checkNestingOfFiles(ArrayRef<const char *> arguments);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_NESTING_H

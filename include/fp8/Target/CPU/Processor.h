//===- Processor.h - Which processors a program runs on ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TARGET_CPU_PROCESSOR_H
#define FP8_TARGET_CPU_PROCESSOR_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::fp8 {

/// A processor in LLVM's words.
struct Processor {
  /// "native" is this machine's; other names are LLVM's, such as "x86-64-v3".
  static llvm::Expected<Processor> get(StringRef cpu);

  std::string name;
  /// What it has or lacks beside what its name says, as in "+avx2,-fma4".
  std::string features;
};

/// An error that says what this machine lacks of `processor`, if anything.
llvm::Error checkProcessor(const Processor &processor);

} // namespace mlir::fp8

#endif // FP8_TARGET_CPU_PROCESSOR_H

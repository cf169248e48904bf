//===- ProgressLine.h - What a tool is doing --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_PROGRESSLINE_H
#define FP8_SUPPORT_PROGRESSLINE_H

#include "mlir/Support/LLVM.h"

#include <chrono>
#include <memory>

namespace mlir::fp8 {

/// A line on a terminal that comes after a while, is written anew every second,
/// and is gone with this object: "fp8-compile: 12 s, one-shot-bufferize". A
/// thread writes it; any thread may say what it is to be. What others write
/// takes the place of the line.
class ProgressLine {
public:
  ProgressLine(raw_ostream &os, StringRef tool, std::chrono::milliseconds wait,
               std::chrono::milliseconds interval = std::chrono::seconds(1));
  ~ProgressLine();

  /// What the tool is doing from now on.
  void set(StringRef step);

private:
  struct Writer;
  std::unique_ptr<Writer> writer;
};

} // namespace mlir::fp8

#endif // FP8_SUPPORT_PROGRESSLINE_H

//===- Monitor.h - What a compilation is at ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For who waits for a compiler: a line that says what it is doing, and a table
// of what took how long.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_MONITOR_H
#define FP8_COMPILER_MONITOR_H

#include "fp8/Support/ProgressLine.h"
#include "mlir/Support/Timing.h"

#include <optional>

namespace mlir {
class PassManager;
}

namespace mlir::fp8 {

/// Of one compilation, from its creation to its end.
class Monitor {
public:
  /// With `timing`, the time of each step and each pass goes to the standard
  /// error in the end, as MLIR's -mlir-timing has it. The line is there where
  /// that is a terminal, after two seconds.
  Monitor(StringRef tool, bool timing);
  ~Monitor();

  /// Ends the step that the compilation was at.
  void beginStep(StringRef name);

  /// Passes are parts of the present step.
  void observe(PassManager &pm);

private:
  DefaultTimingManager timing;
  TimingScope all, step;
  std::optional<ProgressLine> line;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_MONITOR_H

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

#include <atomic>
#include <functional>
#include <mutex>
#include <optional>

namespace mlir {
class MLIRContext;
class PassManager;
} // namespace mlir

namespace mlir::fp8 {

/// Observes one compilation, from its creation to its end.
class Monitor {
public:
  /// With `timing`, the time of each step and each pass goes to the standard
  /// error in the end, as MLIR's -mlir-timing has it. The line is there where
  /// that is a terminal, after two seconds.
  Monitor(StringRef tool, bool timing);

  /// Says whether to go on.
  using Listener = std::function<bool(StringRef step)>;

  /// Tells `listener` of each step and each pass instead, one at a time, on the
  /// thread that does it. From the first that it wants stopped on no pass runs.
  explicit Monitor(Listener listener);

  ~Monitor();

  bool isStopped() const { return stopped; }

  /// Ends the step that the compilation was at.
  void beginStep(StringRef name);

  /// Passes are parts of the present step.
  void observe(PassManager &pm);

private:
  /// Tells the listener, if it has not stopped it yet.
  void tell(StringRef step);

  DefaultTimingManager timing;
  TimingScope all, step;
  std::optional<ProgressLine> line;
  Listener listener;
  std::mutex mutex;
  std::atomic<bool> stopped = false;
  /// Whose passes the listener is told of.
  MLIRContext *context = nullptr;
};

} // namespace mlir::fp8

#endif // FP8_COMPILER_MONITOR_H

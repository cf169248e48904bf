//===- Job.h - Work that may be interrupted ---------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Python runs signal handlers, that of Ctrl-C among them, on its main thread
// between operations of its own. Work that takes long is therefore done by
// another thread, which knows nothing of Python, while this one looks for
// signals. Who is interrupted leaves the work to itself: it is told to stop,
// and what it uses is kept until it has ended.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_JOB_H
#define FP8_PYTHON_JOB_H

#include <nanobind/nanobind.h>

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace fp8py {
namespace nb = nanobind;

class Job {
public:
  virtual ~Job() = default;

  /// Does the work, without the GIL.
  virtual void run() = 0;

  /// Lets a thread do `job` and waits for it. `tick`, if any, is called with
  /// the GIL every tenth of a second. Throws what a signal's handler or `tick`
  /// raises; `job` is then asked to stop, and destroyed with the GIL by a
  /// later call, or when the interpreter ends.
  static void wait(std::shared_ptr<Job> job,
                   const std::function<void()> &tick = {});

  /// Waits for all that was left to itself, for the end of the interpreter.
  /// Ends the process if that is interrupted.
  static void waitForAbandoned();

protected:
  std::atomic<bool> mustStop = false;

private:
  void begin();
  bool waitFor(int milliseconds);
  static void reap();

  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
};

/// Whether this thread is the one that gets Python's signals.
bool isMainThread();

} // namespace fp8py

#endif // FP8_PYTHON_JOB_H

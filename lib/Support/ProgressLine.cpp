//===- ProgressLine.cpp - What a tool is doing ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/ProgressLine.h"

#include "llvm/Support/raw_ostream.h"

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

using namespace mlir;
using namespace mlir::fp8;
using Clock = std::chrono::steady_clock;

struct ProgressLine::Writer {
  Writer(raw_ostream &os, StringRef tool, std::chrono::milliseconds wait,
         std::chrono::milliseconds interval)
      : os(os), tool(tool), wait(wait), interval(interval),
        thread([this] { run(); }) {}

  ~Writer() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      isDone = true;
    }
    changed.notify_one();
    thread.join();
  }

  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    auto isOver = [this] { return isDone; };
    if (changed.wait_for(lock, wait, isOver))
      return;
    do {
      auto seconds =
          std::chrono::duration_cast<std::chrono::seconds>(Clock::now() - start)
              .count();
      os << '\r' << tool << ": " << seconds << " s, " << step << kErase << '\r';
      os.flush();
    } while (!changed.wait_for(lock, interval, isOver));
    os << kErase;
    os.flush();
  }

  /// What is right of the cursor (ECMA-48, EL).
  static constexpr StringLiteral kErase = "\033[K";

  raw_ostream &os;
  std::string tool;
  std::chrono::milliseconds wait, interval;
  Clock::time_point start = Clock::now();
  std::mutex mutex;
  std::condition_variable changed;
  std::string step = "reading";
  bool isDone = false;
  /// Last: it uses the others.
  std::thread thread;
};

ProgressLine::ProgressLine(raw_ostream &os, StringRef tool,
                           std::chrono::milliseconds wait,
                           std::chrono::milliseconds interval)
    : writer(std::make_unique<Writer>(os, tool, wait, interval)) {}

ProgressLine::~ProgressLine() = default;

void ProgressLine::set(StringRef step) {
  std::lock_guard<std::mutex> lock(writer->mutex);
  writer->step = step;
}

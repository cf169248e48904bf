//===- Steps.cpp - Runs of a program over steps ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Steps.h"

#include <chrono>

using namespace mlir;
using namespace mlir::fp8;
using Clock = std::chrono::steady_clock;

llvm::Expected<std::vector<double>>
fp8::runSteps(Invocation &invocation, const StepOptions &options,
              Outputs &outputs, llvm::function_ref<llvm::Error()> endStep) {
  std::vector<double> runs;
  for (int64_t step = 0; step < options.count.value_or(1); ++step) {
    auto seconds = invocation.run(step, outputs);
    if (!seconds)
      return seconds.takeError();
    runs.push_back(*seconds);
    if ((step + 1) % options.microbatches != 0)
      continue;
    if (llvm::Error error = endStep())
      return error;
  }
  return runs;
}

llvm::Expected<std::vector<double>> fp8::measure(Invocation &invocation) {
  constexpr size_t minRuns = 5, maxRuns = 101;
  constexpr std::chrono::seconds budget(1);
  std::vector<double> runs;
  Clock::time_point start = Clock::now();
  while (runs.size() < minRuns ||
         (runs.size() < maxRuns && Clock::now() - start < budget)) {
    Outputs discarded(std::nullopt);
    auto seconds = invocation.run(/*step=*/0, discarded);
    if (!seconds)
      return seconds.takeError();
    runs.push_back(*seconds);
  }
  return runs;
}

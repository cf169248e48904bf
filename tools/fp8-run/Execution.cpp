//===- Execution.cpp - Run a compiled program -----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Execution.h"

#include "Invocation.h"
#include "Report.h"
#include "State.h"

#include <chrono>

using namespace mlir;
using namespace mlir::fp8;
using Clock = std::chrono::steady_clock;

static double getSecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Repeats a short program often and a long one a few times.
static llvm::Expected<std::vector<double>> measure(Invocation &invocation) {
  constexpr size_t minRuns = 5, maxRuns = 101;
  constexpr double budget = 1.0;
  std::vector<double> runs;
  Clock::time_point start = Clock::now();
  while (runs.size() < minRuns ||
         (runs.size() < maxRuns && getSecondsSince(start) < budget)) {
    Outputs discarded(std::nullopt);
    auto seconds = invocation.run(/*step=*/0, discarded);
    if (!seconds)
      return seconds.takeError();
    runs.push_back(*seconds);
  }
  return runs;
}

/// The seconds of each run.
static llvm::Expected<std::vector<double>> runSteps(Invocation &invocation,
                                                    const RunOptions &options,
                                                    Outputs &outputs,
                                                    State &state) {
  std::vector<double> runs;
  for (int64_t step = 0; step < options.steps.value_or(1); ++step) {
    auto seconds = invocation.run(step, outputs);
    if (!seconds)
      return seconds.takeError();
    runs.push_back(*seconds);
    if ((step + 1) % options.microbatches != 0)
      continue;
    if (llvm::Error error = state.endStep())
      return error;
  }
  return runs;
}

/// To a file, or as a summary.
static llvm::Error writeOutputs(const Outputs &outputs,
                                const RunOptions &options) {
  if (options.quiet)
    return llvm::Error::success();
  if (!options.outputs.empty())
    return writeTensors(outputs.getTensors(), options.outputs);
  for (const HostTensor &output : outputs.getTensors())
    printSummary(output, llvm::outs());
  return llvm::Error::success();
}

llvm::Expected<Outputs> mlir::fp8::execute(const Executable &executable,
                                           ArrayRef<HostTensor> arguments,
                                           const RunOptions &options) {
  auto state = State::create(executable, options);
  if (!state)
    return state.takeError();
  std::unique_ptr<Device> device;
  if (executable.isOnGPU) {
    auto created = Device::create();
    if (!created)
      return created.takeError();
    device = std::move(*created);
    if (llvm::Error error = state->moveTo(*device))
      return error;
  }

  Invocation invocation(executable.signature, arguments, executable.function,
                        state->getRows(), device.get());
  Outputs outputs(options.steps);
  auto runs = runSteps(invocation, options, outputs, *state);
  if (!runs)
    return runs.takeError();
  if (llvm::Error error = writeOutputs(outputs, options))
    return error;
  if (llvm::Error error = state->moveToHost())
    return error;
  // Last of what is written: the state before is needed until all else is.
  if (!options.stateOut.empty())
    if (llvm::Error error = state->save(options.stateOut))
      return error;
  if (options.pipeline.stats) {
    printStats(executable.statsSlots, llvm::outs());
    if (llvm::Error error = state->print(llvm::outs()))
      return error;
  }
  if (!options.time)
    return outputs;
  // Steps are measured as they were; a single run says little.
  if (!options.steps)
    runs = measure(invocation);
  if (!runs)
    return runs.takeError();
  printTimes(executable.making, executable.seconds, std::move(*runs),
             llvm::outs());
  return outputs;
}

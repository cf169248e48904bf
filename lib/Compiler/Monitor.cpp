//===- Monitor.cpp - What a compilation is at -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Monitor.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {
struct PassNames : PassInstrumentation {
  explicit PassNames(ProgressLine &line) : line(line) {}

  void runBeforePass(Pass *pass, Operation *) override {
    // What runs passes on nested operations is a pass without a name.
    if (!pass->getArgument().empty())
      line.set(pass->getArgument());
  }

  ProgressLine &line;
};
} // namespace

Monitor::Monitor(StringRef tool, bool isTiming) {
  timing.setEnabled(isTiming);
  all = timing.getRootScope();
  if (llvm::sys::Process::StandardErrIsDisplayed())
    line.emplace(llvm::errs(), tool, std::chrono::seconds(2));
}

Monitor::Monitor(Listener listener) : listener(std::move(listener)) {}

Monitor::~Monitor() {
  if (context)
    context->registerActionHandler(nullptr);
  // Before the table, which its destructor prints.
  line.reset();
}

void Monitor::beginStep(StringRef name) {
  step.stop();
  step = all.nest(name);
  if (line)
    line->set(name);
  tell(name);
}

void Monitor::tell(StringRef step) {
  if (!listener)
    return;
  std::lock_guard<std::mutex> lock(mutex);
  if (!stopped && !listener(step))
    stopped = true;
}

void Monitor::observe(PassManager &pm) {
  pm.enableTiming(step);
  if (line)
    pm.addInstrumentation(std::make_unique<PassNames>(*line));
  if (!listener)
    return;
  // An instrumentation could not keep a pass from running.
  context = pm.getContext();
  context->registerActionHandler(
      [this](function_ref<void()> run, const tracing::Action &action) {
        if (auto *execution = dyn_cast<PassExecutionAction>(&action)) {
          StringRef name = execution->getPass().getArgument();
          if (!name.empty())
            tell(name);
          if (stopped)
            return;
        }
        run();
      });
}

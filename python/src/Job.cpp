//===- Job.cpp - Work that may be interrupted -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Job.h"

#include "Arrays.h"

#include <chrono>
#include <cstdlib>
#include <vector>

using namespace fp8py;

/// Jobs that were left to themselves. Never destroyed: a thread may use it
/// until the process ends.
static std::vector<std::shared_ptr<Job>> &getAbandoned() {
  static auto &abandoned = *new std::vector<std::shared_ptr<Job>>;
  return abandoned;
}

void Job::begin() {
  thread = std::thread([this] {
    run();
    std::lock_guard<std::mutex> lock(mutex);
    isDone = true;
    changed.notify_all();
  });
}

bool Job::waitFor(int milliseconds) {
  {
    nb::gil_scoped_release release;
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, std::chrono::milliseconds(milliseconds),
                     [&] { return isDone; });
    if (!isDone)
      return false;
  }
  if (thread.joinable())
    thread.join();
  return true;
}

void Job::reap() {
  auto &abandoned = getAbandoned();
  for (size_t i = abandoned.size(); i-- > 0;)
    if (abandoned[i]->waitFor(0)) {
      // Destroying runs Python, which may come here again.
      std::shared_ptr<Job> job = std::move(abandoned[i]);
      abandoned.erase(abandoned.begin() + i);
      i = std::min(i, abandoned.size());
    }
}

void Job::wait(std::shared_ptr<Job> job, const std::function<void()> &tick) {
  reap();
  job->begin();
  try {
    while (!job->waitFor(100)) {
      if (PyErr_CheckSignals() != 0)
        throw nb::python_error();
      if (tick)
        tick();
    }
  } catch (...) {
    job->mustStop = true;
    getAbandoned().push_back(std::move(job));
    throw;
  }
}

void Job::waitForAbandoned() {
  while (!getAbandoned().empty()) {
    std::shared_ptr<Job> job = getAbandoned().back();
    // Whoever presses Ctrl-C again wants out; a process whose libraries end
    // while a thread is in them may do anything.
    while (!job->waitFor(100))
      if (PyErr_CheckSignals() != 0)
        std::_Exit(130);
    reap();
  }
}

bool fp8py::isMainThread() {
  static KeptAttribute threading("threading");
  return threading.get().attr("get_ident")().equal(
      threading.get().attr("main_thread")().attr("ident"));
}

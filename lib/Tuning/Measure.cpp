//===- Measure.cpp - Times of kernels -------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Measure.h"

#include "Problem.h"
#include "fp8/Support/Runtime.h"

#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace mlir::fp8;

/// What a sample lasts at least, so that the time between two events is not
/// that of the host.
static constexpr double kSampleMilliseconds = 2;
static constexpr int64_t kMaxLaunches = 1000;
/// One that needs this many times the best's time at first is not measured
/// further.
static constexpr double kHopeless = 1.5;

namespace {
/// A candidate on every set of arguments in turn.
struct Contender {
  Contender() = default;
  Contender(const Contender &) = delete;
  ~Contender() { fp8rt_kernel_destroy(kernel); }

  fp8rt_kernel *kernel = nullptr;
  Problem *problem = nullptr;
  SmallVector<void *> workspaces;
  int64_t repeats = 0;
  /// The time of the first launches.
  double estimate = 0;
  SmallVector<double> microseconds;

  llvm::Error run(int64_t count, GPU &gpu) {
    ArrayRef<Problem::Arguments> sets = problem->getSets();
    for (int64_t i = 0; i < count; ++i)
      if (auto error = makeError(
              fp8rt_kernel_launch(kernel, sets[i % sets.size()].data(),
                                  problem->getCaptures().data(),
                                  workspaces.data(), gpu.getStream())))
        return error;
    return llvm::Error::success();
  }

  /// Once as warm-up, then to learn how many launches make a sample.
  llvm::Error prepare(GPU &gpu) {
    int64_t sets = problem->getSets().size();
    if (auto error = run(sets, gpu))
      return error;
    auto time = gpu.time([&] { return run(sets, gpu); });
    if (!time)
      return time.takeError();
    estimate = *time * 1000 / sets;
    double each = std::max(*time / sets, kSampleMilliseconds / kMaxLaunches);
    repeats = std::max<int64_t>(sets, kSampleMilliseconds / each);
    return llvm::Error::success();
  }

  llvm::Error sample(GPU &gpu) {
    auto time = gpu.time([&] { return run(repeats, gpu); });
    if (!time)
      return time.takeError();
    microseconds.push_back(*time * 1000 / repeats);
    return llvm::Error::success();
  }

  double getMedian() {
    if (microseconds.empty())
      return estimate;
    auto *middle = microseconds.begin() + microseconds.size() / 2;
    std::nth_element(microseconds.begin(), middle, microseconds.end());
    return *middle;
  }
};
} // namespace

static llvm::Error bind(Contender &contender, const Candidate &candidate,
                        Problem &problem, fp8rt_module module) {
  fp8rt_function function;
  if (auto error = makeError(
          fp8rt_module_get_function(module, candidate.name.c_str(), &function)))
    return error;
  if (auto error = makeError(
          fp8rt_kernel_create(function, candidate.launch.data(),
                              candidate.launch.size(), &contender.kernel)))
    return error;
  auto workspaces = problem.getWorkspaces(contender.kernel);
  if (!workspaces)
    return workspaces.takeError();
  contender.workspaces.assign(workspaces->begin(), workspaces->end());
  contender.problem = &problem;
  return llvm::Error::success();
}

llvm::Expected<SmallVector<double>> fp8::measure(const TunedKernel &tuned,
                                                 const Candidates &candidates,
                                                 int64_t rounds, GPU &gpu) {
  fp8rt_module module;
  if (auto error =
          makeError(fp8rt_module_load(GPU::kDevice, candidates.code.data(),
                                      candidates.code.size(), &module)))
    return error;
  llvm::scope_exit unload([&] { fp8rt_module_unload(module); });
  auto problem = Problem::create(tuned, gpu);
  if (!problem)
    return problem.takeError();
  std::vector<Contender> contenders(candidates.list.size());
  for (auto [contender, candidate] :
       llvm::zip_equal(contenders, candidates.list)) {
    if (auto error = bind(contender, candidate, **problem, module))
      return error;
    if (auto error = contender.prepare(gpu))
      return error;
  }
  double best = llvm::min_element(contenders, [](auto &a, auto &b) {
                  return a.estimate < b.estimate;
                })->estimate;
  for (int64_t round = 0; round < rounds; ++round)
    for (Contender &contender : contenders)
      if (contender.estimate <= kHopeless * best)
        if (auto error = contender.sample(gpu))
          return error;
  SmallVector<double> medians;
  for (Contender &contender : contenders)
    medians.push_back(contender.getMedian());
  return medians;
}

//===- Report.cpp - What fp8-run prints -----------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Report.h"

#include "StateContents.h"

#include "fp8/Runtime/Stats.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatAdapters.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

using namespace mlir;
using namespace mlir::fp8;

void mlir::fp8::printSummary(const HostTensor &tensor, llvm::raw_ostream &os) {
  os << tensor.name << ": " << describe(tensor.dtype, tensor.shape);
  int64_t count = tensor.getNumElements();
  double minimum = std::numeric_limits<double>::infinity();
  double maximum = -minimum;
  int64_t numNaNs = 0;
  for (int64_t i = 0; i < count; ++i) {
    double value = getElement(tensor, i);
    if (std::isnan(value))
      ++numNaNs;
    minimum = std::fmin(minimum, value);
    maximum = std::fmax(maximum, value);
  }
  if (numNaNs < count)
    os << llvm::format(" min %.6g max %.6g", minimum, maximum);
  if (numNaNs > 0)
    os << " NaNs " << numNaNs;
  if (count > 0) {
    constexpr int64_t shown = 4;
    os << " values";
    for (int64_t i = 0; i < std::min(count, shown); ++i)
      os << llvm::format(" %.6g", getElement(tensor, i));
    if (count > shown)
      os << " ...";
  }
  os << '\n';
}

void mlir::fp8::printDifference(const Difference &difference,
                                llvm::raw_ostream &os) {
  os << difference.name
     << llvm::format(": largest difference %.3g of %.6g (%.3g), %lld of %lld "
                     "elements differ\n",
                     difference.largest, difference.magnitude,
                     difference.getShare(),
                     static_cast<long long>(difference.numDifferent),
                     static_cast<long long>(difference.count));
}

llvm::Error mlir::fp8::printState(fp8rt_state state, llvm::raw_ostream &os) {
  auto contents = StateContents::read(state);
  if (!contents)
    return contents.takeError();
  printSlots(*contents,
             llvm::to_vector(llvm::seq<size_t>(contents->slots.size())), os);
  return llvm::Error::success();
}

void mlir::fp8::printTimes(StringRef making, double seconds,
                           std::vector<double> runs, llvm::raw_ostream &os) {
  os << making << llvm::format(": %.1f ms\n", seconds * 1e3);
  llvm::sort(runs);
  os << llvm::format(
      "run: min %.4g ms, median %.4g ms, max %.4g ms (%zu runs)\n",
      runs.front() * 1e3, runs[runs.size() / 2] * 1e3, runs.back() * 1e3,
      runs.size());
}

namespace {
/// All entries of one name.
struct ProfiledKernel {
  StringRef name;
  size_t count = 0;
  double milliseconds = 0, bytes = 0, flops = 0;
};
} // namespace

static std::vector<ProfiledKernel> sumUp(ArrayRef<ProfileEntry> entries) {
  llvm::MapVector<StringRef, ProfiledKernel> kernels;
  for (const ProfileEntry &entry : entries) {
    ProfiledKernel &kernel = kernels[entry.name];
    kernel.name = entry.name;
    ++kernel.count;
    kernel.milliseconds += entry.durationMs;
    kernel.bytes += entry.bytes;
    kernel.flops += entry.flops;
  }
  std::vector<ProfiledKernel> sorted;
  for (auto &[name, kernel] : kernels)
    sorted.push_back(kernel);
  llvm::sort(sorted, [](const ProfiledKernel &a, const ProfiledKernel &b) {
    return std::tie(b.milliseconds, a.name) < std::tie(a.milliseconds, b.name);
  });
  return sorted;
}

void mlir::fp8::printProfile(ArrayRef<ProfileEntry> entries, double copyRate,
                             llvm::raw_ostream &os) {
  std::vector<ProfiledKernel> kernels = sumUp(entries);
  ProfiledKernel all{"all"};
  size_t width = StringRef("kernel").size();
  for (const ProfiledKernel &kernel : kernels) {
    width = std::max(width, kernel.name.size());
    all.count += kernel.count;
    all.milliseconds += kernel.milliseconds;
  }
  auto printRow = [&](StringRef name,
                      std::initializer_list<std::string> cells) {
    os << llvm::left_justify(name, width);
    for (const std::string &cell : cells)
      os << "  " << llvm::right_justify(cell, 9);
    os << '\n';
  };
  auto print = [&](const ProfiledKernel &kernel) {
    // Events of a fake clock, or of what is too short for them.
    double seconds = kernel.milliseconds * 1e-3;
    auto format = [](bool isKnown, const char *text, double value) {
      return isKnown && std::isfinite(value) ? llvm::formatv(text, value).str()
                                             : std::string("-");
    };
    bool moves = kernel.bytes != 0;
    printRow(
        kernel.name,
        {std::to_string(kernel.count),
         format(true, "{0:f2}", kernel.milliseconds * 1e3 / kernel.count),
         format(true, "{0:f1}", 100 * kernel.milliseconds / all.milliseconds),
         format(moves, "{0:f1}", kernel.bytes / seconds * 1e-9),
         format(moves, "{0:f3}", kernel.bytes / seconds / copyRate),
         format(kernel.flops != 0, "{0:f1}", kernel.flops / seconds * 1e-12)});
  };
  printRow("kernel",
           {"count", "mean us", "share %", "GB/s", "of a copy", "TFLOP/s"});
  for (const ProfiledKernel &kernel : kernels)
    print(kernel);
  if (!kernels.empty())
    print(all);
  os << llvm::formatv("a copy within the device: {0:f1} GB/s\n",
                      copyRate * 1e-9);
}

void mlir::fp8::printStats(ArrayRef<std::string> names, llvm::raw_ostream &os) {
  if (names.empty()) {
    os << "no tensor is quantized\n";
    return;
  }
  size_t width = StringRef("tensor").size();
  for (StringRef name : names)
    width = std::max(width, name.size());
  auto printRow = [&](StringRef name, StringRef amax, StringRef underflow,
                      StringRef saturation, StringRef sqnr) {
    os << llvm::left_justify(name, width);
    for (StringRef cell : {amax, underflow, saturation, sqnr})
      os << "  " << llvm::right_justify(cell, 12);
    os << '\n';
  };
  printRow("tensor", "amax", "underflow %", "saturation %", "SQNR dB");
  for (auto [slot, text] : llvm::enumerate(names)) {
    fp8rt_stats stats;
    fp8rt_stats_get(slot, &stats);
    // A tensor in a branch that was not taken.
    if (stats.calls == 0) {
      printRow(text, "-", "-", "-", "-");
      continue;
    }
    double count = std::max(stats.count, 1.0);
    std::string sqnr = "inf";
    if (stats.noise != 0)
      sqnr =
          llvm::formatv("{0:f2}", 10 * std::log10(stats.signal / stats.noise));
    std::string amax;
    llvm::raw_string_ostream(amax) << llvm::format("%.6g", stats.amax);
    printRow(text, amax,
             llvm::formatv("{0:f3}", 100 * stats.underflow / count).str(),
             llvm::formatv("{0:f3}", 100 * stats.saturated / count).str(),
             sqnr);
  }
}

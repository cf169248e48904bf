//===- FusionReport.cpp - What kernels move, and why ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionReport.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

using Kernel = FusionReport::Kernel;
using Function = FusionReport::Function;

//===----------------------------------------------------------------------===//
// Sums
//===----------------------------------------------------------------------===//

/// Nothing if one of them is not known.
template <typename Range, typename GetNumber>
static std::optional<double> sumUp(const Range &range, GetNumber getNumber) {
  double sum = 0;
  for (const auto &element : range) {
    std::optional<double> number = getNumber(element);
    if (!number)
      return std::nullopt;
    sum += *number;
  }
  return sum;
}

static std::optional<double>
sumBytes(const std::vector<FusionReport::Tensor> &tensors) {
  return sumUp(tensors, [](const auto &tensor) { return tensor.bytes; });
}

std::optional<double> Kernel::getRead() const { return sumBytes(reads); }
std::optional<double> Kernel::getWritten() const { return sumBytes(writes); }

std::optional<double> Kernel::getBytes() const {
  std::optional<double> read = getRead(), written = getWritten();
  return read && written ? std::optional(*read + *written) : std::nullopt;
}

std::optional<double> Function::getBytes() const {
  return sumUp(kernels, [](const Kernel &kernel) { return kernel.getBytes(); });
}

std::optional<double> Function::getTime() const {
  return sumUp(kernels, [](const Kernel &kernel) { return kernel.floor; });
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string format(std::optional<double> number, double unit,
                          unsigned digits) {
  if (!number)
    return "-";
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format("%.*f", digits, *number / unit);
  return text;
}

static std::string formatBytes(std::optional<double> bytes) {
  return format(bytes, 1e6, 2);
}

static std::string joinTypes(const std::vector<FusionReport::Tensor> &tensors) {
  return llvm::join(
      llvm::map_range(tensors, [](const auto &tensor) { return tensor.type; }),
      ", ");
}

static std::string formatNumbers(const std::vector<size_t> &numbers) {
  return llvm::join(
      llvm::map_range(
          numbers, [](size_t number) { return "#" + std::to_string(number); }),
      ", ");
}

static void printSums(raw_ostream &os, const Function &function) {
  std::optional<double> bytes = function.getBytes(), time = function.getTime();
  auto divide = [](std::optional<double> sum, std::optional<double> floor) {
    return sum && floor && *floor > 0 ? std::optional(*sum / *floor)
                                      : std::nullopt;
  };
  auto printRow = [&](StringRef name, std::string bytes, std::string time) {
    os << llvm::left_justify(name, 24) << ' ' << llvm::right_justify(bytes, 9);
    if (!time.empty())
      os << ' ' << llvm::right_justify(time, 9);
    os << '\n';
  };
  size_t numKernels = function.kernels.size();
  printRow("@" + function.name, "MB", "us");
  printRow(std::to_string(numKernels) +
               (numKernels == 1 ? " kernel" : " kernels"),
           formatBytes(bytes), format(time, 1, 1));
  printRow("floor", formatBytes(function.floorBytes),
           format(function.floorTime, 1, 1));
  printRow("kernels / floor", format(divide(bytes, function.floorBytes), 1, 2),
           format(divide(time, function.floorTime), 1, 2));
  printRow("memory at most", formatBytes(function.peakMemory), "");
  os << '\n';
}

static void printKernels(raw_ostream &os, const Function &function) {
  size_t width = StringRef("kind").size();
  for (const Kernel &kernel : function.kernels)
    width = std::max(width, kernel.kind.size());
  auto printRow = [&](StringRef number, StringRef kind,
                      ArrayRef<std::string> cells, StringRef what) {
    os << llvm::right_justify(number, 4) << "  "
       << llvm::left_justify(kind, width);
    for (const std::string &cell : cells)
      os << "  " << llvm::right_justify(cell, 9);
    os << "  " << what << '\n';
  };
  printRow("#", "kind", {"read MB", "write MB", "GFLOP", "floor us"},
           "what it computes");
  for (auto [i, kernel] : llvm::enumerate(function.kernels)) {
    printRow(std::to_string(i + 1), kernel.kind,
             {formatBytes(kernel.getRead()), formatBytes(kernel.getWritten()),
              kernel.flops > 0 ? format(kernel.flops, 1e9, 2) : "",
              format(kernel.floor, 1, 1)},
             kernel.what);
    if (!kernel.getBytes())
      os << "        reads " << joinTypes(kernel.reads) << ", writes "
         << joinTypes(kernel.writes) << '\n';
    for (const std::string &note : kernel.notes)
      os << "        " << note << '\n';
  }
}

static void printRefusals(raw_ostream &os, const Function &function) {
  if (function.refusals.empty())
    return;
  os << "\nnot one kernel, and what one would save:\n";
  os << llvm::right_justify("MB", 9) << llvm::right_justify("us", 9) << '\n';
  for (const FusionReport::Refusal &refusal : function.refusals) {
    os << llvm::right_justify(formatBytes(refusal.savedBytes), 9)
       << llvm::right_justify(format(refusal.savedTime, 1, 1), 9) << "  #"
       << refusal.first << (refusal.flows.empty() ? ", #" : " -> #")
       << refusal.second;
    if (!refusal.flows.empty())
      os << " through " << llvm::join(refusal.flows, ", ");
    if (!refusal.shared.empty())
      os << (refusal.flows.empty() ? " both read " : ", both read ")
         << llvm::join(refusal.shared, ", ");
    os << ": " << refusal.reason << '\n';
  }
}

void FusionReport::printText(raw_ostream &os) const {
  os << "Kernels for " << chip << "; MB are 10^6 bytes. ";
  if (memoryPeak > 0)
    os << "Floors: " << format(memoryPeak, 1, 0) << " GB/s, "
       << format(peak, 1, 0) << " TFLOP/s in 8 bits, "
       << format(launchTime, 1, 1) << " us a kernel\n";
  else
    os << "No floors, for the target's peaks are not known\n";
  for (const Function &function : functions) {
    os << '\n';
    printSums(os, function);
    printKernels(os, function);
    printRefusals(os, function);
    os << "\nread again only to be quantized:";
    if (function.repeated.empty())
      os << " none\n";
    else
      os << '\n';
    for (const Repeated &repeated : function.repeated)
      os << "  " << repeated.tensor << ", " << repeated.type.type << ", by "
         << formatNumbers(repeated.quantizers) << " of "
         << formatNumbers(repeated.readers) << '\n';
  }
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

namespace mlir::fp8 {
// Found by llvm::json, which knows vectors and numbers that may be missing.

static llvm::json::Value toJSON(const FusionReport::Tensor &tensor) {
  return llvm::json::Object{{"type", tensor.type}, {"bytes", tensor.bytes}};
}

static llvm::json::Value toJSON(const FusionReport::Kernel &kernel) {
  return llvm::json::Object{{"kind", kernel.kind},
                            {"what", kernel.what},
                            {"symbol", kernel.symbol},
                            {"location", kernel.location},
                            {"reads", llvm::json::Array(kernel.reads)},
                            {"writes", llvm::json::Array(kernel.writes)},
                            {"read_bytes", kernel.getRead()},
                            {"written_bytes", kernel.getWritten()},
                            {"flops", kernel.flops},
                            {"floor_us", kernel.floor},
                            {"notes", llvm::json::Array(kernel.notes)}};
}

static llvm::json::Value toJSON(const FusionReport::Refusal &refusal) {
  return llvm::json::Object{{"first", refusal.first},
                            {"second", refusal.second},
                            {"flows", llvm::json::Array(refusal.flows)},
                            {"shared", llvm::json::Array(refusal.shared)},
                            {"saved_bytes", refusal.savedBytes},
                            {"saved_us", refusal.savedTime},
                            {"reason", refusal.reason}};
}

static llvm::json::Value toJSON(const FusionReport::Repeated &repeated) {
  return llvm::json::Object{
      {"tensor", repeated.tensor},
      {"type", repeated.type.type},
      {"bytes", repeated.type.bytes},
      {"readers", llvm::json::Array(repeated.readers)},
      {"quantizers", llvm::json::Array(repeated.quantizers)}};
}

static llvm::json::Value toJSON(const FusionReport::Function &function) {
  return llvm::json::Object{
      {"name", function.name},
      {"bytes", function.getBytes()},
      {"time_us", function.getTime()},
      {"floor_bytes", function.floorBytes},
      {"floor_us", function.floorTime},
      {"peak_memory_bytes", function.peakMemory},
      {"kernels", llvm::json::Array(function.kernels)},
      {"not_fused", llvm::json::Array(function.refusals)},
      {"read_again", llvm::json::Array(function.repeated)}};
}
} // namespace mlir::fp8

void FusionReport::printJSON(raw_ostream &os) const {
  auto known = [](double number) {
    return number > 0 ? std::optional(number) : std::nullopt;
  };
  llvm::json::Object target{{"chip", chip},
                            {"memory_gbps", known(memoryPeak)},
                            {"tflops", known(peak)},
                            {"launch_us", known(launchTime)}};
  os << llvm::formatv("{0:2}\n",
                      llvm::json::Value(llvm::json::Object{
                          {"version", 1},
                          {"target", std::move(target)},
                          {"functions", llvm::json::Array(functions)}}));
}

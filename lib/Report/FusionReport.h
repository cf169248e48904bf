//===- FusionReport.h - What kernels move, and why --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_REPORT_FUSIONREPORT_H
#define FP8_LIB_REPORT_FUSIONREPORT_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>
#include <string>
#include <vector>

namespace mlir::fp8 {

/// The report that docs/FusionReport.md describes. Bytes, and times in
/// microseconds; nothing where they are not known.
struct FusionReport {
  struct Tensor {
    /// "8192x4096xbf16".
    std::string type;
    std::optional<double> bytes;
  };

  /// A kernel, as the program launches it.
  struct Kernel {
    /// "matmul", "fusion", "loop", ...
    std::string kind;
    /// What it stands for.
    std::string what;
    /// Its symbol, if it was generated.
    std::string symbol;
    /// "file:line:column", or nothing.
    std::string location;
    std::vector<Tensor> reads, writes;
    double flops = 0;
    std::optional<double> floor;
    /// What there is to say of it: why it is a loop, for one.
    std::vector<std::string> notes;

    std::optional<double> getRead() const;
    std::optional<double> getWritten() const;
    std::optional<double> getBytes() const;
  };

  /// Two kernels that share tensors, by number.
  struct Refusal {
    size_t first, second;
    /// What the second one reads that the first one makes, or reads too.
    std::vector<std::string> flows, shared;
    std::optional<double> savedBytes, savedTime;
    std::string reason;
  };

  /// A tensor in high precision, read again only to be quantized.
  struct Repeated {
    std::string tensor;
    Tensor type;
    std::vector<size_t> readers, quantizers;
  };

  struct Function {
    std::string name;
    std::vector<Kernel> kernels;
    /// What saves most comes first.
    std::vector<Refusal> refusals;
    std::vector<Repeated> repeated;
    std::optional<double> floorBytes, floorTime;
    /// Bytes that it has allocated at most.
    std::optional<double> peakMemory;

    std::optional<double> getBytes() const;
    /// The sum of the kernels' floors.
    std::optional<double> getTime() const;
  };

  std::string chip;
  /// 10^9 bytes in a second, TFLOP/s of 8 bits, microseconds; 0 for unknown.
  double memoryPeak = 0, peak = 0, launchTime = 0;
  std::vector<Function> functions;

  void printText(raw_ostream &os) const;
  void printJSON(raw_ostream &os) const;
};

} // namespace mlir::fp8

#endif // FP8_LIB_REPORT_FUSIONREPORT_H

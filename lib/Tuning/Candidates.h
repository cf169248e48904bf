//===- Candidates.h - Every kernel for an operation -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TUNING_CANDIDATES_H
#define FP8_LIB_TUNING_CANDIDATES_H

#include "TunedKernel.h"
#include "fp8/Tuning/Tuner.h"

namespace mlir::fp8 {

/// A kernel, how it was built, and the text that says how it is launched.
struct Candidate {
  KernelConfigAttrInterface config;
  std::string name;
  std::string launch;
};

/// The candidates of one operation, and the machine code or PTX that has them
/// all.
struct Candidates {
  std::string code;
  SmallVector<Candidate> list;
};

/// Generates the kernels of every config that may be the fastest.
FailureOr<Candidates> buildCandidates(const TunedKernel &tuned,
                                      const TunerOptions &options);

} // namespace mlir::fp8

#endif // FP8_LIB_TUNING_CANDIDATES_H

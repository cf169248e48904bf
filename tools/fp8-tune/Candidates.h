//===- Candidates.h - Every kernel that may compute a matmul ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8TUNE_CANDIDATES_H
#define FP8_TOOLS_FP8TUNE_CANDIDATES_H

#include "Matmuls.h"

namespace mlir::fp8 {

/// A kernel and how it is launched: what docs/Kernels.md says of `fp8.launch`.
struct Candidate {
  GemmConfigAttr config;
  std::string kernel;
  SmallVector<std::string> params;
  int64_t threads = 0, sharedBytes = 0, storeBytes = 0;
  int64_t workspaceBytesPerTile = 0;
};

/// Tiles of the result in all batches, or what clusters compute together.
int64_t getTiles(const MatmulSpec &spec, GemmConfigAttr config);

/// The candidates of one matmul, and the machine code or PTX that has them all.
struct Candidates {
  std::string code;
  SmallVector<Candidate> list;
};

/// Generates the kernels of every config of the heuristics' table that may be
/// the fastest.
FailureOr<Candidates> buildCandidates(const TunedMatmul &matmul);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8TUNE_CANDIDATES_H

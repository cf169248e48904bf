//===- Problem.h - Operands of a matmul on a GPU ------------------*- C++
//-*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8TUNE_PROBLEM_H
#define FP8_TOOLS_FP8TUNE_PROBLEM_H

#include "Candidates.h"
#include "GPU.h"

namespace mlir::fp8 {

/// What a matmul reads and writes, several times over, so that together it
/// exceeds the L2 cache: a kernel that finds its operands there is measured too
/// fast.
class Problem {
public:
  struct Buffers {
    void *a = nullptr, *b = nullptr, *scaleA = nullptr, *scaleB = nullptr;
    void *result = nullptr, *amax = nullptr;
    SmallVector<void *> operands;
  };

  /// Random codes; what else an epilogue reads is the same everywhere, for no
  /// kernel's time depends on it.
  static llvm::Expected<std::unique_ptr<Problem>>
  create(const MatmulSpec &spec, ArrayRef<Candidate> candidates, GPU &gpu);

  const MatmulSpec &getSpec() const { return spec; }
  ArrayRef<Buffers> getBuffers() const { return buffers; }
  /// For the parts of K of any of the candidates.
  void *getWorkspace() const { return workspace; }
  void *getCounters() const { return counters; }

private:
  Problem(const MatmulSpec &spec, GPU &gpu) : spec(spec), memory(gpu) {}

  llvm::Error addBuffers(ArrayRef<uint8_t> codesA, ArrayRef<uint8_t> codesB);

  const MatmulSpec &spec;
  GPUMemory memory;
  SmallVector<Buffers> buffers;
  void *workspace = nullptr, *counters = nullptr;
};

/// Factors of an operand with so many rows, of one batch.
struct ScaleExtents {
  int64_t rows, k;
};
ScaleExtents getScaleExtents(ScaleBlock block, int64_t rows, int64_t k);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8TUNE_PROBLEM_H

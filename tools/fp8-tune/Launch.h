//===- Launch.h - One kernel on one set of buffers ----------------*- C++
//-*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8TUNE_LAUNCH_H
#define FP8_TOOLS_FP8TUNE_LAUNCH_H

#include "Problem.h"
#include "fp8/Runtime/Module.h"
#include "fp8/Runtime/TensorMap.h"

namespace mlir::fp8 {

/// A launch that can be repeated, with the parameters of docs/Kernels.md.
class Launch {
public:
  static llvm::Expected<std::unique_ptr<Launch>>
  create(const Candidate &candidate, const Problem &problem,
         const Problem::Buffers &buffers, fp8rt_function function, GPU &gpu);

  llvm::Error run();

private:
  Launch(const Candidate &candidate, const Problem &problem,
         const Problem::Buffers &buffers, fp8rt_function function, GPU &gpu);

  llvm::Error addParam(StringRef param);
  /// The value of a parameter that is no tensor map; nothing if it is not
  /// known.
  std::optional<uint64_t> getValue(StringRef name, StringRef field) const;
  uint64_t getScaleValue(bool isA, StringRef field) const;
  uint64_t getOperandValue(unsigned index, StringRef field) const;
  llvm::Error makeMap(StringRef name, fp8rt_tensor_map &map) const;

  const Candidate &candidate;
  const Problem &problem;
  const MatmulSpec &spec;
  const Problem::Buffers &buffers;
  GPU &gpu;
  fp8rt_function function;
  fp8rt_launch_config config{};
  /// Of each parameter one of the two; they stay where they are.
  std::vector<uint64_t> values;
  std::vector<fp8rt_tensor_map> maps;
  SmallVector<void *> params;
};

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8TUNE_LAUNCH_H

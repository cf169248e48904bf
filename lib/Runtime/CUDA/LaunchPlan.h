//===- LaunchPlan.h - Descriptions of launches, read ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_LAUNCHPLAN_H
#define FP8_LIB_RUNTIME_CUDA_LAUNCHPLAN_H

#include "fp8/Runtime/Kernel.h"

#include <string>
#include <string_view>
#include <vector>

namespace fp8rt::cuda {

/// Arithmetic on the extents of a launch, in postfix order.
struct Expression {
  enum class Op { Constant, Extent, Add, Multiply, FloorDiv, CeilDiv, Mod };
  struct Step {
    Op op;
    /// A constant, the number of an extent, or a divisor.
    int64_t value;
  };

  /// Null, or what is wrong: it does not fit in 64 bits, or is negative.
  const char *evaluate(const std::vector<int64_t> &extents,
                       int64_t &result) const;

  std::vector<Step> steps;
  std::string text;
};

/// What fp8/Runtime/Kernel.h says of a launch, checked: every index refers to
/// something.
struct LaunchPlan {
  struct Argument {
    std::string name;
    int32_t mapType; /* FP8RT_TENSOR_MAP_U8, ... */
    int32_t rank;
    int64_t bytes; /* of an element */
    int64_t alignment;
    bool isRead, isWritten;
    /// Whether the kernel is told the stride, for each dimension.
    std::vector<bool> takesStride;
  };
  struct Extent {
    std::string name;
    size_t argument, dim;
  };
  struct Param {
    enum class Kind { TensorMap, Pointer, Stride, Value, Capture, Scratch };
    Kind kind;
    /// The argument, capture or workspace.
    size_t index = 0;
    size_t dim = 0;
    /// Bytes of a value or a capture.
    size_t bytes = 8;
    std::vector<uint32_t> box;
    int32_t swizzle = 0, l2 = 0; /* FP8RT_TENSOR_MAP_... */
    /// The dimension along which the box has what is left after whole boxes,
    /// 0 for none.
    size_t tail = 0;
    Expression value;
  };
  struct Workspace {
    Expression bytes;
    bool zero;
  };

  /// False, with what is wrong in `error`.
  static bool parse(std::string_view text, LaunchPlan &plan,
                    std::string &error);

  std::vector<Argument> arguments;
  std::vector<Extent> extents;
  std::vector<Param> params;
  std::vector<Workspace> workspaces;
  std::vector<Expression> grid;
  Expression flops;
  uint32_t block, cluster, sharedBytes, resident;
  bool overlap;
};

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_LAUNCHPLAN_H

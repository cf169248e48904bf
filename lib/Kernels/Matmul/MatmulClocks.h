//===- MatmulClocks.h - What matmuls are expected to take -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For decisions between several ways to compute the same product.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULCLOCKS_H
#define FP8_LIB_KERNELS_MATMUL_MATMULCLOCKS_H

#include "../TargetLookup.h"
#include "fp8/IR/FP8Types.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"

#include <optional>

namespace mlir::fp8 {

/// What a matmul, grouped or not, takes on the target, in clocks; nothing
/// without a kernel. With `rows` it has so many, if that does not show.
std::optional<double>
getExpectedClocks(Operation *op, const KernelTarget &target,
                  std::optional<int64_t> rows = std::nullopt);

/// Whether it shows at compile time how many rows of weights are multiplied
/// with.
bool knowsRows(Operation *op);

/// Whether a kernel reads an operand whose rows are innermost although its
/// tensor core does not: in registers, of 8 bits.
bool transposesCodes(const MatmulSpec &spec, const SelectedKernel &kernel);

/// Clocks that a pass takes which writes codes in the other order, and reads
/// them if none does that makes them.
double getTransposeClocks(RankedTensorType codes, bool isRead,
                          const KernelTarget &target);

/// Clocks that a pass takes which makes bf16 of codes in memory. Extents that
/// are not known are `unknown`.
double getDecodeClocks(ScaledType type, const KernelTarget &target,
                       int64_t unknown = MatmulSpec::kUsualExtent);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULCLOCKS_H

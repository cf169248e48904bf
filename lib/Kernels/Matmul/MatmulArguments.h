//===- MatmulArguments.h - What a matmul is launched with -------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULARGUMENTS_H
#define FP8_LIB_KERNELS_MATMUL_MATMULARGUMENTS_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"

namespace mlir::fp8 {

/// What bulk tensor copies ask of addresses and strides (PTX ISA, "Tensors").
inline constexpr int64_t kBulkAlignment = 16;

/// The arguments of every matmul kernel, in order, as
/// KernelOpInterface::getKernelOperands gives them: `a`, `scale_a`, `b`,
/// `scale_b`, each with `tensor_scale_a` and `tensor_scale_b` behind it,
/// `operand0`, ..., then `d` and `amax`; what a matmul does not have is left
/// out. Codes of f4E2M1FN are bytes of two. Of a group, the other results have
/// theirs after the first's, by names that getNameOfResult gives. A, B and, if
/// it is written in bulk, D are aligned as bulk copies want it; factors and
/// operands to at least `alignment` bytes.
SmallVector<KernelArgumentAttr> getMatmulArguments(MLIRContext *context,
                                                   const MatmulSpec &spec,
                                                   bool storesInBulk,
                                                   int64_t alignment);

/// The name of an argument, or of an extent, that each result of a group has of
/// its own: "b", "b_1", "b_2".
std::string getNameOfResult(StringRef name, size_t result);

/// Whether E8M0 of B, which its kernels copy by words of four, begin within one
/// in every other row. These are dense, and as many rows as make whole words.
bool beginWithinWords(const MatmulSpec &spec);

/// Whether what tiles load of "a" or of "b" beyond their own rows is out of
/// bounds of the tensor: behind a group's rows there are others.
bool endsWithTensor(const MatmulSpec &spec, StringRef name);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULARGUMENTS_H

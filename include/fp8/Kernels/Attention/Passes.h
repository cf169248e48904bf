//===- Passes.h - Passes on attention ---------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_ATTENTION_PASSES_H
#define FP8_KERNELS_ATTENTION_PASSES_H

#include "mlir/Pass/Pass.h"

namespace mlir::fp8 {

#define GEN_PASS_DECL
#include "fp8/Kernels/Attention/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "fp8/Kernels/Attention/Passes.h.inc"

} // namespace mlir::fp8

#endif // FP8_KERNELS_ATTENTION_PASSES_H

//===- Matmuls.h - What is to be tuned --------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TOOLS_FP8TUNE_MATMULS_H
#define FP8_TOOLS_FP8TUNE_MATMULS_H

#include "Options.h"
#include "fp8/Kernels/MatmulSpec.h"

namespace mlir::fp8 {

/// A matmul of a program, and what it computes.
struct TunedMatmul {
  MatmulOp op;
  MatmulSpec spec;
};

/// A program of the matmuls that the command line describes.
std::string getProgram(const ShapeOptions &shapes);

/// The matmuls of a program at the end of `fusion` for which a table can have
/// an entry, each once. Remarks say why others are left out.
SmallVector<TunedMatmul> collectMatmuls(ModuleOp module);

} // namespace mlir::fp8

#endif // FP8_TOOLS_FP8TUNE_MATMULS_H

//===- KernelSymbols.h - Kernels and who refers to them ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_GPU_TRANSFORMS_KERNELSYMBOLS_H
#define FP8_LIB_GPU_TRANSFORMS_KERNELSYMBOLS_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

/// The functions of a module that are launched: outlined ones, generated ones,
/// and both after lowering.
SmallVector<FunctionOpInterface> getKernels(gpu::GPUModuleOp module);

/// @module::@kernel.
SymbolRefAttr getKernelReference(FunctionOpInterface kernel);

/// Makes whoever refers to a key refer to its value.
void replaceKernelReferences(
    ModuleOp module, const DenseMap<SymbolRefAttr, SymbolRefAttr> &references);

} // namespace mlir::fp8

#endif // FP8_LIB_GPU_TRANSFORMS_KERNELSYMBOLS_H

//===- Collectives.h - Reductions over ranks to calls -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_GEMMSTORUNTIME_COLLECTIVES_H
#define FP8_LIB_CONVERSION_GEMMSTORUNTIME_COLLECTIVES_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

/// Makes calls of fp8rt_program_all_reduce of all fp8.all_reduce_amax of
/// memrefs. Fails if a symbol of the program has that name.
LogicalResult convertCollectivesToRuntime(ModuleOp module);

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_GEMMSTORUNTIME_COLLECTIVES_H

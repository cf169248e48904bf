//===- FusionKernel.h - Kernels that pass over memory -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONKERNEL_H
#define FP8_LIB_KERNELS_FUSION_FUSIONKERNEL_H

#include "FusionTile.h"

namespace mlir::fp8 {

/// Dynamic shared memory of a kernel, in bytes: tiles that are transposed, and
/// what reductions exchange.
int64_t getFusionSharedBytes(const FusionSpec &spec, FusionConfigAttr config);

/// Builds the body of a kernel at the builder's insertion point. `params` has
/// the extents `rows` and `columns`, and of every argument the pointer, by its
/// name, and strides; `captures` are the spec's. `overlaps` is whether the
/// kernel may begin before the one before it has ended, and waits.
void buildFusionKernel(KernelBuilder &b, const FusionSpec &spec,
                       FusionConfigAttr config, llvm::StringMap<Value> params,
                       ArrayRef<FusionArgument> inputs,
                       ArrayRef<FusionArgument> outputs, ValueRange captures,
                       Value shared, bool overlaps);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSION_FUSIONKERNEL_H

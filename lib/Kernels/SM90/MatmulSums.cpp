//===- MatmulSums.cpp - How a matmul's kernel adds up products ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles, stages, clusters and schedules change no bits: each element of the
// result is summed by one warpgroup, along K.
//
//===----------------------------------------------------------------------===//

#include "MatmulGenerator.h"

using namespace mlir;
using namespace mlir::fp8;

/// Bytes of K in a block.
static constexpr int64_t kBlockBytes = 128;

std::optional<TensorCoreSums> fp8::getMatmulSums(const MatmulSpec &spec,
                                                 GemmConfigAttr config) {
  std::optional<int64_t> typeA = TensorCoreSums::getType(spec.a.elementType);
  std::optional<int64_t> typeB = TensorCoreSums::getType(spec.b.elementType);
  if (!typeA || !typeB)
    return std::nullopt;
  return TensorCoreSums{*typeA,
                        *typeB,
                        kBlockBytes / spec.a.getElementBytes(),
                        config.getSplitK(),
                        spec.accumulate == Accumulate::Promote,
                        TensorCoreInstruction::WGMMA};
}

//===- MatmulSums.cpp - How a matmul's kernel adds up products ------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each element of the result is summed in tensor memory, along all of its part
// of K, whoever issues the instructions, and in which block its row is. Tiles,
// stages, pairs of blocks and swapped operands change no bits. Promoted are
// K blocks whose factors the tensor core does not multiply, and nothing else.
//
//===----------------------------------------------------------------------===//

#include "MatmulGenerator.h"

using namespace mlir;
using namespace mlir::fp8;

std::optional<TensorCoreSums> sm100::getMatmulSums(const MatmulSpec &spec,
                                                   GemmConfigAttr config) {
  std::optional<int64_t> typeA = TensorCoreSums::getType(spec.a.elementType);
  std::optional<int64_t> typeB = TensorCoreSums::getType(spec.b.elementType);
  if (!typeA || !typeB)
    return std::nullopt;
  return TensorCoreSums{*typeA,
                        *typeB,
                        spec.a.getElementsOf(kRowBytes),
                        config.getSplitK(),
                        promotesSums(spec),
                        TensorCoreInstruction::TCGen05};
}

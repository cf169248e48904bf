//===- AttentionBackwardMemory.cpp - Where gradients lie ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardMemory.h"
#include "../Attention/AttentionBackwardBlock.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm100;

FailureOr<AttentionBackwardMemory>
AttentionBackwardMemory::get(const AttentionBackwardSpec &spec,
                             AttentionConfigAttr config, GPUTargetAttr target,
                             std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  if (config.getTileQ() != kRows || config.getTileK() != kRows ||
      config.isForFewQueries())
    return fail("expected tile_q and tile_k of {0} and no split_tiles, but got "
                "{1}",
                kRows, config);
  int64_t dim = spec.headDim;
  if (dim != spec.headDimOfV || (dim != 64 && dim != 128))
    return fail("expected head dimensions of 64 or 128, the same for values, "
                "but got {0} and {1}",
                dim, spec.headDimOfV);
  if (spec.isScaled)
    return fail("expected numbers of 16 bits, but got codes of {0}", spec.q);
  // Words of a lane's row are drawn for queries, not for keys.
  if (spec.dropThreshold)
    return fail("expected no dropout of scores whose lanes are keys");
  AttentionBackwardMemory memory;
  memory.q = SwizzledMatrix(spec.q, kRows, dim);
  memory.k = SwizzledMatrix(spec.k, kRows, dim);
  memory.v = SwizzledMatrix(spec.v, kRows, dim);
  memory.grad = SwizzledMatrix(spec.grad, kRows, dim);
  memory.scores = SwizzledMatrix(spec.grad, kRows, kRows);
  int64_t offset = 0, stages = config.getStages();
  auto place = [&](const SwizzledMatrix &matrix, int64_t stages) {
    int64_t at = offset;
    offset += llvm::alignTo(matrix.getBytes(), 1024) * stages;
    return at;
  };
  memory.offsetK = place(memory.k, 1);
  memory.offsetV = place(memory.v, 1);
  memory.offsetQ = place(memory.q, stages);
  memory.offsetGrad = place(memory.grad, stages);
  memory.offsetScores = place(memory.scores, 1);
  memory.offsetRows = offset;
  memory.bytesOfRows = AttentionBackwardBlock::getBytesOfRows(spec, kRows);
  offset += memory.bytesOfRows * stages;
  memory.offsetBarriers = offset;
  // Rings of keys, queries, gradients, rows, scores, products, parts of dQ,
  // turns, and the sums.
  memory.offsetTicket = offset + 16 * (2 + 3 * stages + 4 + kAddStages);
  memory.offsetAddress = memory.offsetTicket + 8;
  memory.offsetFound = memory.offsetAddress + 8;
  memory.sharedBytes =
      memory.offsetFound + (spec.hasKeyRanges ? kWarps * 8 : 0);
  if (memory.sharedBytes > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, memory.sharedBytes);
  memory.columnOfProducts = kRows;
  memory.columnOfV = 2 * kRows;
  memory.columnOfK = memory.columnOfV + dim;
  memory.columns = 512;
  return memory;
}

//===- AttentionBackwardMemory.cpp - Its shared memory --------------------===//
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
using namespace mlir::fp8::sm90;

FailureOr<AttentionBackwardMemory>
AttentionBackwardMemory::get(const AttentionBackwardSpec &spec,
                             AttentionConfigAttr config, GPUTargetAttr target,
                             std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  int64_t tileQ = config.getTileQ(), tileK = config.getTileK();
  int64_t dim = spec.headDim, dimOfV = spec.headDimOfV;
  if (tileK != 64 * kConsumers || (tileQ != 64 && tileQ != 128) ||
      config.isForFewQueries())
    return fail("expected tile_q of 64 or 128, tile_k of {0} and no "
                "split_tiles, but got {1}",
                64 * kConsumers, config);
  if (dim != dimOfV || (dim != 64 && dim != 128))
    return fail("expected head dimensions of 64 or 128, the same for values, "
                "but got {0} and {1}",
                dim, dimOfV);
  // Each warpgroup has a part of dQ: half of the columns, in lines of 128
  // bytes, or half of the queries.
  if (tileQ == 64 && dim != 128)
    return fail("expected a head dimension of 128 with tile_q = 64, but got "
                "{0}",
                dim);
  // dK and dV; scores and their gradients; a part of dQ.
  int64_t registers =
      dim / 2 + dimOfV / 2 + tileQ + tileQ * dim / (128 * kConsumers);
  if (int64_t most = kConsumerRegisters - 8; registers > most)
    return fail("expected up to {0} registers of a thread for scores and sums, "
                "but {1} needs {2}",
                most, config, registers);
  AttentionBackwardMemory memory;
  memory.q = SharedMatrix(spec.grad, tileQ, dim);
  memory.k = SharedMatrix(spec.grad, tileK, dim);
  memory.v = SharedMatrix(spec.grad, tileK, dimOfV);
  memory.grad = SharedMatrix(spec.grad, tileQ, dimOfV);
  memory.scores = SharedMatrix(spec.grad, tileK, tileQ);
  int64_t offset = 0;
  auto place = [&](const SharedMatrix &matrix, int64_t stages) {
    int64_t at = offset;
    offset += llvm::alignTo(matrix.getBytes(), 1024) * stages;
    return at;
  };
  memory.offsetK = place(memory.k, 1);
  memory.offsetV = place(memory.v, 1);
  memory.offsetQ = place(memory.q, config.getStages());
  memory.offsetGrad = place(memory.grad, config.getStages());
  memory.offsetScores = place(memory.scores, kScoreStages);
  if (spec.isScaled) {
    memory.codesOfQ = SharedMatrix(spec.q, tileQ, dim);
    memory.codesOfK = SharedMatrix(spec.k, tileK, dim);
    memory.codesOfV = SharedMatrix(spec.v, tileK, dimOfV);
    memory.offsetCodesOfQ = place(memory.codesOfQ, config.getStages());
    memory.offsetCodesOfK = place(memory.codesOfK, 1);
    // Their numbers are there before there are scores.
    memory.offsetCodesOfV = memory.offsetScores;
  }
  memory.offsetSums = offset;
  memory.bytesOfSums = tileQ * dim * 4;
  offset += memory.bytesOfSums * memory.getEnders();
  memory.offsetRows = offset;
  memory.bytesOfRows = AttentionBackwardBlock::getBytesOfRows(spec, tileQ);
  offset += memory.bytesOfRows * config.getStages();
  memory.offsetBarriers = offset;
  // Rings of K and V, of their codes, of queries and of their codes, of
  // gradients, scores and sums.
  int64_t barriers = 4 + 3 * config.getStages() + kScoreStages + kAddStages;
  memory.offsetTicket = offset + 16 * barriers;
  memory.offsetFound = memory.offsetTicket + (spec.isDeterministic ? 16 : 0);
  memory.sharedBytes =
      memory.offsetFound + (spec.hasKeyRanges ? kWarps * 8 : 0);
  if (memory.sharedBytes > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, memory.sharedBytes);
  return memory;
}

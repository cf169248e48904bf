//===- AttentionBackwardGenerator.cpp - Gradients by mma.sync -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardGenerator.h"
#include "../Attention/AttentionGenerator.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::mma;

/// Sums that a thread has room for beside scores and what becomes of them, and
/// both together.
static constexpr int64_t kMaxSums = 128, kMaxRegisters = 160;

FailureOr<AttentionBackwardMemory>
AttentionBackwardMemory::get(const AttentionBackwardSpec &spec,
                             AttentionConfigAttr config, GPUTargetAttr target,
                             std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  int64_t tileRows = config.getTileQ(), tileColumns = config.getTileK();
  int64_t dims[] = {spec.headDim, spec.headDimOfV};
  for (int64_t dim : dims)
    if (dim % 16 != 0 || dim == 0 || dim > 256)
      return fail("expected head dimensions of up to 256, multiples of 16, but "
                  "got {0}",
                  dim);
  if (tileColumns > tileRows)
    return fail("expected tile_k of up to tile_q, but got {0}", config);
  AttentionBackwardMemory memory;
  int64_t sums = (dims[0] + dims[1]) / 2;
  if (sums <= kMaxSums) {
    memory.parts.push_back({true, true, true});
  } else {
    memory.parts.append({{true, true, false}, {true, false, true}});
    sums = std::max(dims[0], dims[1]) / 2;
  }
  memory.parts.push_back({false, true, false});
  // Scores, and products of gradients and values.
  if (sums + tileColumns > kMaxRegisters)
    return fail("expected up to {0} registers of a thread for scores and sums, "
                "but {1} needs {2}",
                kMaxRegisters, config, sums + tileColumns);
  int64_t offset = 0;
  auto place = [&](SwizzledMatrix &matrix, int64_t rows, int64_t dim,
                   int64_t count) {
    matrix = SwizzledMatrix(spec.grad, rows, dim);
    int64_t at = offset;
    offset += llvm::alignTo(matrix.getBytes(), 1024) * count;
    return at;
  };
  for (int64_t i : {0, 1})
    memory.offsetRows[i] = place(memory.rows[i], tileRows, dims[i], 1);
  for (int64_t i : {0, 1})
    memory.offsetColumns[i] =
        place(memory.columns[i], tileColumns, dims[i], config.getStages());
  memory.offsetNumbers = offset;
  memory.bytesOfNumbers = tileColumns * (spec.hasKeyRanges ? 16 : 8);
  offset += memory.bytesOfNumbers * config.getStages();
  memory.offsetFound = offset;
  if (spec.hasKeyRanges)
    offset += config.getThreads() / 32 * 8;
  memory.sharedBytes = offset;
  if (offset > target.getSharedBytes())
    return fail("expected up to {0} bytes of shared memory, but {1} needs {2}",
                target.getSharedBytes(), config, offset);
  return memory;
}

namespace {
/// What gradients of attention by mma.sync have of their own.
struct MmaGradients {
  using Spec = AttentionBackwardSpec;
  using Config = AttentionConfigAttr;
  using Memory = AttentionBackwardMemory;
  using Signature = AttentionBackwardSignature;
  static constexpr auto describe = describeAttentionBackward;
  static constexpr auto build = buildAttentionBackward;

  static SmallVector<Config> getTiles(const Spec &, MLIRContext *context) {
    SmallVector<Config> tiles;
    for (int64_t rows : {128, 64})
      for (int64_t columns : {64, 32, 16})
        for (int64_t stages : {3, 2})
          tiles.push_back(Config::get(context, rows, columns, stages));
    return tiles;
  }
  /// Rows that read columns together, then as many columns as there is room
  /// for. Not measured.
  static double getCost(const Spec &spec, Config config, GPUTargetAttr) {
    return -double(config.getTileQ()) - double(config.getTileK()) / 128 -
           0.01 * double(config.getStages());
  }
  static Config getLeast(const Spec &, MLIRContext *context) {
    return Config::get(context, /*tile_q=*/64, /*tile_k=*/16, /*stages=*/2);
  }
};
} // namespace

std::unique_ptr<KernelGenerator> mma::createAttentionBackwardGenerator() {
  return std::make_unique<AttentionGenerator<MmaGradients>>();
}

//===- FusionRegisters.cpp - What registers hold of inputs ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionRegisters.h"
#include "FusionTile.h"
#include "fp8/IR/ExactMath.h"

using namespace mlir;
using namespace mlir::fp8;

/// What a multiprocessor has, on every chip with such kernels.
static constexpr int64_t kRegisters = 65536;
/// What a thread may have, by the instruction set.
static constexpr int64_t kMaxRegisters = 255;
/// Addresses, and what a row's arithmetic has under way: by ptxas, of the steps
/// of optimizers, whose divisions are exact or not.
static constexpr int64_t kComputed = 24, kComputedRoughly = 16;

namespace {
/// Inputs that are read element by element, and their words in a chunk.
struct Reads {
  int64_t inputs = 0, words = 0;
};
} // namespace

static Reads countReads(const FusionSpec &spec) {
  Reads reads;
  for (const FusionSpec::Input &input : spec.inputs) {
    if (!spec.getBlock(input.layout).isFull())
      continue;
    Type element = getElementTypeOrSelf(input.argument.getType());
    if (auto scaled = dyn_cast<ScaledType>(input.argument.getType()))
      element = scaled.getElementType();
    ++reads.inputs;
    reads.words += llvm::divideCeil(
        kChunk * static_cast<int64_t>(element.getIntOrFloatBitWidth()), 32);
  }
  return reads;
}

int64_t fp8::getFusionRegisters(FusionConfigAttr config) {
  return std::min(kMaxRegisters,
                  kRegisters / (config.getThreads() * config.getResident()));
}

int64_t fp8::getFusionRowRegisters(const FusionSpec &spec, int64_t chunks) {
  Reads reads = countReads(spec);
  return chunks * (reads.words + kChunk * reads.inputs) +
         (hasExactMath(spec.op) ? kComputed : kComputedRoughly);
}

bool fp8::readsSeveral(const FusionSpec &spec) {
  return countReads(spec).inputs > 2;
}

int64_t fp8::getFusionRowsAhead(const FusionSpec &spec,
                                FusionConfigAttr config) {
  // What looks at several rows at once has all of them.
  if (spec.rotatesRows || spec.drawsRows ||
      llvm::any_of(spec.inputs, [](const FusionSpec::Input &input) {
        return input.isGathered;
      }))
    return config.getRows();
  Reads reads = countReads(spec);
  int64_t half = getFusionRegisters(config) / 2,
          words = reads.words * config.getChunks(),
          numbers = kChunk * (reads.inputs + 1) * config.getChunks();
  if (words * config.getRows() <= half)
    return config.getRows();
  // Beside the first row's numbers the words of others.
  int64_t others = std::max<int64_t>(0, half - numbers) / words;
  // Where elements are held as well, one.
  if (spec.heldTensors > 0)
    others = std::min<int64_t>(others, 1);
  return std::min(config.getRows(), 1 + others);
}

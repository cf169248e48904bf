//===- AttentionSpec.cpp - What an attention kernel computes --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionSpec.h"
#include "ReadAttentionShape.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

std::string AttentionSpec::describe() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  describeShape(os);
  if (hasKeyLengths)
    os << " lengths";
  if (hasKeyStarts)
    os << " starts";
  if (hasKeyRanges)
    os << " ranges";
  if (hasSinks)
    os << " sinks";
  if (mask) {
    os << " mask";
    for (auto [isShared, name] :
         llvm::zip_equal(isMaskShared, StringRef("bhqk")))
      if (!isShared)
        os << name;
    os << '_' << mask;
  }
  if (pageSize)
    os << " page" << pageSize;
  if (hasFactorsOfPositions())
    for (auto [name, positions] :
         llvm::zip_equal(StringRef("qkv"), positionsOfFactor))
      if (positions)
        os << ' ' << name << "_blocks" << positions;
  if (rounded)
    os << " to_" << output;
  if (hasAmax)
    os << " amax";
  os << ' ' << stringifyAccumulate(accumulate);
  if (invariant)
    os << " invariant";
  return text;
}

std::string AttentionSpec::getLabel() const {
  std::string label;
  llvm::raw_string_ostream os(label);
  os << (isScaled ? "f8" : q.isBF16() ? "bf16" : "f16") << "_d" << headDim;
  if (headDimOfV != headDim)
    os << 'x' << headDimOfV;
  if (isCausal())
    os << "_causal";
  else if (left || right)
    os << "_window";
  if (accumulate == Accumulate::Promote)
    os << "_promote";
  if (hasFactorsOfPositions())
    os << "_blocks";
  if (rounded)
    os << "_to_f8";
  if (invariant)
    os << "_invariant";
  return label;
}

std::optional<int64_t> AttentionSpec::getHeadsOfFewQueries() const {
  constexpr int64_t kRows = 64;
  // Numbers of dropout are drawn for rows that are queries of one head.
  if (heads % headsOfK != 0 || dropThreshold)
    return std::nullopt;
  int64_t together =
      std::min<int64_t>(llvm::PowerOf2Ceil(heads / headsOfK), kRows);
  if (queries < 1 || queries * together > kRows)
    return std::nullopt;
  return together;
}

/// Tiles begin at the batch's first key, which is in the middle of a page, and
/// of eight keys whose numbers of dropout are drawn together.
static LogicalResult checkInvariant(const AttentionSpec &spec,
                                    std::string &reason) {
  if (!spec.invariant || !spec.hasKeyStarts ||
      (!spec.pageSize && !spec.dropThreshold))
    return success();
  reason = llvm::formatv("expected neither pages nor dropout in invariant "
                         "attention with key_starts, but got {0}",
                         spec.pageSize ? "pages" : "dropout");
  return failure();
}

FailureOr<AttentionSpec> AttentionSpec::get(AttentionOp op,
                                            std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  AttentionSpec spec;
  spec.q = AttentionOp::getElementTypeOf(op.getQ());
  spec.k = AttentionOp::getElementTypeOf(op.getK());
  spec.v = AttentionOp::getElementTypeOf(op.getV());
  spec.output = op.getOutput().getType().getElementType();
  if (spec.q.isF32())
    return fail("expected queries of 8 or 16 bits, but got f32");
  if (!spec.output.isBF16() && !spec.output.isF16())
    return fail("expected a result of bf16 or f16, but got {0}", spec.output);
  if (failed(readExtents(spec, op, op.getNumKeys(), reason)))
    return failure();
  spec.bottomRight = op.getBottomRight();
  // The last query's own key is the last.
  if (spec.bottomRight && spec.queries == 1)
    spec.right.reset();
  spec.isScaled = op.isScaled();
  for (auto [isOfHeads, positions, operand] :
       llvm::zip_equal(spec.hasHeadFactors, spec.positionsOfFactor,
                       std::array{op.getQ(), op.getK(), op.getV()}))
    if (auto scaled = dyn_cast<ScaledType>(operand.getType())) {
      isOfHeads = !scaled.isPerTensor();
      if (int64_t sequence = op.getSequenceDim();
          isOfHeads && scaled.isBlocked(sequence))
        positions = scaled.getBlock()[sequence];
    }
  spec.hasLse = op.getLse() != nullptr;
  if (Value mask = op.getMask()) {
    auto type = cast<RankedTensorType>(mask.getType());
    spec.mask = type.getElementType();
    int64_t missing = 4 - type.getRank();
    for (int64_t dim = 0; dim < 4; ++dim)
      spec.isMaskShared[dim] =
          dim < missing || type.getDimSize(dim - missing) == 1;
  }
  spec.hasKeyLengths = op.getKeyLengths() != nullptr;
  spec.hasKeyStarts = op.getKeyStarts() != nullptr;
  spec.hasKeyRanges = op.getKeyRanges() != nullptr;
  spec.hasSinks = op.getSinks() != nullptr;
  spec.pageSize = op.getPageTable() ? op.getPageSize() : 0;
  if (failed(readScores(spec, op, reason)))
    return failure();
  spec.factorOfP = static_cast<float>(op.getFactorOfP());
  spec.accumulate = op.getSums();
  spec.invariant = isInvariant(op);
  if (failed(checkInvariant(spec, reason)))
    return failure();
  return spec;
}

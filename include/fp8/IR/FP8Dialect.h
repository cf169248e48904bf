//===- FP8Dialect.h - The fp8 dialect ---------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8DIALECT_H
#define FP8_IR_FP8DIALECT_H

#include "mlir/IR/Dialect.h"

namespace fp8rt {
struct RecipeSchema;
} // namespace fp8rt

#include "fp8/IR/FP8Dialect.h.inc"

namespace mlir::fp8 {

/// Names of the discardable attributes; see the dialect's description.
inline constexpr llvm::StringLiteral kRecipeAttrName = "fp8.recipe";
inline constexpr llvm::StringLiteral kRoleAttrName = "fp8.role";
inline constexpr llvm::StringLiteral kNameAttrName = "fp8.name";
inline constexpr llvm::StringLiteral kAccumulateAttrName = "fp8.accumulate";
inline constexpr llvm::StringLiteral kGradAttrName = "fp8.grad";
inline constexpr llvm::StringLiteral kWeightAttrName = "fp8.weight";
inline constexpr llvm::StringLiteral kSaveAttrName = "fp8.save";
inline constexpr llvm::StringLiteral kSavedAttrName = "fp8.saved";
inline constexpr llvm::StringLiteral kStatsSlotsAttrName = "fp8.stats_slots";
inline constexpr llvm::StringLiteral kOperandsAttrName = "fp8.operands";
inline constexpr llvm::StringLiteral kRecomputeAttrName = "fp8.recompute";
inline constexpr llvm::StringLiteral kFirstMicrobatchAttrName =
    "fp8.first_microbatch";
inline constexpr llvm::StringLiteral kSlotsAttrName = "fp8.slots";
inline constexpr llvm::StringLiteral kStateAttrName = "fp8.state";
inline constexpr llvm::StringLiteral kStateUpdateAttrName = "fp8.state_update";
inline constexpr llvm::StringLiteral kStateUsesAttrName = "fp8.state_uses";
inline constexpr llvm::StringLiteral kStateManifestAttrName =
    "fp8.state_manifest";
inline constexpr llvm::StringLiteral kTilesAttrName = "fp8.tiles";
inline constexpr llvm::StringLiteral kInvariantAttrName = "fp8.invariant";

/// Whether the bits of a row of what `op` computes may depend on that row
/// alone: it, or an operation around it, has `fp8.invariant`.
bool isInvariant(Operation *op);

} // namespace mlir::fp8

#endif // FP8_IR_FP8DIALECT_H

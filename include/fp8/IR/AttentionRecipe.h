//===- AttentionRecipe.h - Recipes of attention's products ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_ATTENTIONRECIPE_H
#define FP8_IR_ATTENTIONRECIPE_H

#include "fp8/IR/FP8Attrs.h"

namespace mlir::fp8 {

/// On a module, a function or an operation, the innermost wins: the recipe of
/// all products of attention, or a dictionary of one for each of some roles.
inline constexpr llvm::StringLiteral kAttentionRecipeAttrName =
    "fp8.attention_recipe";

/// Products of attention, with S = Q K^T and O = P V. Those of gradients are
/// dP = dO V^T, dV = P^T dO, dQ = dS K and dK = dS^T Q.
enum class AttentionRole { QK, PV, DP, DV, DQ, DK };

/// "qk", the key in the attribute.
StringRef getAttentionKey(AttentionRole role);
/// "attention.qk", in remarks and recipe files.
std::string stringifyAttentionRole(AttentionRole role);
bool isGradientRole(AttentionRole role);

/// What an attribute says of a role; null if nothing.
RecipeAttrInterface getAttentionRecipe(Attribute attribute, AttentionRole role);
/// Fails, with what was expected, if an attribute is neither a recipe nor a
/// dictionary of some.
LogicalResult
verifyAttentionRecipe(Attribute attribute,
                      llvm::function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::fp8

#endif // FP8_IR_ATTENTIONRECIPE_H

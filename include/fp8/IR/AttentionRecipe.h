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
/// all products of attention, or a dictionary of one for each of some roles,
/// and of what is done to queries and keys first.
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

/// What is done to queries and keys before they are codes, so that less is
/// lost. Products of both are what they were, or all scores of a query change
/// by the same number, which no softmax sees.
struct AttentionTransforms {
  /// The mean of each head's keys is taken away.
  bool smoothK = false;
  /// Columns are rotated by a Hadamard matrix.
  bool hadamard = false;
  /// How many positions of a head share a factor, 0 where all of the tensor do.
  int64_t block = 0;

  bool any() const { return smoothK || hadamard; }
  /// "smooth_k, hadamard, block 128".
  std::string describe() const;
};

/// What an attribute's dictionary says of them.
AttentionTransforms getAttentionTransforms(Attribute attribute);
/// Takes their keys out of the text of a recipe, `current,smooth_k=true`. Fails
/// where one has another value than true or false, and says so.
FailureOr<AttentionTransforms>
takeAttentionTransforms(std::string &text,
                        llvm::function_ref<InFlightDiagnostic()> emitError);

/// What an attribute says of a role; null if nothing.
RecipeAttrInterface getAttentionRecipe(Attribute attribute, AttentionRole role);
/// Fails, with what was expected, if an attribute is neither a recipe nor a
/// dictionary of some.
LogicalResult
verifyAttentionRecipe(Attribute attribute,
                      llvm::function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::fp8

#endif // FP8_IR_ATTENTIONRECIPE_H

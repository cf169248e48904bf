//===- RecipeDecision.h - What a recipe makes of a contraction --*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_RECIPE_RECIPEDECISION_H
#define FP8_LIB_TRANSFORMS_RECIPE_RECIPEDECISION_H

#include "AttentionProducts.h"
#include "fp8/Analysis/GemmRoles.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/Transforms/CanonicalGemm.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// Everything decided about one contraction before the IR is touched.
struct RecipeDecision {
  RecipeAttrInterface recipe;
  GemmRole role = GemmRole::Fprop;
  /// What it is to attention, if it is a product of that.
  std::optional<AttentionProduct> attention;
  /// The recipe of V in fp8.attention, whose `recipe` is that of Q and K.
  RecipeAttrInterface recipeOfV;
  /// What is done to its queries and keys first, and what of that was asked for
  /// and is not, with the reason.
  AttentionTransforms transforms;
  std::string leftOut;
  /// Why the contraction stays in high precision, and what would change that;
  /// empty if it does not stay.
  std::string reason, suggestion;
  OperandKind aKind, bKind;
  OperandFormat a, b;
  /// Whether the operands are codes as they come.
  bool isGiven = false;
  Accumulate accumulate = Accumulate::Promote;
  /// Multiple that K is padded to; 1 for no padding.
  int64_t paddedTo = 1;
  int64_t k = ShapedType::kDynamic;

  bool staysHighPrecision() const { return !reason.empty(); }
  void stay(const Twine &why, const Twine &otherwise) {
    reason = why.str();
    suggestion = otherwise.str();
  }
};

/// The `fp8.name` of `op`; empty if it has none.
StringRef getGemmName(Operation *op);

/// Whether blocks extend along rows and K.
bool is2D(const OperandFormat &operand);

/// "f8E4M3FN[1x128]f32": format, block (rows x K) and scale.
std::string describeOperand(const OperandFormat &operand);

/// Why a row of what `recipe` makes of an operand depends on other rows; empty
/// if it does not.
std::string describeOtherRows(RecipeAttrInterface recipe, GemmRole role,
                              OperandKind kind);

/// The remark for `op`, one for every contraction, taken or refused.
void remarkDecision(linalg::LinalgOp op, const RecipeDecision &decision);
void remarkDecision(GroupedMatmulOp op, const RecipeDecision &decision);
void remarkDecision(AttentionOp op, const RecipeDecision &decision);

/// Pads the last dimension of `tensor` with `amount` zeros, which change
/// neither an amax nor a product.
Value padK(RewriterBase &rewriter, Location loc, Value tensor,
           OpFoldResult amount);
/// The zeros that the decision wants at the end of K, the last dimension of
/// `a`.
OpFoldResult getPadding(RewriterBase &rewriter, Location loc,
                        const RecipeDecision &decision, Value a);
/// What `format` makes of [batch x] rows x K.
ScaledType getScaledType(RankedTensorType type, const OperandFormat &format);
/// `tensor`, [batch x] rows x K, quantized as `decision` says of the operand of
/// a contraction, K padded with `amount` zeros first.
Value quantizeA(RewriterBase &rewriter, Location loc, Value tensor,
                OpFoldResult amount, const RecipeDecision &decision);
Value quantizeB(RewriterBase &rewriter, Location loc, Value tensor,
                OpFoldResult amount, const RecipeDecision &decision);

/// Decides whether K is padded, once `decision` has a recipe and K; says why
/// not.
void decidePadding(RecipeDecision &decision, double maxPadding);

/// What `decision`, which has the recipe, makes of a grouped matmul; and that
/// done.
void decideGrouped(GroupedMatmulOp op, const GemmRoles &roles,
                   double maxPadding, RecipeDecision &decision);
void quantizeGrouped(GroupedMatmulOp op, const RecipeDecision &decision);

/// The same of attention whose operands are numbers: `decision` has both
/// recipes, if any are for it. Its gradient of the same tensors goes with it.
void decideAttention(AttentionOp op, RecipeDecision &decision);
void quantizeAttention(AttentionOp op, const RecipeDecision &decision);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_RECIPE_RECIPEDECISION_H

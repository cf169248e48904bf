//===- AttentionProducts.h - Products around a softmax ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs that spell attention have products of activations by activations,
// which are no linear layer's. A recipe of linear layers must not take them for
// some: shares of a softmax are small, and sums of them as long as a context.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_RECIPE_ATTENTIONPRODUCTS_H
#define FP8_LIB_TRANSFORMS_RECIPE_ATTENTIONPRODUCTS_H

#include "fp8/Analysis/GemmRoles.h"
#include "fp8/IR/AttentionRecipe.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::fp8 {

/// A product of attention, and which of its operands is a gradient.
struct AttentionProduct {
  AttentionRole role;
  std::optional<unsigned> gradient;
};

/// Finds products of attention in a function. Scores are a product of which
/// exponentials are made that something sums; shares are those exponentials,
/// times or by something, and a product has them as an operand: what else
/// exponentiates (gates, losses with their gradients) has no such product. One
/// of a weight is a linear layer's whatever surrounds it.
class AttentionProducts {
public:
  AttentionProducts(FunctionOpInterface function, const GemmRoles &roles);

  std::optional<AttentionProduct> lookup(Operation *op) const {
    auto found = products.find(op);
    return found == products.end() ? std::nullopt
                                   : std::optional(found->second);
  }

private:
  llvm::DenseMap<Operation *, AttentionProduct> products;
};

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_RECIPE_ATTENTIONPRODUCTS_H

//===- Combiner.h - What a reduction does with two of its terms -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_CONVERSION_LINALGTOGPU_COMBINER_H
#define FP8_LIB_CONVERSION_LINALGTOGPU_COMBINER_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace mlir::fp8 {

/// The operation of a reduction whose terms may be taken in any order: sums,
/// products, extrema and bits. Threads have partial results in the output's
/// type; they meet in one that is wide enough for sums.
class Combiner {
public:
  /// None if `op` has several outputs, or its body does something else with
  /// what it carries.
  static std::optional<Combiner> get(linalg::LinalgOp op);

  Type getType() const { return type; }
  /// Whether the bits of what is combined depend on the order of the terms.
  bool hasOrder() const;
  Type getWideType() const;
  /// What changes no term.
  Value createNeutral(OpBuilder &b, Location loc) const;
  Value widen(OpBuilder &b, Location loc, Value value) const;
  Value narrow(OpBuilder &b, Location loc, Value value) const;
  /// Combines two wide values.
  Value combine(OpBuilder &b, Location loc, Value lhs, Value rhs) const;
  /// What the lane `distance` away in the warp has of a wide value.
  Value shuffle(OpBuilder &b, Location loc, Value value,
                int64_t distance) const;

private:
  Combiner(Operation *operation, Type type, TypedAttr neutral)
      : operation(operation), type(type), neutral(neutral) {}

  Operation *operation;
  Type type;
  TypedAttr neutral;
};

} // namespace mlir::fp8

#endif // FP8_LIB_CONVERSION_LINALGTOGPU_COMBINER_H

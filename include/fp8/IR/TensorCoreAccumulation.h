//===- TensorCoreAccumulation.h - How a kernel adds up products -*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What decides the bits of a product on a tensor core beside its operands. A
// CPU that is told computes the same (Gemm.h of the runtime).
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_TENSORCOREACCUMULATION_H
#define FP8_IR_TENSORCOREACCUMULATION_H

#include "fp8/Runtime/Gemm.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"

#include <optional>

namespace mlir::fp8 {

/// Attribute of fp8.matmul, and of the contraction in linalg that it becomes.
constexpr llvm::StringLiteral kTensorCoreAccumulationAttrName =
    "tensor_core_accumulation";

/// The instructions of Hopper, of Blackwell and of Ada, whose sums keep
/// different bits.
enum class TensorCoreInstruction : int64_t { WGMMA = 0, TCGen05 = 1, MMA = 2 };

struct TensorCoreAccumulation {
  /// Types of A and B, fp8rt_tensor_core_type.
  int64_t typeA, typeB;
  /// Elements of K in a block: parts of K begin with one, and sums that are
  /// promoted are f32 sums of blocks.
  int64_t blockK;
  /// Parts of K that are summed by themselves, and then in f32.
  int64_t parts;
  bool isPromoted;
  /// Whose rule.
  TensorCoreInstruction instruction;
  /// Elements of K whose sum is a tensor core's, where factors change inside of
  /// a block; 0 for all of a block.
  int64_t sumK = 0;

  int64_t getSumK() const { return sumK ? sumK : blockK; }

  static std::optional<TensorCoreAccumulation> get(Operation *op) {
    auto values =
        op->getAttrOfType<DenseI64ArrayAttr>(kTensorCoreAccumulationAttrName);
    // What the attribute was called before.
    if (!values)
      values = op->getAttrOfType<DenseI64ArrayAttr>("tensor_core_sums");
    if (!values || values.size() < 6 || values.size() > 7 || values[5] < 0 ||
        values[5] > 2)
      return std::nullopt;
    return TensorCoreAccumulation{values[0],
                                  values[1],
                                  values[2],
                                  values[3],
                                  values[4] != 0,
                                  static_cast<TensorCoreInstruction>(values[5]),
                                  values.size() > 6 ? values[6] : 0};
  }
  void set(Operation *op) const {
    SmallVector<int64_t> values{typeA,
                                typeB,
                                blockK,
                                parts,
                                static_cast<int64_t>(isPromoted),
                                static_cast<int64_t>(instruction)};
    if (sumK)
      values.push_back(sumK);
    op->setAttr(kTensorCoreAccumulationAttrName,
                DenseI64ArrayAttr::get(op->getContext(), values));
  }

  /// Whether factors that change along K are multiplied by the tensor core:
  /// others multiply the sum of a block.
  bool multipliesFactors() const {
    return instruction == TensorCoreInstruction::TCGen05 && !isPromoted;
  }

  /// That of elements which tensor cores multiply; f32 they take as TF32.
  static std::optional<int64_t> getType(Type element) {
#define FP8_TENSOR_CORE_TYPE(NAME, TEXT, TYPE, NUMBER, ...)                    \
  if (isa<TYPE##Type>(element))                                                \
    return NUMBER;
#include "fp8/Formats.def"
    return std::nullopt;
  }
};

} // namespace mlir::fp8

#endif // FP8_IR_TENSORCOREACCUMULATION_H

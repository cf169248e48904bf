//===- FusionParts.h - Fusions from a fusion --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_FUSION_FUSIONPARTS_H
#define FP8_LIB_KERNELS_FUSION_FUSIONPARTS_H

#include "fp8/IR/FP8Ops.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::fp8 {

struct FusionLayout;

/// Values of a body that other fusions have computed.
using KnownValues = llvm::MapVector<Value, Value>;

Operation *getTerminator(FusionOp op);

/// Operands, and what regions use from above.
void walkOperands(Operation *op, llvm::function_ref<void(Value)> callback);

/// The operations of the body that `values` are made of, but for what is known.
llvm::SmallPtrSet<Operation *, 16> getSlice(ArrayRef<Value> values,
                                            const KnownValues &known = {});

/// A fusion of what `yields`, of the body of `op`, are made of, in front of it.
FusionOp extractFusion(FusionOp op, ArrayRef<Value> yields,
                       const KnownValues &known = {});

/// Erases `op`, and the size of its parts if that was only for it.
void eraseFusion(FusionOp op);

/// Elements of a part, where there are more: what blocks of a tile have.
inline constexpr int64_t kPart = 128;

/// A reduction in two steps: of parts, and then of these.
struct ReductionParts {
  Operation *parts, *whole;
};

/// Which loop of a domain is taken in parts for a reduction with the layout
/// `result`; none if parts are no help.
std::optional<int64_t> getPartDim(const FusionLayout &result,
                                  ArrayRef<int64_t> domain);

/// Builds both in front of `reduction`, of the body of `op`, along dimension
/// `dim` of the domain: `part` elements are a part, or all that there are where
/// these are at most 128. A number of parts that is not known becomes an input
/// of `op`. Builds nothing if that is not possible.
std::optional<ReductionParts> buildParts(FusionOp op, Operation *reduction,
                                         ArrayRef<int64_t> domain, int64_t dim,
                                         int64_t part = kPart);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_FUSION_FUSIONPARTS_H

//===- FP8Types.h - Types of the fp8 dialect --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FP8TYPES_H
#define FP8_IR_FP8TYPES_H

#include "fp8/IR/FP8Dialect.h"
#include "mlir/IR/BuiltinTypes.h"

#define GET_TYPEDEF_CLASSES
#include "fp8/IR/FP8Types.h.inc"

namespace mlir::fp8 {

/// Parses and prints `[1, 128]` or `[*, *]`: block extents, `*` for
/// ScaledType::kWhole. Shared by the type and by the operations.
ParseResult parseBlock(AsmParser &parser, SmallVectorImpl<int64_t> &block);
void printBlock(AsmPrinter &printer, ArrayRef<int64_t> block);

/// (C2): `block` has one entry for each of `rank` dimensions, each at least 1
/// or `*`.
LogicalResult verifyBlock(ArrayRef<int64_t> block, int64_t rank,
                          llvm::function_ref<InFlightDiagnostic()> emitError);

/// ceildiv(dim, block) in each dimension, kDynamic for a dynamic one.
SmallVector<int64_t> getGridShape(ArrayRef<int64_t> shape,
                                  ArrayRef<int64_t> block);

} // namespace mlir::fp8

#endif // FP8_IR_FP8TYPES_H

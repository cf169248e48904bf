//===- ClearRows.cpp - Rows of a result that no group has -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ClearRows.h"

using namespace mlir;
using namespace mlir::fp8;

/// Those from `begin` on, of the result that `batch` numbers if it is not null.
static void clearRowsFrom(const MatmulParams &kernel, Value begin, Value batch,
                          const RowClearer &clearer) {
  KernelBuilder &b = kernel.b;
  int64_t width = kernel.spec.resultType.getIntOrFloatBitWidth();
  int64_t together = clearer.inBulk ? 128 / width : 1;
  Type bits = b.getIntegerType(width);
  TypedAttr zeros = b.getIntegerAttr(bits, 0);
  if (together > 1)
    zeros = DenseElementsAttr::get(VectorType::get({4}, b.getI32Type()),
                                   b.getI32IntegerAttr(0).getValue());
  Value zero = arith::ConstantOp::create(b, zeros.getType(), zeros);
  Value block = NVVM::BlockIdXOp::create(b, b.getI32Type());
  Value d = kernel.getParam("d.ptr"), stride = kernel.getParam("d.stride_m");
  if (batch)
    d = b.element(d, b.mul(b.widen(batch), kernel.getParam("d.stride_batch")),
                  bits);
  b.loopRolled(b.add(begin, block), kernel.getParam("m"), clearer.blocks, {},
               [&](Value row, ValueRange) -> SmallVector<Value> {
                 Value first = b.element(d, b.mul(b.widen(row), stride), bits);
                 b.loopRolled(
                     b.mul(clearer.thread, together), kernel.getParam("n"),
                     b.i32(clearer.threads * together), {},
                     [&](Value col, ValueRange) -> SmallVector<Value> {
                       b.store(zero, b.element(first, b.widen(col), bits));
                       return {};
                     });
                 return {};
               });
}

void fp8::clearRows(const MatmulParams &kernel, const GroupTable &table,
                    const RowClearer &clearer) {
  KernelBuilder &b = kernel.b;
  Value groups = b.i32(table.getNumGroups());
  if (!table.isMasked())
    return clearRowsFrom(kernel, table.getBegin(groups), /*batch=*/Value(),
                         clearer);
  b.loopRolled(b.i32(0), groups, b.i32(1), {},
               [&](Value group, ValueRange) -> SmallVector<Value> {
                 clearRowsFrom(kernel, table.getEnd(group), group, clearer);
                 return {};
               });
}

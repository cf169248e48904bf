//===- Widening.cpp - Floats that are only widened ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Widening.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

bool fp8::isWidening(linalg::GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op->getNumResults() != 1 ||
      op.getNumLoops() != op.getNumParallelLoops() ||
      !llvm::all_of(op.getIndexingMapsArray(),
                    [](AffineMap map) { return map.isIdentity(); }))
    return false;
  auto extend = op.getBody()
                    ->getTerminator()
                    ->getOperand(0)
                    .getDefiningOp<arith::ExtFOp>();
  return extend && extend.getIn() == op.getBody()->getArgument(0);
}

Value fp8::skipWidening(Value tensor) {
  if (auto extend = tensor.getDefiningOp<arith::ExtFOp>())
    return extend.getIn();
  auto generic = tensor.getDefiningOp<linalg::GenericOp>();
  return generic && isWidening(generic) ? generic.getDpsInputOperand(0)->get()
                                        : tensor;
}

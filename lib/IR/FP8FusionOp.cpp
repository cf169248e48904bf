//===- FP8FusionOp.cpp - A pass over memory -------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/FP8Dialect.h"
#include "fp8/IR/FP8Ops.h"

using namespace mlir;
using namespace mlir::fp8;

LogicalResult FusionOp::verifyRegions() {
  // stream_c1
  Block &block = getBody().front();
  if (block.getArgumentTypes() != TypeRange(getInputs()))
    return emitOpError("expected the body to take (")
           << getInputs().getTypes() << "), but got ("
           << block.getArgumentTypes() << ")";
  auto yield = dyn_cast<YieldOp>(block.getTerminator());
  if (!yield || yield.getValues().getTypes() != getResultTypes())
    return emitOpError("expected the body to yield (")
           << getResultTypes() << ")";
  // stream_c2
  for (Operation &op : block.without_terminator())
    if (!isMemoryEffectFree(&op))
      return emitOpError("expected operations without side effects, but got '")
             << op.getName() << "'";
  return success();
}

//===- AttentionDropoutState.cpp - Dropout of one share -------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionDropoutState.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace mlir::fp8;

Value fp8::buildIsKept(OpBuilder &builder, Location loc, Value state,
                       int64_t threshold, Value head, Value query, Value key) {
  ScalarBuilder b(loc, builder);
  SmallVector<Value> words;
  for (int64_t i : {0, 1}) {
    Value both =
        tensor::ExtractOp::create(b, state, ValueRange{b.index(i)}).getResult();
    Value upper = arith::ShRUIOp::create(
        b, both, arith::ConstantIntOp::create(b, b.getI64Type(), 32));
    for (Value word : {both, upper})
      words.push_back(arith::TruncIOp::create(b, b.getI32Type(), word));
  }
  auto toWord = [&](Value index) -> Value {
    return arith::IndexCastUIOp::create(b, b.getI32Type(), index);
  };
  return buildIsKept(b, DropoutState(b, words), toWord(head), toWord(query),
                     toWord(key), threshold);
}

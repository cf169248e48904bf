//===- ScaleFactorCopy.cpp - Factors along K to shared memory -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ScaleFactorCopy.h"
#include "../Blocks/Hazards.h"
#include "MatmulArguments.h"

using namespace mlir;
using namespace mlir::fp8;

ScaleFactorCopy::ScaleFactorCopy(const MatmulParams &kernel, const Tile &tile,
                                 Source source, Stages stages, Value lane)
    : b(kernel.b), stages(stages), lane(lane) {
  const MatmulSpec &spec = kernel.spec;
  bool ofA = source.ofA;
  StringRef argument = ofA ? "scale_a" : "scale_b";
  std::string name = getNameOfResult(argument, source.number);
  int64_t rows = getScaleRows(ofA ? spec.a.scale : spec.b.scale);
  width = spec.getFactorWidth(ofA);
  Value extent = b.ceilDiv(kernel.getParam(tile, ofA ? "m" : "n"), rows);
  Value row = b.add(b.div(ofA ? tile.m : tile.n, rows), b.mul(lane, width));
  Value strideRow = kernel.getParam(tile, name, ".stride_row");
  Value index = b.mul(b.widen(row), strideRow);
  if (spec.hasBatch(argument))
    index = b.add(index, b.mul(b.widen(tile.batch),
                               kernel.getParam(tile, name, ".stride_batch")));
  // K of a group begins with a block of factors.
  if (tile.firstK)
    index = b.add(index, b.mul(b.widen(b.div(tile.firstK, source.blockK)),
                               kernel.getParam(tile, name, ".stride_k")));
  bool areBytes = isMicroscaled(ofA ? spec.a.scale : spec.b.scale);
  Type type = areBytes ? Type(b.getI8Type()) : b.getF32Type();
  step = arith::TruncIOp::create(
      b, b.getI32Type(), b.mul(strideRow, 32 * (areBytes ? 1 : 4) * width));
  first = b.element(kernel.getParam(tile, name, ".ptr"), index, type);
  // Four bytes, or one f32.
  strideK = b.mul(kernel.getParam(tile, name, ".stride_k"), 4);
  left = b.sub(extent, row);
}

/// This warp must keep up with the tensor core: a few instructions for each
/// copy.
void ScaleFactorCopy::copy(Value k, Value stage) const {
  Value place = b.offset(
      stages.shared, b.add(b.add(b.mul(stage, stages.stride), stages.offset),
                           b.mul(lane, width * 4)));
  Value source = b.offset(first, b.mul(b.widen(k), strideK));
  // What could be computed before the loop would be kept in registers, of which
  // a producer has few.
  Value rowsLeft = launder(b, left);
  Value toNext = b.widen(launder(b, step));
  int64_t bytes = width * 4;
  // Four are not worth a line of the L1 cache, which one would bring in.
  auto cache = width == 4 ? NVVM::LoadCacheModifierKind::CG
                          : NVVM::LoadCacheModifierKind::CA;
  for (int64_t i = 0; i < stages.count; i += 32 * width) {
    auto copyOne = [&] {
      Value inside = arith::CmpIOp::create(b, arith::CmpIPredicate::sgt,
                                           rowsLeft, b.i32(i));
      NVVM::CpAsyncOp::create(b, b.offset(place, b.i32(i * 4)), source, bytes,
                              cache, b.select(inside, b.i32(bytes), b.i32(0)));
    };
    int64_t lanes = llvm::divideCeil(stages.count - i, width);
    if (lanes >= 32)
      copyOne();
    else
      b.ifThen(b.less(lane, b.i32(lanes)), copyOne);
    source = b.offset(source, toNext);
  }
}

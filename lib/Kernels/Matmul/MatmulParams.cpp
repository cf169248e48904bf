//===- MatmulParams.cpp - What a matmul kernel was given ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulParams.h"
#include "MatmulArguments.h"

using namespace mlir;
using namespace mlir::fp8;

Value MatmulParams::getParam(const Tile &tile, StringRef name,
                             StringRef part) const {
  if (tile.rowEnd && name == "m" && part.empty())
    return tile.rowEnd;
  Value param = getParam(name + part);
  if (!param || !tile.result || spec.getCount(name) == 1)
    return param;
  for (size_t result = 1; result < spec.getNumResults(); ++result)
    param = b.select(b.equal(tile.result, result),
                     getParam(getNameOfResult(name, result) + part), param);
  return param;
}

TileScheduler::Extents MatmulParams::getExtents() const {
  Value k = getParam("k");
  // Every tile has a block of K, which consumers wait for and the first product
  // overwrites sums with. Where there is no K it is one of zeros: that is what
  // the runtime gives for operands without elements.
  if (ShapedType::isDynamic(spec.k) || spec.k == 0)
    k = b.max(k, b.i32(1));
  TileScheduler::Extents extents{{}, k, getParam("batch")};
  for (size_t result = 0; result < spec.getNumResults(); ++result) {
    auto get = [&](StringRef name) {
      return getParam(result < spec.getCount(name)
                          ? getNameOfResult(name, result)
                          : name.str());
    };
    extents.results.push_back({get("m"), get("n")});
  }
  return extents;
}

Value MatmulParams::getResult(const Tile &tile) const {
  Value result = getParam(tile, "d", ".ptr");
  if (!spec.hasBatch("d"))
    return result;
  return b.element(
      result, b.mul(b.widen(tile.batch), getParam(tile, "d", ".stride_batch")),
      spec.resultType);
}

void MatmulParams::prefetchMaps() const {
  for (size_t result = 0; result < spec.getNumSets(); ++result)
    for (StringRef name : {"a", "b", "d"})
      if (Value map = getParam(getNameOfResult(name, result) + ".map"))
        NVVM::PrefetchOp::create(b, /*cacheLevel=*/nullptr,
                                 /*evictPriority=*/nullptr, map,
                                 /*predicate=*/Value(), /*tensormap=*/true);
}

//===----------------------------------------------------------------------===//
// Sources of the epilogue
//===----------------------------------------------------------------------===//

FragmentSource MatmulParams::getSource(StringRef name, Type type, bool alongM,
                                       bool alongN, bool alongBatch,
                                       const Tile &tile) const {
  Value pointer = getParam(tile, name, ".ptr");
  if (alongBatch)
    pointer = b.element(
        pointer,
        b.mul(b.widen(tile.batch), getParam(tile, name, ".stride_batch")),
        type);
  return {pointer, getParam(tile, name, ".stride_m"), type, alongM, alongN};
}

void MatmulParams::setSources(Epilogue &epilogue, const Tile &tile) const {
  epilogue.setExtents(getParam(tile, "m"), getParam(tile, "n"));
  size_t last = spec.isDual() ? 1 : 0;
  auto factor = [&](const OperandSpec &operand, const std::string &name,
                    bool isA) -> std::optional<FragmentSource> {
    if (operand.scale == ScaleBlock::Row16)
      return getSource("tensor_" + name, b.getF32Type(), /*alongM=*/false,
                       /*alongN=*/false, /*alongBatch=*/false, tile);
    if (operand.scale == ScaleBlock::None || isBlockedAlongK(operand.scale))
      return std::nullopt;
    bool perRow = operand.scale == ScaleBlock::Row;
    FragmentSource source =
        getSource(name, b.getF32Type(), perRow && isA, perRow && !isA,
                  spec.hasBatch(isA ? "scale_a" : "scale_b"), tile);
    // One factor a row, next to each other.
    source.strideM = b.i64(1);
    return source;
  };
  epilogue.setFactors(factor(spec.a, "scale_a", true),
                      factor(spec.b, getNameOfResult("scale_b", last), false));
  if (spec.isDual())
    epilogue.setFirstFactor(factor(spec.b, "scale_b", false));
  for (auto [i, operand] : llvm::enumerate(spec.operands))
    epilogue.addOperand(getSource("operand" + std::to_string(i),
                                  operand.elementType, operand.alongM,
                                  operand.alongN, operand.alongBatch, tile));
  SmallVector<Value> captures;
  for (size_t i = 0; i < spec.captures.size(); ++i)
    captures.push_back(getParam("capture" + Twine(i)));
  epilogue.setCaptures(captures);
}

//===----------------------------------------------------------------------===//
// Launches that overlap
//===----------------------------------------------------------------------===//

void fp8::beginDependentLaunch(KernelBuilder &b, int64_t multiprocessors) {
  NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
  Value blocks = NVVM::GridDimXOp::create(b, b.getI32Type());
  b.ifThen(b.less(b.mul(blocks, 2), b.i32(multiprocessors + 1)), [&] {
    NVVM::GriddepcontrolOp::create(b,
                                   NVVM::GridDepActionKind::launch_dependents);
  });
}

//===- TransposeValues.cpp - Values of 8 bits with the keys innermost -----===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// wgmma reads operands of 8 bits with K innermost only, and K of the second
// product are the keys. Warps read tiles of values as 8x8 matrices of 16 bits,
// transposed: a thread gets two columns of four keys, and has them as a word of
// each column after two byte permutations.
//
// - The keys of a column are in the order 0 1 8 9 2 3 10 11 ... of each 16:
//   that in which a thread has scores, as an operand in registers.
// - Of 16 columns the even ones come first, so that lines that are written
//   together are neighbours, in different banks. The sums come in this order.
//
//===----------------------------------------------------------------------===//

#include "AttentionContext.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

static Value permute(KernelBuilder &b, Value low, Value high,
                     int64_t selector) {
  return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, b.i32(selector),
                                 NVVM::PermuteMode::DEFAULT);
}

/// Keys of a unit, which a warp moves at a time, and units under way.
static constexpr int64_t kUnit = 32, kUnitsTogether = 2;

ValueTranspose::ValueTranspose(const AttentionContext &kernel, Value warp)
    : kernel(kernel), b(kernel.b), source(kernel.v), target(kernel.transposedV),
      warp(warp) {}

Value ValueTranspose::getVisibleBytes(int64_t first, const Keys &keys) {
  Value key = b.add(b.mul(b.bitAnd(kernel.lane, 3), 2), first);
  Value bytes = b.i32(0);
  for (auto [i, number] : llvm::enumerate(std::array<int64_t, 4>{0, 1, 8, 9})) {
    Value isThere;
    if (keys.end)
      isThere = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt,
                                              b.add(key, number), keys.end);
    if (keys.begin) {
      Value isBehind = b.createOrFold<arith::CmpIOp>(
          arith::CmpIPredicate::sge, b.add(key, number), keys.begin);
      isThere = isThere ? b.bitAnd(isThere, isBehind) : isBehind;
    }
    Value byte = b.i32(static_cast<int32_t>(0xffu << (8 * i)));
    bytes = arith::OrIOp::create(b, bytes, b.select(isThere, byte, b.i32(0)));
  }
  return bytes;
}

void ValueTranspose::transposeColumns(Value source, Value target, Value columns,
                                      const Keys &keys) {
  const SharedMatrix &from = kernel.memory.v, &to = kernel.memory.transposedV;
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  auto words = LLVM::LLVMStructType::getLiteral(
      b.getContext(), SmallVector<Type>(4, b.getI32Type()));
  // A lane reads its key of each unit: the swizzle is that of the lane.
  Value first = b.offset(kernel.shared,
                         b.add(source, from.locate(b, kernel.lane, columns)));
  // And writes a line of one of four matrices: even and odd columns of the
  // first 16 keys, then of the others.
  Value matrix = b.shiftRight(kernel.lane, 3);
  Value line = b.add(b.add(b.mul(columns, 16), b.mul(b.bitAnd(matrix, 1), 8)),
                     b.bitAnd(kernel.lane, 7));
  Value place =
      b.mul(b.bitXor(b.shiftRight(matrix, 1), to.getSwizzle(b, line)), 16);
  Value lines = b.add(target, b.mul(line, to.width));
  int64_t units = from.rows / kUnit;
  for (int64_t group = 0; group < units; group += kUnitsTogether) {
    int64_t end = std::min(group + kUnitsTogether, units);
    SmallVector<Value> loaded;
    for (int64_t unit = group; unit < end; ++unit)
      loaded.push_back(NVVM::LdMatrixOp::create(
          b, words, b.offset(first, b.i32(unit * kUnit * from.width)),
          /*num=*/4, NVVM::MMALayout::col, shape,
          NVVM::LdStMatrixEltType::B16));
    for (int64_t unit = group; unit < end; ++unit) {
      SmallVector<Value> ofKeys, ofColumns;
      for (int64_t i = 0; i < 4; ++i)
        ofKeys.push_back(
            LLVM::ExtractValueOp::create(b, loaded[unit - group], i));
      for (int64_t half : {0, 2})
        for (int64_t selector : {0x6420, 0x7531})
          ofColumns.push_back(
              permute(b, ofKeys[half], ofKeys[half + 1], selector));
      for (size_t i = 0; keys && i < ofColumns.size(); ++i)
        ofColumns[i] =
            b.bitAnd(ofColumns[i],
                     getVisibleBytes(unit * kUnit + (i < 2 ? 0 : 16), keys));
      int64_t bytes = unit * kUnit;
      Value at = b.add(b.add(lines, b.bitXor(place, b.i32(bytes % to.width))),
                       bytes / to.width * to.getBoxBytes());
      NVVM::StMatrixOp::create(b, b.offset(kernel.shared, at), ofColumns,
                               NVVM::MMALayout::row, shape,
                               NVVM::LdStMatrixEltType::B16);
    }
  }
}

void ValueTranspose::transposeTile(Value source, Value target,
                                   const Keys &keys) {
  int64_t columnUnits = kernel.memory.v.rowBytes / 16;
  for (int64_t first = 0; first < columnUnits; first += kProducerWarps) {
    Value columns = b.add(warp, first);
    auto move = [&] { transposeColumns(source, target, columns, keys); };
    if (first + kProducerWarps <= columnUnits)
      move();
    else
      b.ifThen(b.less(columns, b.i32(columnUnits)), move);
  }
}

void ValueTranspose::transpose(RingPosition from, const Keys &keys) {
  const AttentionMemory &memory = kernel.memory;
  RingPosition to{from.stage, b.bitXor(from.phase, b.i32(1))};
  source.waitFull(from);
  target.waitEmpty(to);
  Value sourcePlace = kernel.getPlace(memory.v, memory.offsetV, from.stage);
  Value targetPlace =
      kernel.getPlace(memory.transposedV, memory.offsetTransposedV, from.stage);
  auto move = [&](const Keys &keys) {
    transposeTile(sourcePlace, targetPlace, keys);
  };
  Value hides;
  if (keys.end)
    hides = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, keys.end,
                                          b.i32(memory.v.rows));
  if (keys.begin) {
    Value hidesFirst = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sgt,
                                                     keys.begin, b.i32(0));
    hides = hides ? arith::OrIOp::create(b, hides, hidesFirst).getResult()
                  : hidesFirst;
  }
  if (hides)
    b.ifThenElse(hides, [&] { move(keys); }, [&] { move(Keys()); });
  else
    move(Keys());
  // Tensor cores read it through the async proxy.
  NVVM::FenceProxyOp::create(
      b, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
  NVVM::MBarrierArriveOp::create(b, /*res=*/Type(),
                                 target.getFullBarrier(from.stage),
                                 /*count=*/Value());
  NVVM::SyncWarpOp::create(b, b.i32(-1));
  source.release(from.stage, kernel.lane);
}

//===- AttentionBackwardBlock.cpp - What parts of its gradient share ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardBlock.h"
#include "../Blocks/BulkCopy.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

AffineExpr fp8::addSums(AttentionBackwardSignature &made,
                        const AttentionBackwardSpec &spec, int64_t tileQ,
                        int64_t tileK) {
  KernelSignature &signature = made.signature;
  AffineExpr batch = made.batch, queries = made.queries, keys = made.keys;
  AffineExpr tiles = batch * spec.heads * queries.ceilDiv(tileQ);
  signature.addScratch(
      "sums.ptr", signature.addWorkspace(tiles * (tileQ * spec.headDim * 4),
                                         /*zero=*/true));
  signature.addScratch("counters.ptr",
                       signature.addWorkspace(tiles * 4, /*zero=*/true));
  if (spec.isDeterministic)
    signature.addScratch(
        "tickets.ptr",
        signature.addWorkspace(getAffineConstantExpr(4, batch.getContext()),
                               /*zero=*/true));
  // One more without keys: it writes zeros to dQ.
  AffineExpr noKeys = 1 - keys.ceilDiv(int64_t(1) << 31);
  return batch * spec.headsOfK * (keys.ceilDiv(tileK) + noKeys);
}

/// Sums that have an order are waited for: a block adds its part of a tile of
/// dQ after those of all blocks of its head with keys before its own. These
/// have to run, or to have ended, or it would keep a place for ever that they
/// want: only as many blocks as there is room for run at a time, and CUDA does
/// not say in which order they begin. So a block's keys are not given by its
/// number, but by a ticket that it draws when it runs. Whoever has a lower one
/// has begun, and the lowest of those that have not ended waits for nobody.
void fp8::drawTicket(const AttentionBackwardBlock &kernel, int64_t offset) {
  KernelBuilder &b = kernel.b;
  b.ifThen(b.equal(kernel.thread, 0), [&] {
    // A launch before this one may still draw.
    NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
    // Wraps to 0 with the last block: ready for the next launch.
    Value last = b.sub(NVVM::GridDimXOp::create(b, b.getI32Type()), b.i32(1));
    Value ticket = LLVM::AtomicRMWOp::create(
        b, LLVM::AtomicBinOp::uinc_wrap, kernel.getParam("tickets.ptr"), last,
        LLVM::AtomicOrdering::monotonic, "device");
    b.store(ticket, b.offset(kernel.shared, b.i32(offset)));
  });
}

void fp8::copyTile(const AttentionBackwardBlock &kernel, Ring ring, Value stage,
                   StringRef map, const SwizzledMatrix &matrix, Value place,
                   Value sequence, Value head) {
  KernelBuilder &b = kernel.b;
  ring.expectBytes(stage, b.i32(matrix.getBytes()));
  for (int64_t box = 0; box < matrix.getBoxes(); ++box)
    bulkLoad(b, kernel.getParam(map),
             b.offset(kernel.shared, b.add(place, box * matrix.getBoxBytes())),
             ring.getFullBarrier(stage),
             kernel.getCoordinates(b.i32(box * matrix.getBoxColumns()),
                                   sequence, head, kernel.tiles.batch));
}

static void writeRanges(const AttentionBackwardBlock &kernel, BackwardStep step,
                        Value stage) {
  KernelBuilder &b = kernel.b;
  const AttentionBackwardTiles &tiles = kernel.tiles;
  int64_t tileQ = kernel.tileQ;
  Type i32 = b.getI32Type();
  Value ends[4];
  auto combine = [&](int64_t i, Value value, bool isLargest) {
    if (!ends[i])
      ends[i] = value;
    else if (isLargest)
      ends[i] = b.createOrFold<arith::MaxSIOp>(ends[i], value);
    else
      ends[i] = b.createOrFold<arith::MinSIOp>(ends[i], value);
  };
  // Among the block's keys, of which there are less than 256.
  auto getOwnKey = [&](Value key) {
    Value own = b.sub(key, tiles.key);
    own = b.createOrFold<arith::MaxSIOp>(own, b.i32(0));
    return b.createOrFold<arith::MinSIOp>(own, b.i32(kernel.tileK));
  };
  for (int64_t first = 0; first < tileQ; first += 32) {
    Value query = b.add(b.mul(step.tile, tileQ), b.add(kernel.lane, first));
    auto [from, to] = tiles.loadRange(query);
    Value both = arith::OrIOp::create(
        b, getOwnKey(from), arith::ShLIOp::create(b, getOwnKey(to), b.i32(8)));
    Type i16 = b.getI16Type();
    b.store(arith::TruncIOp::create(b, i16, both),
            b.element(kernel.getRows(stage, 2),
                      b.widen(b.add(kernel.lane, first)), i16));
    combine(0, from, /*isLargest=*/false);
    combine(1, to, /*isLargest=*/true);
    combine(2, from, /*isLargest=*/true);
    combine(3, to, /*isLargest=*/false);
  }
  Value all = LLVM::UndefOp::create(b, VectorType::get({4}, i32));
  for (auto [i, value] : llvm::enumerate(ends)) {
    auto kind = i == 0 || i == 3 ? NVVM::ReduxKind::MIN : NVVM::ReduxKind::MAX;
    Value reduced = NVVM::ReduxOp::create(b, i32, value, kind, b.i32(-1));
    all = LLVM::InsertElementOp::create(b, all, reduced,
                                        b.i32(static_cast<int64_t>(i)));
  }
  b.ifThen(b.equal(kernel.lane, 0), [&] {
    LLVM::StoreOp::create(b, all, kernel.getEnds(stage), /*alignment=*/16);
  });
}

void fp8::writeRows(const AttentionBackwardBlock &kernel, BackwardStep step,
                    Value stage) {
  KernelBuilder &b = kernel.b;
  const AttentionBackwardTiles &tiles = kernel.tiles;
  const AttentionBackwardSpec &spec = kernel.spec;
  int64_t tileQ = kernel.tileQ;
  constexpr float kLog2E = 0x1.715476p0f;
  Type f32 = b.getF32Type();
  Value head = b.add(b.mul(tiles.batch, spec.heads), step.head);
  Value row = b.mul(b.widen(head), b.widen(tiles.queries));
  SmallVector<std::pair<Value, Value>> loaded;
  SmallVector<Value> areThere;
  for (int64_t first = 0; first < tileQ; first += 32) {
    Value query = b.add(b.mul(step.tile, tileQ), b.add(kernel.lane, first));
    areThere.push_back(b.less(query, tiles.queries));
    Value index =
        b.add(row, b.widen(b.min(query, b.sub(tiles.queries, b.i32(1)))));
    auto read = [&](StringRef name) {
      return b.loadConstant(b.element(kernel.getParam(name), index, f32), f32);
    };
    loaded.emplace_back(read("lse.ptr"), read("delta.ptr"));
  }
  for (auto [i, values] : llvm::enumerate(loaded)) {
    // All exponentials of a query that sees nothing, or is not there, are 0.
    Value seesNone = arith::CmpFOp::create(b, arith::CmpFPredicate::OEQ,
                                           values.first, b.f32(-kInfinity));
    Value isSeeing = b.bitAnd(areThere[i], b.bitXor(seesNone, b.i1(true)));
    Value exponent = b.select(isSeeing, b.mulF(values.first, b.f32(-kLog2E)),
                              b.f32(-kInfinity));
    Value delta = b.select(areThere[i],
                           arith::NegFOp::create(b, values.second).getResult(),
                           b.f32(0.0f));
    Value place = b.widen(b.add(kernel.lane, static_cast<int64_t>(i) * 32));
    b.store(exponent, b.element(kernel.getRows(stage, 0), place, f32));
    b.store(delta, b.element(kernel.getRows(stage, 1), place, f32));
  }
  if (spec.hasKeyRanges)
    writeRanges(kernel, step, stage);
}

Value fp8::getResultOf(const AttentionBackwardBlock &kernel, BackwardStep step,
                       Value query, Value column) {
  KernelBuilder &b = kernel.b;
  Value index = b.widen(column);
  for (int64_t dim : {0, 1, 2}) {
    Value number = dim == 0                              ? kernel.tiles.batch
                   : dim == kernel.spec.getSequenceDim() ? query
                                                         : step.head;
    index =
        b.add(index, b.mul(b.widen(number),
                           kernel.getParam("dq.stride" + std::to_string(dim))));
  }
  return b.element(kernel.getParam("dq.ptr"), index, kernel.spec.grad);
}

SmallVector<Value> AttentionBackwardBlock::loadEnds(Value stage) const {
  Value all = LLVM::LoadOp::create(b, VectorType::get({4}, b.getI32Type()),
                                   getEnds(stage), /*alignment=*/16);
  SmallVector<Value> ends;
  for (int64_t i = 0; i < 4; ++i)
    ends.push_back(LLVM::ExtractElementOp::create(b, all, b.i32(i)));
  return ends;
}

Value fp8::hidesSome(const AttentionBackwardBlock &kernel, BackwardStep step,
                     Value stage) {
  KernelBuilder &b = kernel.b;
  const AttentionBackwardTiles &tiles = kernel.tiles;
  if (!kernel.spec.hasKeyRanges)
    return tiles.hides(step);
  SmallVector<Value> ends = kernel.loadEnds(stage);
  auto isBefore = [&](Value lhs, Value rhs) {
    return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::slt, lhs, rhs);
  };
  return arith::OrIOp::create(
      b, isBefore(tiles.key, ends[2]),
      isBefore(ends[3], b.add(tiles.key, kernel.tileK)));
}

//===- AttentionBackwardProducer.cpp - Copies, numbers of rows and codes --===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Blocks/BulkCopy.h"
#include "../Blocks/ExpandCodes.h"
#include "../Blocks/Hazards.h"
#include "AttentionBackwardContext.h"
#include "AttentionProducts.h"

#include <limits>

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

static constexpr float kInfinity = std::numeric_limits<float>::infinity();

namespace {
class BackwardProducer {
public:
  explicit BackwardProducer(const AttentionBackwardContext &kernel)
      : kernel(kernel), b(kernel.b), spec(kernel.spec), memory(kernel.memory),
        tiles(kernel.tiles), tileQ(kernel.config.getTileQ()) {}

  /// What each of the warps does.
  void copyAll();
  void fill(Value warp);

private:
  void copy(Ring ring, Value stage, StringRef map, const SharedMatrix &matrix,
            int64_t offset, Value sequence, Value head);
  /// The numbers of a step's rows.
  void writeRows(BackwardStep step, Value stage);
  void writeRanges(BackwardStep step, Value stage);
  /// Makes numbers of the codes at `from`; this is warp `part` (i32) of two.
  void convert(const SharedMatrix &codes, Value from, const SharedMatrix &to,
               Value place, Value part);
  void arrive(Value barrier) {
    NVVM::MBarrierArriveOp::create(b, /*res=*/Type(), barrier,
                                   /*count=*/Value());
  }

  const AttentionBackwardContext &kernel;
  KernelBuilder &b;
  const AttentionBackwardSpec &spec;
  const AttentionBackwardMemory &memory;
  const AttentionBackwardTiles &tiles;
  int64_t tileQ;
};
} // namespace

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

void BackwardProducer::copy(Ring ring, Value stage, StringRef map,
                            const SharedMatrix &matrix, int64_t offset,
                            Value sequence, Value head) {
  ring.expectBytes(stage, b.i32(matrix.getBytes()));
  loadTile(b, kernel.getParam(map), matrix, kernel.shared, b.i32(offset),
           ring.getFullBarrier(stage), [&](Value column) {
             return kernel.getCoordinates(column, sequence, head, tiles.batch);
           });
}

void BackwardProducer::copyAll() {
  bool hasCodes = memory.hasCodes();
  Ring keys = hasCodes ? kernel.codesOfKeys : kernel.keys;
  Ring queries = hasCodes ? kernel.codesOfQueries : kernel.queries;
  const SharedMatrix &q = hasCodes ? memory.codesOfQ : memory.q;
  copy(keys, b.i32(0), "k.map", hasCodes ? memory.codesOfK : memory.k,
       hasCodes ? memory.offsetCodesOfK : memory.offsetK, tiles.key,
       tiles.headOfK);
  copy(keys, b.i32(1), "v.map", hasCodes ? memory.codesOfV : memory.v,
       hasCodes ? memory.offsetCodesOfV : memory.offsetV, tiles.key,
       tiles.headOfK);
  auto load = [&](Ring ring, RingPosition empty, StringRef map,
                  const SharedMatrix &matrix, int64_t offset,
                  BackwardStep step) {
    ring.waitEmpty(empty);
    ring.expectBytes(empty.stage, b.i32(matrix.getBytes()));
    loadTile(b, kernel.getParam(map), matrix, kernel.shared,
             kernel.getPlace(matrix, offset, empty.stage),
             ring.getFullBarrier(empty.stage), [&](Value column) {
               return kernel.getCoordinates(column, b.mul(step.tile, tileQ),
                                            step.head, tiles.batch);
             });
  };
  tiles.forEachStep(
      queries, /*phase=*/1, [&](BackwardStep step, RingPosition at) {
        load(queries, at, "q.map", q,
             hasCodes ? memory.offsetCodesOfQ : memory.offsetQ, step);
        load(kernel.grads, at, "grad.map", memory.grad, memory.offsetGrad,
             step);
      });
}

//===----------------------------------------------------------------------===//
// Rows, and numbers of codes
//===----------------------------------------------------------------------===//

void BackwardProducer::writeRows(BackwardStep step, Value stage) {
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
    writeRanges(step, stage);
}

void BackwardProducer::writeRanges(BackwardStep step, Value stage) {
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
    return b.createOrFold<arith::MinSIOp>(own, b.i32(kernel.config.getTileK()));
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

void BackwardProducer::convert(const SharedMatrix &codes, Value from,
                               const SharedMatrix &to, Value place,
                               Value part) {
  auto four = VectorType::get({4}, b.getI32Type());
  int64_t chunksOfRow = codes.rowBytes / 16, chunks = codes.rows * chunksOfRow;
  Value first = b.add(b.mul(part, 32), kernel.lane);
  b.loop(
      first, b.i32(chunks), b.i32(64), ValueRange(),
      [&](Value number, ValueRange) -> SmallVector<Value> {
        Value row = b.div(number, chunksOfRow);
        Value chunk = b.rem(number, chunksOfRow);
        Value words = LLVM::LoadOp::create(
            b, four,
            b.offset(kernel.shared, b.add(from, codes.locate(b, row, chunk))),
            /*alignment=*/16);
        for (int64_t half : {0, 1}) {
          Value numbers = LLVM::UndefOp::create(b, four);
          for (int64_t i : {0, 1}) {
            Value word =
                LLVM::ExtractElementOp::create(b, words, b.i32(2 * half + i));
            for (auto [j, pair] : llvm::enumerate(
                     convertCodes(b, word, codes.elementType, spec.grad)))
              numbers = LLVM::InsertElementOp::create(
                  b, numbers, pair, b.i32(2 * i + static_cast<int64_t>(j)));
          }
          Value at = to.locate(b, row, b.add(b.mul(chunk, 2), half));
          LLVM::StoreOp::create(b, numbers,
                                b.offset(kernel.shared, b.add(place, at)),
                                /*alignment=*/16);
        }
        return {};
      });
}

void BackwardProducer::fill(Value warp) {
  Ring queries = kernel.queries, codes = kernel.codesOfQueries;
  Ring codesOfKeys = kernel.codesOfKeys;
  if (!memory.hasCodes()) {
    b.ifThen(b.equal(warp, kernel.kRows), [&] {
      tiles.forEachStep(queries, /*phase=*/1,
                        [&](BackwardStep step, RingPosition empty) {
                          queries.waitEmpty(empty);
                          writeRows(step, empty.stage);
                          arrive(queries.getFullBarrier(empty.stage));
                        });
    });
    // Not a fourth case of a switch, for which LLVM would make a table.
    b.ifThen(b.equal(launder(b, warp), kernel.kConverts),
             [&] { buildEndsOfTiles(kernel, 1); });
    return;
  }
  Value part = b.shiftRight(warp, 1);
  auto end = [&](Ring ring, Value stage) {
    fenceForBulkCopies(b);
    arrive(ring.getFullBarrier(stage));
  };
  for (bool isV : {false, true}) {
    Value stage = b.i32(isV);
    codesOfKeys.waitFull({stage, b.i32(0)});
    convert(isV ? memory.codesOfV : memory.codesOfK,
            b.i32(isV ? memory.offsetCodesOfV : memory.offsetCodesOfK),
            isV ? memory.v : memory.k,
            b.i32(isV ? memory.offsetV : memory.offsetK), part);
    end(kernel.keys, stage);
  }
  tiles.forEachStep(
      queries, /*phase=*/1, [&](BackwardStep step, RingPosition empty) {
        queries.waitEmpty(empty);
        b.ifThen(b.equal(warp, kernel.kRows),
                 [&] { writeRows(step, empty.stage); });
        codes.waitFull({empty.stage, b.bitXor(empty.phase, b.i32(1))});
        convert(memory.codesOfQ,
                kernel.getPlace(memory.codesOfQ, memory.offsetCodesOfQ,
                                empty.stage),
                memory.q,
                kernel.getPlace(memory.q, memory.offsetQ, empty.stage), part);
        end(queries, empty.stage);
        NVVM::SyncWarpOp::create(b, b.i32(-1));
        codes.release(empty.stage, kernel.lane);
      });
}

void sm90::buildAttentionBackwardProducer(
    const AttentionBackwardContext &kernel) {
  KernelBuilder &b = kernel.b;
  Value warp = b.sub(kernel.warp, b.i32(kernel.kConsumerWarps));
  BackwardProducer producer(kernel);
  Value hasKeys = b.less(b.i32(0), kernel.tiles.keys);
  b.ifThenElse(
      b.equal(warp, kernel.kEnds), [&] { buildEndsOfTiles(kernel, 0); },
      [&] {
        b.ifThen(hasKeys, [&] {
          b.ifThenElse(
              b.equal(warp, kernel.kCopies),
              [&] { b.electOne([&] { producer.copyAll(); }); },
              [&] { producer.fill(warp); });
        });
      });
}

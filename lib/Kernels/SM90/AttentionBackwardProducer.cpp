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

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::sm90;

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

void BackwardProducer::copyAll() {
  bool hasCodes = memory.hasCodes();
  Ring keys = hasCodes ? kernel.codesOfKeys : kernel.keys;
  Ring queries = hasCodes ? kernel.codesOfQueries : kernel.queries;
  const SharedMatrix &q = hasCodes ? memory.codesOfQ : memory.q;
  copyTile(kernel, keys, b.i32(0), "k.map",
           hasCodes ? memory.codesOfK : memory.k,
           b.i32(hasCodes ? memory.offsetCodesOfK : memory.offsetK), tiles.key,
           tiles.headOfK);
  copyTile(kernel, keys, b.i32(1), "v.map",
           hasCodes ? memory.codesOfV : memory.v,
           b.i32(hasCodes ? memory.offsetCodesOfV : memory.offsetV), tiles.key,
           tiles.headOfK);
  auto load = [&](Ring ring, RingPosition empty, StringRef map,
                  const SharedMatrix &matrix, int64_t offset,
                  BackwardStep step) {
    ring.waitEmpty(empty);
    copyTile(kernel, ring, empty.stage, map, matrix,
             kernel.getPlace(matrix, offset, empty.stage),
             b.mul(step.tile, tileQ), step.head);
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
                          writeRows(kernel, step, empty.stage);
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
                 [&] { writeRows(kernel, step, empty.stage); });
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

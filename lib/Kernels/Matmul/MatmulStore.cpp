//===- MatmulStore.cpp - Sums of tiles to memory --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulStore.h"
#include "../Blocks/OperandTile.h"
#include "MatmulEpilogue.h"

using namespace mlir;
using namespace mlir::fp8;

static std::optional<BulkTileStore>
createBulkStore(KernelBuilder &b, std::optional<BulkTileStore::Shape> shape,
                const FragmentLayout &fragments, MatmulStore::Staging staging,
                MatmulStore::Warpgroup warpgroup) {
  if (!shape)
    return std::nullopt;
  Value offset =
      b.add(b.mul(warpgroup.number, shape->buffers * shape->rows * kRowBytes),
            staging.offset);
  return BulkTileStore(b, *shape, fragments, staging.shared, offset,
                       warpgroup.barrierId,
                       b.equal(b.bitAnd(warpgroup.warp, 3), 0));
}

MatmulStore::MatmulStore(const MatmulParams &kernel, FragmentLayout fragments,
                         std::optional<BulkTileStore::Shape> shape,
                         Staging staging, Warpgroup warpgroup, bool inPairs)
    : kernel(kernel), b(kernel.b), spec(kernel.spec),
      fragments(std::move(fragments)), partRows(shape ? shape->rows : 0),
      inPairs(inPairs), lane(warpgroup.lane),
      bulk(createBulkStore(b, shape, this->fragments, staging, warpgroup)),
      epilogue(b, getEpilogueShape(spec), this->fragments,
               /*vectorLoads=*/(shape && !shape->transposed) || inPairs) {
  if (spec.isDual())
    epilogue.setFirst(getFirstShape(spec), spec.getDual()->numOperands,
                      spec.getDual()->position);
  if (spec.amax)
    epilogue.resetAmax();
}

void MatmulStore::storePart(const Tile &tile, const Part &part,
                            ValueRange sums) {
  epilogue.beginSubtile(part.fragment);
  auto getPair = [](ValueRange of, int64_t pair) -> Pair {
    return {of[2 * pair], of[2 * pair + 1]};
  };
  ValueRange ofFirst = sums.take_front(spec.isDual() ? sums.size() / 2 : 0);
  ValueRange own = sums.drop_front(ofFirst.size());
  auto packedAt = [&](int64_t pair) {
    return epilogue.evaluate(pair, getPair(own, pair),
                             ofFirst.empty() ? Pair() : getPair(ofFirst, pair));
  };
  if (bulk)
    storeInBulk(tile, part, packedAt);
  else
    storeDirectly(tile, part.fragment, inPairs, packedAt);
  epilogue.endSubtile();
}

void MatmulStore::storeInBulk(const Tile &tile, const Part &part,
                              PackedAt packedAt) {
  SmallVector<Value> origin{part.col ? b.add(tile.n, part.col) : tile.n,
                            part.row ? b.add(tile.m, part.row) : tile.m};
  if (spec.hasBatch("d"))
    origin.push_back(tile.batch);
  auto store = [&](PackedAt packedAt) {
    bulk->storeSubtile(kernel.getParam(tile, "d", ".map"), part.number,
                       part.thread, origin, packedAt);
  };
  if (!tile.rowEnd)
    return store(packedAt);
  // Rows beyond the group's are another one's.
  SmallVector<Value> packed;
  for (size_t pair = 0; pair < fragments.pairs.size(); ++pair)
    packed.push_back(packedAt(pair));
  auto takePacked = [&](int64_t pair) { return packed[pair]; };
  b.ifThenElse(
      b.less(tile.rowEnd, b.add(origin[1], partRows)),
      [&] {
        bulk->skipSubtile();
        storeDirectly(tile, part.fragment, /*inPairs=*/!part.fragment.swapped,
                      takePacked);
      },
      [&] { store(takePacked); });
}

void MatmulStore::storeDirectly(const Tile &tile, const Fragment &fragment,
                                bool inPairs, PackedAt packedAt) {
  DirectTileStore(b, spec.resultType, fragments, kernel.getParam(tile, "m"),
                  kernel.getParam(tile, "n"),
                  kernel.getParam(tile, "d", ".stride_m"), inPairs)
      .storeSubtile(kernel.getResult(tile), fragment, packedAt);
}

void MatmulStore::endTile(const Tile &tile) {
  // Each result has its own.
  if (!spec.amax || !spec.areSiblings())
    return;
  epilogue.storeAmax(kernel.getParam(tile, "amax", ".ptr"), lane);
  epilogue.resetAmax();
}

void MatmulStore::finish() {
  if (bulk)
    bulk->finish();
  if (spec.amax && !spec.areSiblings())
    epilogue.storeAmax(kernel.getParam("amax.ptr"), lane);
}

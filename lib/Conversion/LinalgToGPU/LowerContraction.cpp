//===- LowerContraction.cpp - Warps that add up products ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../LinalgToLoops/ScalarBody.h"
#include "Combiner.h"
#include "StridedKernels.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;

/// The reduction loop that is longest, as far as is known; of equals the
/// innermost, along which inputs lie closest.
static unsigned getLongest(linalg::LinalgOp op, ArrayRef<unsigned> reductions) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  auto getExtent = [&](unsigned dim) {
    return ShapedType::isDynamic(extents[dim])
               ? std::numeric_limits<int64_t>::max()
               : extents[dim];
  };
  unsigned longest = reductions.front();
  for (unsigned dim : reductions)
    if (getExtent(dim) >= getExtent(longest))
      longest = dim;
  return longest;
}

/// A warp for each element of the parallel loops: its lanes take turns along
/// the longest of the others. A CPU that adds up as a GPU does has this order
/// (fp8rt_gemm_warp).
void fp8::lowerContraction(RewriterBase &b, LaunchBuilder &launches,
                           linalg::LinalgOp op, const Combiner &combiner) {
  Location loc = op.getLoc();
  SmallVector<Range> ranges = op.createLoopRanges(b, loc);
  SmallVector<unsigned> parallel, reductions;
  op.getParallelDims(parallel);
  op.getReductionDims(reductions);
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim : parallel)
    sizes.push_back(ranges[dim].size);
  sizes.push_back(b.getIndexAttr(kWarpSize));
  SmallVector<Value> indices =
      launches.build(loc, op->getName().stripDialect(), sizes);
  Value lane = indices.pop_back_val();
  SmallVector<Value> ivs(ranges.size());
  for (auto [dim, index] : llvm::zip_equal(parallel, indices))
    ivs[dim] = index;
  Range &shared = ranges[getLongest(op, reductions)];
  shared.offset = lane;
  shared.stride = b.getIndexAttr(kWarpSize);

  ScalarBody body(b, op);
  Type type = getElementTypeOrSelf(op.getDpsInits().front());
  Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
  Value sum = combiner.widen(
      b, loc, body.buildLoops(ranges, reductions, ivs, zero).front());
  for (int64_t distance = kWarpSize / 2; distance > 0; distance /= 2)
    sum =
        combiner.combine(b, loc, sum, combiner.shuffle(b, loc, sum, distance));
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                            arith::ConstantIndexOp::create(b, loc, 0));
  auto ifOp = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  b.setInsertionPointToStart(ifOp.thenBlock());
  Value init = combiner.widen(b, loc, body.loadInits(ivs).front());
  body.storeInits(combiner.narrow(b, loc, combiner.combine(b, loc, init, sum)),
                  ivs);
}

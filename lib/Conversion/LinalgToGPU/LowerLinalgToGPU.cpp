//===- LowerLinalgToGPU.cpp - Structured operations to launches -----------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../LinalgToLoops/ScalarBody.h"
#include "fp8/Conversion/Passes.h"
#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_LOWERLINALGTOGPUPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Threads of a block: enough to hide latency, and no kernel here shares
/// anything among its warps.
static constexpr int64_t kBlockSize = 256;
static constexpr int64_t kWarpSize = 32;

namespace {
/// Makes launches of kernels that are outlined into one gpu.module.
class LaunchBuilder {
public:
  explicit LaunchBuilder(RewriterBase &b) : b(b) {}

  /// A launch with a thread for each element of `sizes`, in whose body the
  /// builder is left; returns the element's indices.
  SmallVector<Value> build(Location loc, StringRef name,
                           ArrayRef<OpFoldResult> sizes);

private:
  SmallVector<Value> delinearize(Location loc, Value index,
                                 ArrayRef<Value> sizes);

  RewriterBase &b;
  unsigned numKernels = 0;
};
} // namespace

SmallVector<Value> LaunchBuilder::delinearize(Location loc, Value index,
                                              ArrayRef<Value> sizes) {
  SmallVector<Value> indices(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 1;) {
    indices[dim] = arith::RemUIOp::create(b, loc, index, sizes[dim]);
    index = arith::DivUIOp::create(b, loc, index, sizes[dim]);
  }
  if (!sizes.empty())
    indices[0] = index;
  return indices;
}

SmallVector<Value> LaunchBuilder::build(Location loc, StringRef name,
                                        ArrayRef<OpFoldResult> sizes) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value one = constant(1), threads = constant(kBlockSize), count = one;
  SmallVector<Value> extents;
  for (OpFoldResult size : sizes) {
    extents.push_back(getValueOrCreateConstantIndexOp(b, loc, size));
    count = arith::MulIOp::create(b, loc, count, extents.back());
  }
  Value blocks = arith::CeilDivUIOp::create(b, loc, count, threads);
  auto symbol = [&](const Twine &text) {
    return FlatSymbolRefAttr::get(b.getContext(), text.str());
  };
  auto launch = gpu::LaunchOp::create(
      b, loc, blocks, one, one, threads, one, one,
      /*dynamicSharedMemorySize=*/Value(), /*asyncTokenType=*/Type(),
      /*asyncDependencies=*/ValueRange(), TypeRange(), TypeRange(), Value(),
      Value(), Value(), symbol(kKernelModuleName),
      symbol(name + "_" + Twine(numKernels++)));
  b.setInsertionPointToStart(&launch.getBody().front());
  Value index = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, launch.getBlockIds().x, threads),
      launch.getThreadIds().x);
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, count);
  auto ifOp = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
  gpu::TerminatorOp::create(b, loc);
  b.setInsertionPointToStart(ifOp.thenBlock());
  return delinearize(loc, index, extents);
}

/// Whether `op` takes one unsigned maximum over several loops, as amaxes do.
static bool isUnsignedMaximum(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() < 2)
    return false;
  BlockArgument carried = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Operation *combiner =
      op.getBlock()->getTerminator()->getOperand(0).getDefiningOp();
  return isa_and_present<arith::MaxUIOp>(combiner) && carried.hasOneUse() &&
         *carried.user_begin() == combiner && carried.getType().isInteger(32);
}

/// A maximum does not depend on the order: a thread takes that of the innermost
/// loop, and adds it to the result atomically.
static void lowerMaximum(RewriterBase &b, LaunchBuilder &launches,
                         linalg::LinalgOp op) {
  Location loc = op.getLoc();
  SmallVector<Range> ranges = op.createLoopRanges(b, loc);
  SmallVector<unsigned> reductions;
  op.getReductionDims(reductions);
  unsigned innermost = reductions.back();
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim = 0; dim < ranges.size(); ++dim)
    if (dim != innermost)
      sizes.push_back(ranges[dim].size);
  SmallVector<Value> ivs = launches.build(loc, "maximum", sizes);
  ivs.insert(ivs.begin() + innermost, Value());
  Value zero = arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(0));
  ScalarBody body(b, op);
  Value maximum = body.buildLoops(ranges, innermost, ivs, zero).front();
  OpOperand *init = op.getDpsInitOperand(0);
  memref::AtomicRMWOp::create(b, loc, arith::AtomicRMWKind::maxu, maximum,
                              init->get(), body.getIndices(init, ivs));
}

static Value skipCasts(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<arith::ExtFOp, arith::TruncFOp>(op))
      break;
    value = op->getOperand(0);
  }
  return value;
}

/// Whether `op` adds up what it computes of several inputs, as matrix products
/// and convolutions do.
static bool isSumOfProducts(linalg::LinalgOp op) {
  if (op.getNumDpsInits() != 1 || op.getNumDpsInputs() < 2 ||
      op.getNumReductionLoops() == 0)
    return false;
  BlockArgument carried = op.getMatchingBlockArgument(op.getDpsInitOperand(0));
  Operation *sum =
      skipCasts(op.getBlock()->getTerminator()->getOperand(0)).getDefiningOp();
  return isa_and_present<arith::AddFOp, arith::AddIOp>(sum) &&
         carried.hasOneUse() &&
         llvm::any_of(sum->getOperands(),
                      [&](Value term) { return skipCasts(term) == carried; });
}

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

/// What the lane `distance` away has of `value`; lanes exchange 32 bits at a
/// time.
static Value shuffle(OpBuilder &b, Location loc, Value value,
                     int64_t distance) {
  auto exchange = [&](Value word) {
    return gpu::ShuffleOp::create(b, loc, word, distance, kWarpSize,
                                  gpu::ShuffleMode::XOR)
        .getShuffleResult();
  };
  Type type = value.getType();
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 32)
    return exchange(value);
  Type whole = b.getIntegerType(bits);
  if (type != whole)
    value = arith::BitcastOp::create(b, loc, whole, value);
  Value result;
  for (unsigned begin = 0; begin < bits; begin += 32) {
    Value place =
        arith::ConstantOp::create(b, loc, b.getIntegerAttr(whole, begin));
    Value word = exchange(arith::TruncIOp::create(
        b, loc, b.getI32Type(), arith::ShRUIOp::create(b, loc, value, place)));
    Value part = arith::ShLIOp::create(
        b, loc, arith::ExtUIOp::create(b, loc, whole, word), place);
    result =
        result ? arith::OrIOp::create(b, loc, result, part).getResult() : part;
  }
  return type == whole
             ? result
             : arith::BitcastOp::create(b, loc, type, result).getResult();
}

/// The sum of `value`, of a type that `getSumType` gives, over the lanes of a
/// warp, in the same order in every run.
static Value sumOverWarp(OpBuilder &b, Location loc, Value value) {
  for (int64_t distance = kWarpSize / 2; distance > 0; distance /= 2) {
    Value other = shuffle(b, loc, value, distance);
    value = isa<FloatType>(value.getType())
                ? arith::AddFOp::create(b, loc, value, other).getResult()
                : arith::AddIOp::create(b, loc, value, other).getResult();
  }
  return value;
}

/// What numbers of `type` are added up in over the lanes of a warp: in whole
/// words. Integers wrap there as they would.
static Type getSumType(Type type) {
  Builder b(type.getContext());
  if (type.isIndex())
    return b.getI64Type();
  unsigned bits = type.getIntOrFloatBitWidth();
  if (isa<FloatType>(type))
    return bits < 32 ? b.getF32Type() : type;
  return b.getIntegerType(llvm::alignTo(bits, 32));
}

/// `value`, an integer or a float, as one of `type`.
static Value convert(OpBuilder &b, Location loc, Value value, Type type) {
  Type from = value.getType();
  if (from == type)
    return value;
  if (from.isIndex() || type.isIndex())
    return arith::IndexCastOp::create(b, loc, type, value);
  bool isWider = from.getIntOrFloatBitWidth() < type.getIntOrFloatBitWidth();
  if (isa<FloatType>(type))
    return isWider ? arith::ExtFOp::create(b, loc, type, value).getResult()
                   : arith::TruncFOp::create(b, loc, type, value).getResult();
  return isWider ? arith::ExtUIOp::create(b, loc, type, value).getResult()
                 : arith::TruncIOp::create(b, loc, type, value).getResult();
}

/// A warp for each element of the parallel loops: its lanes take turns along
/// the longest of the others, so that the sum is in another order than the
/// CPU's.
static void lowerSum(RewriterBase &b, LaunchBuilder &launches,
                     linalg::LinalgOp op) {
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
  Value sum = body.buildLoops(ranges, reductions, ivs, zero).front();
  Type wide = getSumType(type);
  sum = sumOverWarp(b, loc, convert(b, loc, sum, wide));
  Value isFirst =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, lane,
                            arith::ConstantIndexOp::create(b, loc, 0));
  auto ifOp = scf::IfOp::create(b, loc, isFirst, /*withElseRegion=*/false);
  b.setInsertionPointToStart(ifOp.thenBlock());
  Value init = convert(b, loc, body.loadInits(ivs).front(), wide);
  sum = isa<FloatType>(wide)
            ? arith::AddFOp::create(b, loc, init, sum).getResult()
            : arith::AddIOp::create(b, loc, init, sum).getResult();
  body.storeInits(convert(b, loc, sum, type), ivs);
}

/// A thread for each element of the parallel loops, in which the others run in
/// their order: sums are those of the CPU's loops, bit by bit.
static void lowerToLaunch(RewriterBase &b, LaunchBuilder &launches,
                          linalg::LinalgOp op) {
  Location loc = op.getLoc();
  SmallVector<Range> ranges = op.createLoopRanges(b, loc);
  SmallVector<unsigned> parallel, reductions;
  op.getParallelDims(parallel);
  op.getReductionDims(reductions);
  SmallVector<OpFoldResult> sizes;
  for (unsigned dim : parallel)
    sizes.push_back(ranges[dim].size);
  SmallVector<Value> indices =
      launches.build(loc, op->getName().stripDialect(), sizes);
  SmallVector<Value> ivs(ranges.size());
  for (auto [dim, index] : llvm::zip_equal(parallel, indices))
    ivs[dim] = index;
  ScalarBody body(b, op);
  // Outputs that a reduction only overwrites have no initial value to carry.
  if (!body.readsInits())
    for (unsigned dim : std::exchange(reductions, {})) {
      auto loop = scf::ForOp::create(
          b, loc, getValueOrCreateConstantIndexOp(b, loc, ranges[dim].offset),
          getValueOrCreateConstantIndexOp(b, loc, ranges[dim].size),
          getValueOrCreateConstantIndexOp(b, loc, ranges[dim].stride));
      b.setInsertionPointToStart(loop.getBody());
      ivs[dim] = loop.getInductionVar();
    }
  SmallVector<Value> values =
      body.buildLoops(ranges, reductions, ivs, body.loadInits(ivs));
  body.storeInits(values, ivs);
}

/// Whether `op` reads or writes an element through its address, which is one of
/// the device's. Addresses themselves, those of a state's rows, are in memory
/// of the host.
static bool isElementAccess(Operation *op) {
  auto load = dyn_cast<LLVM::LoadOp>(op);
  return isa<LLVM::StoreOp>(op) ||
         (load && !isa<LLVM::LLVMPointerType>(load.getType()));
}

/// What keeps a thread from running the iterations of `op`, which are to work
/// on numbers and on elements in memory; null if nothing does.
static Operation *findNoScalarCode(scf::ForallOp op) {
  Operation *found = nullptr;
  op.getBody()->walk([&](Operation *inner) {
    if (isa<memref::LoadOp, memref::StoreOp, scf::ForOp, scf::IfOp,
            scf::WhileOp, scf::InParallelOp>(inner) ||
        isElementAccess(inner) || isPure(inner))
      return WalkResult::advance();
    found = inner;
    return WalkResult::interrupt();
  });
  return found;
}

/// Whether the host cannot run `op`, which has addresses of the device.
static bool hasElementAccess(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isElementAccess(inner) ? WalkResult::interrupt()
                                      : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Whether `op` is a loop whose iterations can be threads; failure if they have
/// to be and cannot.
static FailureOr<bool> isScalarLoop(Operation *op) {
  auto loop = dyn_cast<scf::ForallOp>(op);
  if (!loop || !loop.getOutputs().empty())
    return false;
  Operation *obstacle = findNoScalarCode(loop);
  if (obstacle && hasElementAccess(loop))
    return obstacle->emitOpError("expected arithmetic on numbers in a loop "
                                 "over slots, which threads of a GPU run");
  return !obstacle;
}

/// A thread for each iteration, which do not depend on each other.
static void lowerToLaunch(RewriterBase &b, LaunchBuilder &launches,
                          scf::ForallOp op) {
  Location loc = op.getLoc();
  AffineExpr lower, upper, step;
  bindSymbols(b.getContext(), lower, upper, step);
  SmallVector<OpFoldResult> sizes;
  for (auto [first, end, distance] : llvm::zip_equal(
           op.getMixedLowerBound(), op.getMixedUpperBound(), op.getMixedStep()))
    sizes.push_back(affine::makeComposedFoldedAffineApply(
        b, loc, (upper - lower).ceilDiv(step), {first, end, distance}));
  SmallVector<Value> indices = launches.build(loc, "forall", sizes);
  SmallVector<Value> ivs;
  for (auto [index, first, distance] :
       llvm::zip_equal(indices, op.getMixedLowerBound(), op.getMixedStep())) {
    Value start = getValueOrCreateConstantIndexOp(b, loc, first);
    Value stride = getValueOrCreateConstantIndexOp(b, loc, distance);
    ivs.push_back(arith::AddIOp::create(
        b, loc, start, arith::MulIOp::create(b, loc, index, stride)));
  }
  b.eraseOp(op.getTerminator());
  b.inlineBlockBefore(op.getBody(), b.getInsertionBlock(),
                      b.getInsertionPoint(), ivs);
}

/// The host cannot write to the device's memory.
static void lowerToLaunch(RewriterBase &b, LaunchBuilder &launches,
                          memref::StoreOp op) {
  launches.build(op.getLoc(), "store", {});
  memref::StoreOp::create(b, op.getLoc(), op.getValue(), op.getMemRef(),
                          op.getIndices());
}

namespace {
struct LowerLinalgToGPUPass
    : fp8::impl::LowerLinalgToGPUPassBase<LowerLinalgToGPUPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

void LowerLinalgToGPUPass::runOnOperation() {
  IRRewriter rewriter(&getContext());
  replaceStridedCopies(rewriter, getOperation());
  SmallVector<Operation *> ops;
  WalkResult result =
      getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
        auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
        FailureOr<bool> isLoop = isScalarLoop(op);
        if (failed(isLoop))
          return WalkResult::interrupt();
        if (*isLoop || (linalgOp && linalgOp.hasPureBufferSemantics()) ||
            (isa<memref::StoreOp>(op) && !op->getParentOfType<gpu::LaunchOp>()))
          ops.push_back(op);
        return *isLoop ? WalkResult::skip() : WalkResult::advance();
      });
  if (result.wasInterrupted())
    return signalPassFailure();
  LaunchBuilder launches(rewriter);
  for (Operation *op : ops) {
    rewriter.setInsertionPoint(op);
    auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
    if (linalgOp && isUnsignedMaximum(linalgOp))
      lowerMaximum(rewriter, launches, linalgOp);
    else if (linalgOp && isSumOfProducts(linalgOp))
      lowerSum(rewriter, launches, linalgOp);
    else if (linalgOp)
      lowerToLaunch(rewriter, launches, linalgOp);
    else if (auto loop = dyn_cast<scf::ForallOp>(op))
      lowerToLaunch(rewriter, launches, loop);
    else
      lowerToLaunch(rewriter, launches, cast<memref::StoreOp>(op));
    rewriter.eraseOp(op);
  }
}

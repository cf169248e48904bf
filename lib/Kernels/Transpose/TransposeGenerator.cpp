//===- TransposeGenerator.cpp - Builds transposing kernels ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
// A block moves one tile: 32 words of 32 groups of rows, a group being as many
// rows as a word has elements, so that the words of a group are a square.
//
//   read:   a warp, a group: a word of each row a lane, coalesced
//           the squares are transposed in registers
//   shared: column c of the tile is 32 words, one for each group
//   write:  a warp, a column: a word a lane, coalesced
//
// Word g of column c lies at g ^ (c / elements of a word). When a warp writes
// its group, lanes differ in c, when it reads a column they differ in g, and in
// both cases in the bank.

#include "TransposeGenerator.h"
#include "../Blocks/KernelBuilder.h"
#include "../Blocks/KernelSignature.h"
#include "../MachineLookup.h"
#include "TransposeDialect.h"
#include "TransposeSpec.h"

using namespace mlir;
using namespace mlir::fp8;

/// Words of a tile's row, and groups of rows.
static constexpr int64_t kWords = 32;

namespace {
class TransposeKernel {
public:
  TransposeKernel(KernelBuilder &b, const TransposeSpec &spec,
                  TransposeConfigAttr config, llvm::StringMap<Value> params,
                  Value shared);

  void build(bool overlaps);

private:
  Value getParam(StringRef name) const { return params.lookup(name); }
  /// The words of one group at this lane, `group` counting from the tile's
  /// first.
  SmallVector<Value> readGroup(Value group);
  SmallVector<Value> transposeSquare(ArrayRef<Value> words);
  void writeColumn(Value column);
  Value permute(Value low, Value high, int64_t selector);

  KernelBuilder &b;
  const TransposeSpec &spec;
  llvm::StringMap<Value> params;
  Value shared, warp, lane;
  /// Elements of a word.
  int64_t perWord;
  int64_t warps;
  /// First row and column of the tile.
  Value row, column;
  Value source, destination;
};
} // namespace

TransposeKernel::TransposeKernel(KernelBuilder &b, const TransposeSpec &spec,
                                 TransposeConfigAttr config,
                                 llvm::StringMap<Value> params, Value shared)
    : b(b), spec(spec), params(std::move(params)), shared(shared),
      perWord(4 / spec.getElementBytes()), warps(config.getWarps()) {
  Value thread = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  warp = b.shiftRight(thread, 5);
  lane = b.bitAnd(thread, 31);
  Value tile = NVVM::BlockIdXOp::create(b, b.getI32Type());
  int64_t extent = kWords * perWord;
  Value tilesAcross = b.ceilDiv(getParam("columns"), extent);
  Value tilesDown = b.ceilDiv(getParam("rows"), extent);
  column = b.mul(b.rem(tile, tilesAcross), extent);
  Value rest = b.div(tile, tilesAcross);
  row = b.mul(b.rem(rest, tilesDown), extent);
  source = getParam("x.ptr");
  destination = getParam("y.ptr");
  if (!spec.batched)
    return;
  Value batch = b.widen(b.div(rest, tilesDown));
  source = b.element(source, b.mul(batch, getParam("x.stride_batch")),
                     spec.elementType);
  destination = b.element(destination, b.mul(batch, getParam("y.stride_batch")),
                          spec.elementType);
}

Value TransposeKernel::permute(Value low, Value high, int64_t selector) {
  return NVVM::PermuteOp::create(b, b.getI32Type(), low, high, b.i32(selector),
                                 NVVM::PermuteMode::DEFAULT);
}

SmallVector<Value> TransposeKernel::readGroup(Value group) {
  SmallVector<Value> words;
  Value rows = getParam("rows"), columns = getParam("columns");
  // What lies outside is read again from inside, and not written.
  Value lastWord = b.sub(columns, b.i32(perWord));
  Value at = b.min(b.add(column, b.mul(lane, perWord)), lastWord);
  for (int64_t i = 0; i < perWord; ++i) {
    Value inside = b.min(b.add(b.add(row, b.mul(group, perWord)), i),
                         b.sub(rows, b.i32(1)));
    Value index =
        b.add(b.mul(b.widen(inside), getParam("x.stride")), b.widen(at));
    words.push_back(b.loadConstant(b.element(source, index, spec.elementType),
                                   b.getI32Type()));
  }
  return words;
}

SmallVector<Value> TransposeKernel::transposeSquare(ArrayRef<Value> words) {
  switch (perWord) {
  case 1:
    return {words[0]};
  case 2:
    return {permute(words[0], words[1], 0x5410),
            permute(words[0], words[1], 0x7632)};
  default: {
    // Pairs of rows, then pairs of pairs.
    Value low01 = permute(words[0], words[1], 0x5140);
    Value high01 = permute(words[0], words[1], 0x7362);
    Value low23 = permute(words[2], words[3], 0x5140);
    Value high23 = permute(words[2], words[3], 0x7362);
    return {permute(low01, low23, 0x5410), permute(low01, low23, 0x7632),
            permute(high01, high23, 0x5410), permute(high01, high23, 0x7632)};
  }
  }
}

void TransposeKernel::writeColumn(Value inTile) {
  Value place =
      b.add(b.mul(inTile, kWords), b.bitXor(lane, b.div(inTile, perWord)));
  Value word = b.load(b.offset(shared, b.mul(place, 4)), b.getI32Type());
  Value toRow = b.add(column, inTile);
  Value toColumn = b.add(row, b.mul(lane, perWord));
  Value inside = arith::AndIOp::create(b, b.less(toRow, getParam("columns")),
                                       b.less(toColumn, getParam("rows")));
  Value index =
      b.add(b.mul(b.widen(toRow), getParam("y.stride")), b.widen(toColumn));
  b.ifThen(inside, [&] {
    b.store(word, b.element(destination, index, spec.elementType));
  });
}

void TransposeKernel::build(bool overlaps) {
  if (overlaps) {
    NVVM::GriddepcontrolOp::create(b, NVVM::GridDepActionKind::wait);
    NVVM::GriddepcontrolOp::create(b,
                                   NVVM::GridDepActionKind::launch_dependents);
  }
  // All loads are under way before the first is waited for.
  SmallVector<std::pair<Value, SmallVector<Value>>> groups;
  for (int64_t i = 0; i < kWords; i += warps) {
    Value group = b.add(warp, i);
    groups.emplace_back(group, readGroup(group));
  }
  for (auto &[group, words] : groups)
    for (auto [i, word] : llvm::enumerate(transposeSquare(words))) {
      Value inTile = b.add(b.mul(lane, perWord), int64_t(i));
      Value place = b.add(b.mul(inTile, kWords), b.bitXor(group, lane));
      b.store(word, b.offset(shared, b.mul(place, 4)));
    }
  NVVM::BarrierOp::create(b);
  for (int64_t i = 0; i < kWords * perWord; i += warps)
    writeColumn(b.add(warp, i));
  LLVM::ReturnOp::create(b, ValueRange());
}

//===----------------------------------------------------------------------===//
// The generator
//===----------------------------------------------------------------------===//

static KernelSignature getSignature(MLIRContext *context,
                                    const TransposeSpec &spec,
                                    TransposeConfigAttr config,
                                    KernelSignature::Launch &launch) {
  int64_t rank = spec.getRank();
  KernelSignature signature(
      context, {KernelArgumentAttr::get(context, "x", spec.elementType, rank,
                                        KernelAccess::Read, /*alignment=*/4),
                KernelArgumentAttr::get(context, "y", spec.elementType, rank,
                                        KernelAccess::Write, /*alignment=*/4)});
  int64_t perWord = 4 / spec.getElementBytes();
  AffineExpr rows = signature.addExtent("rows", "x", rank - 2);
  AffineExpr columns = signature.addExtent("columns", "x", rank - 1);
  AffineExpr tiles =
      rows.ceilDiv(kWords * perWord) * columns.ceilDiv(kWords * perWord);
  for (StringRef name : {"x", "y"}) {
    signature.addPointer(name + ".ptr", name);
    signature.addStride(name + ".stride", name, rank - 2);
    if (spec.batched)
      signature.addStride(name + ".stride_batch", name, 0);
  }
  if (spec.batched)
    tiles = tiles * signature.addExtent("batch", "x", 0);
  signature.addValue("rows", rows, 32);
  signature.addValue("columns", columns, 32);
  launch.grid = {tiles};
  launch.block = config.getWarps() * 32;
  launch.sharedBytes = kWords * perWord * kWords * 4;
  return signature;
}

namespace {
class TransposeGenerator : public KernelGenerator {
public:
  SmallVector<KernelConfigAttrInterface>
  getCandidates(const KernelSpec &spec, GPUTargetAttr target,
                bool exhaustive) const override {
    int64_t most = getMachine(target).getTranspose().getWarpBytes() /
                   cast<TransposeSpec>(spec).getElementBytes();
    SmallVector<KernelConfigAttrInterface> candidates;
    for (int64_t warps : {most, 2 * most, most / 2})
      candidates.push_back(
          TransposeConfigAttr::get(target.getContext(), warps));
    return candidates;
  }

  LogicalResult checkFit(const KernelSpec &spec,
                         KernelConfigAttrInterface config, GPUTargetAttr target,
                         std::string &reason) const override {
    if (isa<TransposeConfigAttr>(config))
      return success();
    llvm::raw_string_ostream(reason)
        << "expected a #fp8_transpose.config, but got " << config;
    return failure();
  }

  /// What it moves takes the same time anyway; the first candidate is as good
  /// as any.
  double getCost(const KernelSpec &spec, KernelConfigAttrInterface config,
                 GPUTargetAttr target) const override {
    const auto &transpose = cast<TransposeSpec>(spec);
    return 2.0 * transpose.batch * transpose.rows * transpose.columns *
           transpose.getElementBytes() /
           (target.getMemoryRate() * target.getMultiprocessors());
  }

  std::string getLabel(const KernelSpec &spec) const override {
    const auto &transpose = cast<TransposeSpec>(spec);
    return "b" + std::to_string(transpose.getElementBytes()) +
           (transpose.batched ? "_batch" : "");
  }

  FailureOr<LLVM::LLVMFuncOp> build(OpBuilder &builder, Location loc,
                                    const KernelSpec &spec,
                                    KernelConfigAttrInterface config,
                                    GPUTargetAttr target, StringRef name,
                                    std::string &reason) const override {
    if (failed(checkFit(spec, config, target, reason)))
      return failure();
    const auto &transpose = cast<TransposeSpec>(spec);
    OpBuilder::InsertionGuard guard(builder);
    KernelSignature::Launch launch;
    KernelSignature signature =
        getSignature(builder.getContext(), transpose,
                     cast<TransposeConfigAttr>(config), launch);
    launch.overlap = hasDependentLaunches(target);
    LLVM::LLVMFuncOp function =
        signature.create(builder, loc, name, launch, KernelMath::Exact);
    builder.setInsertionPointToStart(function.addEntryBlock(builder));
    KernelBuilder b(loc, builder);
    Value shared = LLVM::AddressOfOp::create(
        b, LLVM::LLVMPointerType::get(builder.getContext(), 3),
        KernelSignature::kSharedName);
    TransposeKernel(b, transpose, cast<TransposeConfigAttr>(config),
                    signature.getParams(function), shared)
        .build(launch.overlap);
    return function;
  }
};
} // namespace

std::unique_ptr<KernelGenerator> fp8::createTransposeGenerator() {
  return std::make_unique<TransposeGenerator>();
}

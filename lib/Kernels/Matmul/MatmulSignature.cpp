//===- MatmulSignature.cpp - What matmul kernels take ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulSignature.h"
#include "MatmulArguments.h"

using namespace mlir;
using namespace mlir::fp8;

/// 256 bytes are no faster, and lose 15 % where K is no multiple of 128.
static constexpr int64_t kL2Bytes = 128;

/// Kernels with bulk stores read factors per row and epilogue operands in
/// pairs.
static int64_t getPairAlignment(const MatmulForm &form) {
  return form.storeBytes || form.storesInPairs ? 8 : 1;
}

namespace {
class SignatureBuilder {
public:
  SignatureBuilder(KernelSignature &signature, const MatmulSpec &spec,
                   const MatmulForm &form)
      : signature(signature), spec(spec), form(form) {}

  void build(KernelSignature::Launch &launch);

private:
  void addExtents();
  void addParams(size_t result);
  void addResult();
  void addFactors(StringRef name, const OperandSpec &operand);
  void addEpilogueOperands();
  void addOperandMap(StringRef name, const OperandTile &tile);
  void addTailMap(StringRef name, const OperandTile &tile);
  void addMap(StringRef name, ArrayRef<int64_t> box, int64_t swizzle);
  /// The name for the current result, if it has one of its own.
  std::optional<std::string> getName(StringRef name) const;

  KernelSignature &signature;
  const MatmulSpec &spec;
  const MatmulForm &form;
  /// Extents of each result.
  SmallVector<AffineExpr> m, n;
  AffineExpr k, batch;
  size_t result = 0;
};
} // namespace

std::optional<std::string> SignatureBuilder::getName(StringRef name) const {
  if (result >= spec.getCount(name))
    return std::nullopt;
  return getNameOfResult(name, result);
}

void SignatureBuilder::addExtents() {
  auto addExtent = [&](StringRef name, StringRef argument, Major major,
                       bool isRows) {
    bool isLast = isRows == (major == Major::MN);
    int64_t rank = spec.getRank(argument);
    return signature.addExtent(name, argument, isLast ? rank - 1 : rank - 2);
  };
  for (result = 0; result < spec.getNumResults(); ++result) {
    auto addRows = [&](StringRef name, StringRef argument, Major major,
                       SmallVectorImpl<AffineExpr> &extents) {
      std::optional<std::string> own = getName(name);
      extents.push_back(own ? addExtent(*own, *getName(argument), major,
                                        /*isRows=*/true)
                            : extents.front());
    };
    addRows("m", "a", spec.a.major, m);
    addRows("n", "b", spec.b.major, n);
  }
  k = addExtent("k", "a", spec.a.major, /*isRows=*/false) * spec.a.getSharing();
  if (spec.batched)
    batch = signature.addExtent("batch", "a", 0);
  if (spec.isGrouped())
    batch = signature.addExtent("bounds", spec.getBoundsName(), 0) -
            (spec.isMasked() ? 0 : 1);
}

void SignatureBuilder::addMap(StringRef name, ArrayRef<int64_t> box,
                              int64_t swizzle) {
  SmallVector<int64_t> extents(box);
  if (spec.hasBatch(name))
    extents.push_back(1);
  if (std::optional<std::string> own = getName(name))
    signature.addTensorMap(*own + ".map", *own, extents, swizzle, kL2Bytes);
}

void SignatureBuilder::addOperandMap(StringRef name, const OperandTile &tile) {
  if (form.readsByThreads) {
    if (std::optional<std::string> own = getName(name)) {
      signature.addPointer(*own + ".ptr", *own);
      signature.addStride(*own + ".stride_row", *own, spec.getRank(name) - 2);
      if (spec.hasBatch(name))
        signature.addStride(*own + ".stride_batch", *own, 0);
    }
    return;
  }
  int64_t swizzle = tile.getSwizzle();
  addMap(name, tile.getBox(), swizzle == 16 ? 0 : swizzle);
}

void SignatureBuilder::addTailMap(StringRef name, const OperandTile &tile) {
  std::optional<std::string> own = getName(name);
  if (!own || !endsWithTensor(spec, name) || !tile.canTakeTail())
    return;
  SmallVector<int64_t> box = tile.getBox();
  if (spec.hasBatch(name))
    box.push_back(1);
  signature.addTensorMap(*own + ".tail", *own, box, tile.getSwizzle(), kL2Bytes,
                         /*tail=*/1);
}

void SignatureBuilder::addResult() {
  if (!getName("d"))
    return;
  // Subtiles that rows of other groups share are stored element by element.
  if (!form.storeBytes || spec.getGrouping() == Grouping::Rows) {
    std::string d = *getName("d");
    signature.addPointer(d + ".ptr", d);
    signature.addStride(d + ".stride_m", d, spec.getRank("d") - 2);
    if (spec.hasBatch("d"))
      signature.addStride(d + ".stride_batch", d, 0);
  }
  if (!form.storeBytes)
    return;
  int64_t bytes = spec.resultType.getIntOrFloatBitWidth() / 8;
  addMap("d", {form.storeBytes / bytes, form.storeRows},
         form.storeBytes == 16 ? 0 : form.storeBytes);
}

void SignatureBuilder::addFactors(StringRef name, const OperandSpec &operand) {
  std::optional<std::string> own = getName(name);
  bool isLifted = copiesFactors(operand.lifting);
  if ((operand.scale == ScaleBlock::None && !isLifted) || !own)
    return;
  signature.addPointer(*own + ".ptr", *own);
  int64_t rank = spec.getRank(name);
  // Where rows begin within words they are dense: readers count on it.
  bool isDense = isLifted && beginWithinWords(spec);
  if (isLifted && !isDense)
    signature.addStride(*own + ".stride_row", *own, rank - 2);
  if (isBlockedAlongK(operand.scale)) {
    bool isKMajor = operand.factorMajor == Major::K;
    signature.addStride(*own + ".stride_row", *own, rank - (isKMajor ? 2 : 1));
    signature.addStride(*own + ".stride_k", *own, rank - (isKMajor ? 1 : 2));
  }
  if (spec.hasBatch(name) && !isDense)
    signature.addStride(*own + ".stride_batch", *own, 0);
  if (operand.scale == ScaleBlock::Row16) {
    std::string ofTensor = *getName("tensor_" + name.str());
    signature.addPointer(ofTensor + ".ptr", ofTensor);
  }
}

void SignatureBuilder::addEpilogueOperands() {
  for (auto [i, operand] : llvm::enumerate(spec.operands)) {
    std::optional<std::string> own = getName("operand" + std::to_string(i));
    if (!own)
      continue;
    const std::string &name = *own;
    signature.addPointer(name + ".ptr", name);
    if (operand.alongM)
      signature.addStride(name + ".stride_m", name, operand.rank - 2);
    if (operand.alongBatch)
      signature.addStride(name + ".stride_batch", name, 0);
  }
}

void SignatureBuilder::addParams(size_t result) {
  this->result = result;
  addOperandMap("a", form.a);
  addOperandMap("b", form.b);
  if (form.exponents)
    addMap("exponents", {form.exponents, 1}, /*swizzle=*/0);
  addResult();
  addFactors("scale_a", spec.a);
  addFactors("scale_b", spec.b);
  for (auto [name, rows] :
       {std::pair<StringRef, int64_t>{"scale_a", form.factorsOfA},
        {"scale_b", form.factorsOfB}})
    if (rows)
      addMap(name, {rows, 1}, /*swizzle=*/0);
  addEpilogueOperands();
}

void SignatureBuilder::build(KernelSignature::Launch &launch) {
  addExtents();
  AffineExpr tiles = getAffineConstantExpr(0, k.getContext()), sums = tiles;
  for (auto [ofM, ofN] : llvm::zip_equal(m, n)) {
    AffineExpr tilesM = ofM.ceilDiv(form.clusterM);
    // Each group may begin a tile that another one's rows would fill, or fill
    // all that it has.
    if (spec.getGrouping() == Grouping::Rows)
      tilesM = spec.isMasked() ? tilesM * batch : tilesM + batch;
    tiles = tiles + tilesM * ofN.ceilDiv(spec.getResultCols(form.clusterN));
    sums = sums + ofM * ofN * (spec.isDual() ? 2 : 1);
  }
  for (size_t result = 0; result < spec.getNumSets(); ++result)
    addParams(result);
  for (auto [i, value] : llvm::enumerate(spec.captures))
    signature.addCapture("capture" + Twine(i), value.getType());
  for (result = 0; spec.amax && result < spec.getNumResults(); ++result) {
    std::string amax = *getName("amax");
    signature.addPointer(amax + ".ptr", amax);
  }
  if (spec.isGrouped())
    signature.addPointer("bounds.ptr", spec.getBoundsName());
  if (spec.batched || spec.getGrouping() == Grouping::K)
    tiles = tiles * batch;
  if (int64_t parts = form.splitK; parts > 1) {
    int64_t blocks = form.clusterSize;
    signature.addScratch(
        "workspace.ptr",
        signature.addWorkspace(tiles * (blocks * parts * form.sums * 4),
                               /*zero=*/false));
    signature.addScratch(
        "counters.ptr",
        signature.addWorkspace(tiles * (blocks * 4), /*zero=*/true));
    tiles = tiles * parts;
  }
  for (result = 0; result < spec.getNumResults(); ++result)
    for (auto [name, extents] : {std::pair{"m", &m}, {"n", &n}})
      if (std::optional<std::string> own = getName(name))
        signature.addValue(*own, (*extents)[result], 32);
  signature.addValue("k", k, 32);
  if (spec.batched || spec.getGrouping() == Grouping::K)
    signature.addValue("batch", batch, 32);
  for (result = 0; form.skipsZeros && result < spec.getNumSets(); ++result) {
    addTailMap("a", form.a);
    if (!spec.b.isLifted())
      addTailMap("b", form.b);
  }
  launch.grid = {tiles};
  launch.block = form.threads;
  launch.cluster = form.clusterSize;
  launch.sharedBytes = form.sharedBytes;
  launch.resident = form.resident;
  launch.overlap = form.overlaps;
  launch.flops = sums * k * 2;
  // Those of ranges are as many as of one product; of groups that are masked
  // the most.
  if (spec.batched || spec.isMasked())
    launch.flops = launch.flops * batch;
}

MatmulSignature::MatmulSignature(MLIRContext *context, const MatmulSpec &spec,
                                 const MatmulForm &form)
    : signature(context,
                getMatmulArguments(context, spec,
                                   form.storeBytes != 0 || form.storesInPairs,
                                   getPairAlignment(form))) {
  SignatureBuilder(signature, spec, form).build(launch);
}

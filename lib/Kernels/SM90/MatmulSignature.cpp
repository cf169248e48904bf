//===- MatmulSignature.cpp - What matmul kernels take ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulSignature.h"
#include "../Matmul/MatmulArguments.h"

using namespace mlir;
using namespace mlir::fp8;

/// 256 bytes are no faster, and lose 15 % where K is no multiple of 128.
static constexpr int64_t kL2Bytes = 128;

/// Kernels with bulk stores read factors per row and epilogue operands in
/// pairs.
static int64_t getPairAlignment(GemmConfigAttr config) {
  return config.getStore() == GemmStore::TMA ? 8 : 1;
}

namespace {
class SignatureBuilder {
public:
  SignatureBuilder(KernelSignature &signature, const MatmulSpec &spec,
                   GemmConfigAttr config, const MatmulLayout &layout)
      : signature(signature), spec(spec), config(config), layout(layout),
        rank(spec.getRank()) {}

  void build(KernelSignature::Launch &launch);

private:
  void addExtents();
  void addResult();
  void addFactors(StringRef name, const OperandSpec &operand);
  void addEpilogueOperands();
  void addOperandMap(StringRef name, const OperandTile &tile);
  void addMap(StringRef name, ArrayRef<int64_t> box, int64_t swizzle);

  KernelSignature &signature;
  const MatmulSpec &spec;
  GemmConfigAttr config;
  const MatmulLayout &layout;
  int64_t rank;
  AffineExpr m, n, k, batch;
};
} // namespace

void SignatureBuilder::addExtents() {
  auto addExtent = [&](StringRef name, StringRef argument, Major major,
                       bool isRows) {
    bool isLast = isRows == (major == Major::MN);
    return signature.addExtent(name, argument, isLast ? rank - 1 : rank - 2);
  };
  m = addExtent("m", "a", spec.a.major, /*isRows=*/true);
  n = addExtent("n", "b", spec.b.major, /*isRows=*/true);
  k = addExtent("k", "a", spec.a.major, /*isRows=*/false);
  if (spec.batched)
    batch = signature.addExtent("batch", "a", 0);
}

void SignatureBuilder::addMap(StringRef name, ArrayRef<int64_t> box,
                              int64_t swizzle) {
  SmallVector<int64_t> extents(box);
  if (spec.batched)
    extents.push_back(1);
  signature.addTensorMap(name + ".map", name, extents, swizzle, kL2Bytes);
}

void SignatureBuilder::addOperandMap(StringRef name, const OperandTile &tile) {
  int64_t swizzle = tile.getSwizzle();
  addMap(name, tile.getBox(), swizzle == 16 ? 0 : swizzle);
}

void SignatureBuilder::addResult() {
  if (config.getStore() == GemmStore::Direct) {
    signature.addPointer("d.ptr", "d");
    signature.addStride("d.stride_m", "d", rank - 2);
    if (spec.batched)
      signature.addStride("d.stride_batch", "d", 0);
    return;
  }
  int64_t bytes = spec.resultType.getIntOrFloatBitWidth() / 8;
  addMap("d", {layout.storeBytes / bytes, 64},
         layout.storeBytes == 16 ? 0 : layout.storeBytes);
}

void SignatureBuilder::addFactors(StringRef name, const OperandSpec &operand) {
  if (operand.scale == ScaleBlock::None)
    return;
  signature.addPointer(name + ".ptr", name);
  if (isBlockedAlongK(operand.scale)) {
    bool isKMajor = operand.factorMajor == Major::K;
    signature.addStride(name + ".stride_row", name, rank - (isKMajor ? 2 : 1));
    signature.addStride(name + ".stride_k", name, rank - (isKMajor ? 1 : 2));
  }
  if (spec.batched)
    signature.addStride(name + ".stride_batch", name, 0);
}

void SignatureBuilder::addEpilogueOperands() {
  for (auto [i, operand] : llvm::enumerate(spec.operands)) {
    std::string name = "operand" + std::to_string(i);
    signature.addPointer(name + ".ptr", name);
    if (operand.alongM)
      signature.addStride(name + ".stride_m", name, operand.rank - 2);
    if (operand.alongBatch)
      signature.addStride(name + ".stride_batch", name, 0);
  }
  for (auto [i, value] : llvm::enumerate(spec.captures))
    signature.addCapture("capture" + Twine(i), value.getType());
  if (spec.amax)
    signature.addPointer("amax.ptr", "amax");
}

void SignatureBuilder::build(KernelSignature::Launch &launch) {
  addExtents();
  bool swapped = config.getSwapAb();
  addOperandMap("a", swapped ? layout.cols : layout.rows);
  addOperandMap("b", swapped ? layout.rows : layout.cols);
  addResult();
  addFactors("scale_a", spec.a);
  addFactors("scale_b", spec.b);
  addEpilogueOperands();
  AffineExpr tiles =
      m.ceilDiv(config.getClusterM()) * n.ceilDiv(config.getClusterN());
  if (spec.batched)
    tiles = tiles * batch;
  if (int64_t parts = config.getSplitK(); parts > 1) {
    int64_t blocks = config.getClusterSize();
    signature.addScratch(
        "workspace.ptr",
        signature.addWorkspace(
            tiles * (blocks * parts * config.getRows() * config.getCols() * 4),
            /*zero=*/false));
    signature.addScratch(
        "counters.ptr",
        signature.addWorkspace(tiles * (blocks * 4), /*zero=*/true));
    tiles = tiles * parts;
  }
  signature.addValue("m", m, 32);
  signature.addValue("n", n, 32);
  signature.addValue("k", k, 32);
  if (spec.batched)
    signature.addValue("batch", batch, 32);
  launch.grid = {tiles};
  launch.block = layout.threads;
  launch.cluster = config.getClusterSize();
  launch.sharedBytes = layout.sharedBytes;
  launch.resident = 1;
  launch.overlap = true;
  launch.flops = m * n * k * 2;
  if (spec.batched)
    launch.flops = launch.flops * batch;
}

MatmulSignature::MatmulSignature(MLIRContext *context, const MatmulSpec &spec,
                                 GemmConfigAttr config,
                                 const MatmulLayout &layout)
    : signature(context, getMatmulArguments(context, spec,
                                            config.getStore() == GemmStore::TMA,
                                            getPairAlignment(config))) {
  SignatureBuilder(signature, spec, config, layout).build(launch);
}

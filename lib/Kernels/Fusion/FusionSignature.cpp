//===- FusionSignature.cpp - What kernels of fusions are called with ------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionSignature.h"
#include "FusionKernel.h"
#include "fp8/IR/ExactMath.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace mlir::fp8;

static SmallVector<FusionArgument> getInputs(const FusionSpec &spec) {
  SmallVector<FusionArgument> inputs;
  for (auto [i, input] : llvm::enumerate(spec.inputs)) {
    auto type = cast<RankedTensorType>(input.argument.getType());
    inputs.push_back({"in" + std::to_string(i),
                      getStoredType(type).getElementType(), input.layout,
                      spec.getBlock(input.layout), getPacking(type),
                      input.isGathered});
  }
  return inputs;
}

static SmallVector<FusionArgument> getOutputs(const FusionSpec &spec) {
  SmallVector<FusionArgument> outputs;
  for (auto [i, type] : llvm::enumerate(FusionOp(spec.op).getResultTypes())) {
    const FusionLayout &layout = spec.getResultLayout(i);
    outputs.push_back(
        {"out" + std::to_string(i),
         getStoredType(cast<RankedTensorType>(type)).getElementType(), layout,
         spec.getBlock(layout), getPacking(type)});
  }
  return outputs;
}

/// What rows of an argument start at multiples of, in bytes.
static int64_t getAlignment(const FusionSpec &spec,
                            const FusionArgument &argument,
                            KernelAccess access) {
  int64_t bytes = argument.elementType.getIntOrFloatBitWidth() / 8;
  bool hasChunks = access == KernelAccess::Read
                       ? FusionTile::hasChunks(argument)
                       : FusionTile::storesChunks(argument);
  if (!hasChunks)
    return bytes;
  int64_t extent =
      spec.isTransposed(argument.layout) ? spec.rows : spec.columns;
  int64_t most = spec.isTransposed(argument.layout) ? 16 : kChunk;
  // Rows of an unknown number of elements are accessed one by one, or by what
  // the number turns out to be a multiple of.
  if (ShapedType::isDynamic(extent))
    return bytes;
  while (extent % most != 0)
    most /= 2;
  return argument.packing.isPacked() ? argument.packing.getBytesOf(most)
                                     : std::min<int64_t>(16, most * bytes);
}

static bool isAmax(const FusionSpec &spec, unsigned number) {
  Value result = spec.getBody().getTerminator()->getOperand(number);
  return result.getDefiningOp<AmaxOp>() &&
         spec.getBlock(*spec.layouts.lookup(result)).isSingle();
}

FusionSignature fp8::getFusionSignature(MLIRContext *context,
                                        const FusionSpec &spec,
                                        FusionConfigAttr config) {
  SmallVector<FusionArgument> inputs = getInputs(spec),
                              outputs = getOutputs(spec);
  SmallVector<KernelArgumentAttr> arguments;
  auto addArgument = [&](const FusionArgument &argument, KernelAccess access) {
    arguments.push_back(KernelArgumentAttr::get(
        context, argument.name, argument.elementType,
        static_cast<int64_t>(argument.layout.dims.size()), access,
        getAlignment(spec, argument, access)));
  };
  for (const FusionArgument &input : inputs)
    addArgument(input, KernelAccess::Read);
  for (auto [i, output] : llvm::enumerate(outputs))
    addArgument(output,
                isAmax(spec, i) ? KernelAccess::Raise : KernelAccess::Write);
  KernelSignature signature(context, arguments);

  auto rank = static_cast<int64_t>(inputs.front().layout.block.size());
  auto addExtent = [&](StringRef name, int64_t dim) {
    auto [input, at] = *spec.findExtent(dim);
    AffineExpr extent = signature.addExtent(name, inputs[input].name, at);
    bool isOfBytes =
        inputs[input].packing.isPacked() &&
        at + 1 == static_cast<int64_t>(inputs[input].layout.dims.size());
    return isOfBytes ? getCodesOf(inputs[input].packing, extent) : extent;
  };
  AffineExpr columns = addExtent("columns", rank - 1);
  AffineExpr rows = rank >= 2 ? addExtent("rows", rank - 2)
                              : getAffineConstantExpr(1, context);
  AffineExpr batch =
      rank == 3 ? addExtent("batch", 0) : getAffineConstantExpr(1, context);
  if (!spec.isBatched) {
    rows = rows * batch;
    batch = getAffineConstantExpr(1, context);
  }
  for (ArrayRef<FusionArgument> list : {ArrayRef(inputs), ArrayRef(outputs)})
    for (const FusionArgument &argument : list) {
      signature.addPointer(argument.name, argument.name);
      auto last = static_cast<int64_t>(argument.layout.dims.size()) - 1;
      for (auto [k, dim] : llvm::enumerate(argument.layout.dims)) {
        // Batches that are rows too follow each other.
        bool follows = rank == 3 && dim == 0 && !spec.isBatched;
        if (static_cast<int64_t>(k) == last ||
            !(argument.isGathered || (dim >= 0 && !follows)))
          continue;
        signature.addStride(argument.name + ".stride" + std::to_string(k),
                            argument.name, static_cast<int64_t>(k));
        std::string extent = argument.name + "_extent" + std::to_string(k);
        if (argument.isGathered)
          signature.addValue(extent,
                             signature.addExtent(extent, argument.name,
                                                 static_cast<int64_t>(k)),
                             64);
      }
    }
  signature.addValue("rows", rows, 32);
  signature.addValue("columns", columns, 32);
  for (auto [i, capture] : llvm::enumerate(spec.captures))
    signature.addCapture("capture" + std::to_string(i), capture.getType());

  KernelSignature::Launch launch;
  // Clusters, each with whole rows, or blocks.
  AffineExpr across = config.getCluster() > 1
                          ? getAffineConstantExpr(1, context)
                          : columns.ceilDiv(config.getTileColumns());
  launch.grid = {across * rows.ceilDiv(config.getTileRows()) * batch};
  launch.block = config.getThreads();
  launch.cluster = config.getCluster();
  launch.sharedBytes = getFusionSharedBytes(spec, config);
  return {inputs, outputs, signature, launch};
}

KernelMath fp8::getFusionMath(const FusionSpec &spec) {
  if (hasExactMath(spec.op))
    return KernelMath::Exact;
  WalkResult result = spec.getBody().walk([](Operation *op) {
    bool isCostly = isa<arith::DivFOp>(op) ||
                    (isa_and_present<math::MathDialect>(op->getDialect()) &&
                     !isa<math::AbsFOp, math::SqrtOp, math::RsqrtOp,
                          math::FloorOp, math::CeilOp, math::FmaOp>(op));
    return isCostly ? WalkResult::interrupt() : WalkResult::advance();
  });
  return result.wasInterrupted() ? KernelMath::Approximate : KernelMath::Exact;
}

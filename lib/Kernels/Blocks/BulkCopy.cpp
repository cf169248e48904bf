//===- BulkCopy.cpp - Bulk tensor copies (TMA) ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BulkCopy.h"

using namespace mlir;
using namespace mlir::fp8;

void fp8::bulkLoad(KernelBuilder &b, Value map, Value shared, Value barrier,
                   ValueRange coordinates) {
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b, shared, map, coordinates, barrier, /*im2colOffsets=*/ValueRange(),
      /*multicastMask=*/Value(), /*l2CacheHint=*/Value(),
      NVVM::TMALoadMode::TILE, /*isCTAOnly=*/true, /*group=*/nullptr,
      /*predicate=*/Value());
}

void fp8::bulkLoadToCluster(KernelBuilder &b, Value map, Value shared,
                            Value barrier, ValueRange coordinates,
                            Value blocks) {
  // This block's shared memory in the window of the cluster.
  Value destination = LLVM::AddrSpaceCastOp::create(
      b, LLVM::LLVMPointerType::get(b.getContext(), 7), shared);
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b, destination, map, coordinates, barrier, /*im2colOffsets=*/ValueRange(),
      blocks, /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE,
      /*isCTAOnly=*/false, /*group=*/nullptr, /*predicate=*/Value());
}

void fp8::bulkLoadOfPair(KernelBuilder &b, Value map, Value shared,
                         Value barrier, ValueRange coordinates) {
  MLIRContext *context = b.getContext();
  auto inCluster = LLVM::LLVMPointerType::get(context, 7);
  // The op wants a pointer to the block's own memory; the instruction takes the
  // address of either block's.
  Value address = LLVM::PtrToIntOp::create(b, b.getI32Type(), barrier);
  barrier = LLVM::IntToPtrOp::create(b, LLVM::LLVMPointerType::get(context, 3),
                                     address);
  NVVM::CpAsyncBulkTensorGlobalToSharedClusterOp::create(
      b, LLVM::AddrSpaceCastOp::create(b, inCluster, shared), map, coordinates,
      barrier, /*im2colOffsets=*/ValueRange(), /*multicastMask=*/Value(),
      /*l2CacheHint=*/Value(), NVVM::TMALoadMode::TILE, /*isCTAOnly=*/false,
      NVVM::CTAGroupKindAttr::get(context, NVVM::CTAGroupKind::CTA_2),
      /*predicate=*/Value());
}

void fp8::bulkStore(KernelBuilder &b, Value map, Value shared,
                    ValueRange coordinates) {
  NVVM::CpAsyncBulkTensorSharedCTAToGlobalOp::create(
      b, map, shared, coordinates, /*l2CacheHint=*/Value(),
      NVVM::TMAStoreMode::TILE, /*predicate=*/Value());
  NVVM::CpAsyncBulkCommitGroupOp::create(b);
}

void fp8::waitForReads(KernelBuilder &b, int64_t pending) {
  NVVM::CpAsyncBulkWaitGroupOp::create(b, pending, b.getUnitAttr());
}

void fp8::waitForWrites(KernelBuilder &b) {
  NVVM::CpAsyncBulkWaitGroupOp::create(b, 0, /*read=*/UnitAttr());
}

void fp8::fenceForBulkCopies(KernelBuilder &b) {
  NVVM::FenceProxyOp::create(
      b, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

//===- MergeFills.cpp - One fill for what begins as the same number -------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_MERGEFILLSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;

/// What is longer takes longer than the launch that is saved.
static constexpr int64_t kMaxBytes = 4096;
/// Where an allocation begins, and so each of those that become one.
static constexpr int64_t kAlignment = 64;

namespace {
/// A small buffer, with what fills and what frees it.
struct FilledBuffer {
  memref::AllocOp alloc;
  linalg::FillOp fill;
  memref::DeallocOp dealloc;
};

struct MergeFillsPass : fp8::impl::MergeFillsPassBase<MergeFillsPass> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](Block *block) { mergeFills(*block); });
  }
  void mergeFills(Block &block);
  void merge(MutableArrayRef<FilledBuffer> buffers, TypedAttr value);
};
} // namespace

/// Bytes of a type that are known; none of elements that share bytes.
static std::optional<int64_t> getBytes(MemRefType type) {
  if (!type.hasStaticShape() || !type.getLayout().isIdentity() ||
      !type.getElementType().isIntOrFloat() ||
      type.getElementTypeBitWidth() % 8 != 0)
    return std::nullopt;
  return type.getNumElements() * type.getElementTypeBitWidth() / 8;
}

/// What `alloc` is if a fill is the first to use it, and all that uses it is in
/// its block, which frees it.
static std::optional<FilledBuffer> getFilledBuffer(memref::AllocOp alloc) {
  std::optional<int64_t> bytes = getBytes(alloc.getType());
  if (!bytes || *bytes == 0 || *bytes > kMaxBytes ||
      alloc.getAlignment().value_or(kAlignment) > kAlignment)
    return std::nullopt;
  Block *block = alloc->getBlock();
  Operation *first = nullptr;
  memref::DeallocOp dealloc;
  for (Operation *user : alloc->getUsers()) {
    Operation *ancestor = block->findAncestorOpInBlock(*user);
    if (!ancestor)
      return std::nullopt;
    if (!first || ancestor->isBeforeInBlock(first))
      first = ancestor;
    if (auto found = dyn_cast<memref::DeallocOp>(user)) {
      if (dealloc || user->getBlock() != block)
        return std::nullopt;
      dealloc = found;
    }
  }
  auto fill = dyn_cast_if_present<linalg::FillOp>(first);
  if (!fill || !dealloc || fill.getOutputs().front() != alloc.getMemref())
    return std::nullopt;
  return FilledBuffer{alloc, fill, dealloc};
}

void MergeFillsPass::mergeFills(Block &block) {
  llvm::MapVector<TypedAttr, SmallVector<FilledBuffer>> byValue;
  for (auto alloc : block.getOps<memref::AllocOp>()) {
    std::optional<FilledBuffer> buffer = getFilledBuffer(alloc);
    TypedAttr value;
    if (buffer &&
        matchPattern(buffer->fill.getInputs().front(), m_Constant(&value)))
      byValue[value].push_back(*buffer);
  }
  for (auto &[value, buffers] : byValue)
    if (buffers.size() > 1)
      merge(buffers, value);
}

void MergeFillsPass::merge(MutableArrayRef<FilledBuffer> buffers,
                           TypedAttr value) {
  SmallVector<int64_t> starts;
  int64_t bytes = 0;
  for (FilledBuffer &buffer : buffers) {
    starts.push_back(bytes);
    bytes += llvm::alignTo(*getBytes(buffer.alloc.getType()), kAlignment);
  }
  SmallVector<Location> locs =
      llvm::map_to_vector(buffers, [](FilledBuffer &buffer) -> Location {
        return buffer.fill.getLoc();
      });
  Location loc = FusedLoc::get(&getContext(), locs);

  OpBuilder b(buffers.front().alloc);
  auto all =
      memref::AllocOp::create(b, loc, MemRefType::get(bytes, b.getI8Type()),
                              b.getI64IntegerAttr(kAlignment));
  all->setDiscardableAttrs(
      buffers.front().alloc->getDiscardableAttrDictionary());
  auto view = [&](MemRefType type, int64_t start) -> Value {
    return memref::ViewOp::create(b, loc, type, all,
                                  arith::ConstantIndexOp::create(b, loc, start),
                                  ValueRange());
  };
  int64_t elementBytes = value.getType().getIntOrFloatBitWidth() / 8;
  Value whole = view(MemRefType::get(bytes / elementBytes, value.getType()), 0);
  linalg::FillOp::create(
      b, loc, arith::ConstantOp::create(b, loc, value).getResult(), whole);

  Operation *last = buffers.front().dealloc;
  for (auto [buffer, start] : llvm::zip_equal(buffers, starts)) {
    memref::DeallocOp dealloc = buffer.dealloc;
    if (last->isBeforeInBlock(buffer.dealloc))
      last = buffer.dealloc;
    buffer.fill.erase();
    buffer.alloc.getMemref().replaceUsesWithIf(
        view(buffer.alloc.getType(), start),
        [dealloc](OpOperand &use) { return use.getOwner() != dealloc; });
    ++numMerged;
  }
  b.setInsertionPoint(last);
  auto dealloc = memref::DeallocOp::create(b, last->getLoc(), all);
  dealloc->setDiscardableAttrs(last->getDiscardableAttrDictionary());
  for (FilledBuffer &buffer : buffers) {
    buffer.dealloc->erase();
    buffer.alloc->erase();
  }
}

//===- AttentionSignature.cpp - What attention kernels take ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionSignature.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

static SmallVector<KernelArgumentAttr> getArguments(MLIRContext *context,
                                                    const AttentionSpec &spec) {
  SmallVector<KernelArgumentAttr> arguments;
  auto add = [&](StringRef name, Type element, int64_t rank,
                 KernelAccess access, int64_t alignment) {
    arguments.push_back(KernelArgumentAttr::get(context, name, element, rank,
                                                access, alignment));
  };
  for (auto [name, element] :
       {std::pair<StringRef, Type>{"q", spec.q}, {"k", spec.k}, {"v", spec.v}})
    add(name, element, 4, KernelAccess::Read, 16);
  Type f32 = Float32Type::get(context);
  if (spec.isScaled)
    for (StringRef name : {"q_scale", "k_scale", "v_scale"})
      add(name, f32, 4, KernelAccess::Read, 4);
  if (spec.hasKeyLengths)
    add("key_lengths", IntegerType::get(context, 32), 1, KernelAccess::Read, 4);
  if (spec.pageSize)
    add("page_table", IntegerType::get(context, 32), 2, KernelAccess::Read, 4);
  if (spec.hasKeyStarts)
    add("key_starts", IntegerType::get(context, 32), 1, KernelAccess::Read, 4);
  if (spec.hasKeyRanges)
    add("key_ranges", IntegerType::get(context, 32), 3, KernelAccess::Read, 4);
  if (spec.hasSinks)
    add("sinks", f32, 1, KernelAccess::Read, 4);
  if (spec.dropThreshold)
    add("dropout", IntegerType::get(context, 64), 1, KernelAccess::Read, 8);
  if (spec.mask)
    add("mask", spec.mask, 4, KernelAccess::Read,
        std::max<int64_t>(spec.mask.getIntOrFloatBitWidth() / 8, 1));
  if (spec.rounded)
    add("o_scale", f32, spec.rankOfScale, KernelAccess::Read, 4);
  add("output", spec.output, 4, KernelAccess::Write, 16);
  if (spec.hasAmax)
    add("amax", f32, spec.rankOfScale, KernelAccess::Raise, 4);
  if (spec.hasLse)
    add("lse", f32, 3, KernelAccess::Write, 4);
  return arguments;
}

AttentionSignature::AttentionSignature(MLIRContext *context,
                                       const AttentionSpec &spec)
    : spec(spec), signature(context, getArguments(context, spec)) {
  int64_t sequence = spec.getSequenceDim();
  batch = signature.addExtent("batch", "q", 0);
  queries = signature.addExtent("queries", "q", sequence);
  keys = spec.pageSize
             ? signature.addExtent("pages", "page_table", 1) * spec.pageSize
             : signature.addExtent("keys", "k", sequence);
}

void AttentionSignature::addMap(StringRef name, const SwizzledMatrix &matrix,
                                int64_t rows, int64_t l2) {
  SmallVector<int64_t> box{matrix.getBoxColumns(), 1, 1, 1};
  box[spec.layout == fp8::AttentionLayout::BSHD ? 2 : 1] = rows;
  signature.addTensorMap(name + ".map", name, box, matrix.width, l2);
}

void AttentionSignature::addParams() {
  if (spec.isScaled)
    for (StringRef name : {"q_scale", "k_scale", "v_scale"})
      signature.addPointer(name + ".ptr", name);
  if (spec.hasKeyLengths)
    signature.addPointer("key_lengths.ptr", "key_lengths");
  if (spec.pageSize) {
    signature.addPointer("page_table.ptr", "page_table");
    signature.addValue("pages", signature.addExtent("all_pages", "k", 0), 32);
  }
  if (spec.hasKeyStarts)
    signature.addPointer("key_starts.ptr", "key_starts");
  if (spec.hasKeyRanges)
    signature.addPointer("key_ranges.ptr", "key_ranges");
  if (spec.hasSinks)
    signature.addPointer("sinks.ptr", "sinks");
  if (spec.dropThreshold)
    signature.addPointer("dropout.ptr", "dropout");
  if (spec.mask) {
    signature.addPointer("mask.ptr", "mask");
    for (int64_t dim : {0, 1, 2})
      if (!spec.isMaskShared[dim])
        signature.addStride("mask.stride" + Twine(dim), "mask", dim);
  }
  if (spec.rounded)
    signature.addPointer("o_scale.ptr", "o_scale");
  if (spec.hasAmax)
    signature.addPointer("amax.ptr", "amax");
  if (spec.hasLse)
    signature.addPointer("lse.ptr", "lse");
  signature.addValue("batch", batch, 32);
  signature.addValue("queries", queries, 32);
  signature.addValue("keys", keys, 32);
}

AffineExpr AttentionSignature::getFlops() const {
  return batch * queries * keys *
         (2 * spec.heads * (spec.headDim + spec.headDimOfV));
}

LogicalResult fp8::checkAttentionExtents(const AttentionSpec &spec,
                                         int64_t tileK, std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  int64_t bytes = spec.getElementBytes();
  for (int64_t dim : {spec.headDim, spec.headDimOfV})
    if (dim * bytes % 32 != 0 || dim == 0 || dim > 256)
      return fail("expected head dimensions of up to 256, multiples of {0}, "
                  "but got {1}",
                  32 / bytes, dim);
  if (tileK * bytes % 32 != 0)
    return fail("expected tile_k to be a multiple of {0}, but got {1}",
                32 / bytes, tileK);
  // Pages begin where the swizzle does.
  if (int64_t page = spec.pageSize;
      page && (page % 8 != 0 || (page % tileK != 0 && tileK % page != 0)))
    return fail("expected pages of a multiple of 8 keys that divides tile_k, "
                "{0}, or that this divides, but got {1}",
                tileK, page);
  return success();
}

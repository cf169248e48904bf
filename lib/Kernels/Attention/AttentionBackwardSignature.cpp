//===- AttentionBackwardSignature.cpp - What its kernels take -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBackwardSignature.h"

using namespace mlir;
using namespace mlir::fp8;

static SmallVector<KernelArgumentAttr>
getArguments(MLIRContext *context, const AttentionBackwardSpec &spec) {
  SmallVector<KernelArgumentAttr> arguments;
  auto add = [&](StringRef name, Type element, int64_t rank,
                 KernelAccess access, int64_t alignment) {
    arguments.push_back(KernelArgumentAttr::get(context, name, element, rank,
                                                access, alignment));
  };
  Type f32 = Float32Type::get(context);
  add("grad", spec.grad, 4, KernelAccess::Read, 16);
  add("q", spec.q, 4, KernelAccess::Read, 16);
  add("k", spec.k, 4, KernelAccess::Read, 16);
  add("v", spec.v, 4, KernelAccess::Read, 16);
  if (spec.isScaled)
    for (StringRef name : {"q_scale", "k_scale", "v_scale"})
      add(name, f32, 4, KernelAccess::Read, 4);
  for (StringRef name : {"lse", "delta"})
    add(name, f32, 3, KernelAccess::Read, 4);
  if (spec.hasKeyRanges)
    add("key_ranges", IntegerType::get(context, 32), 3, KernelAccess::Read, 4);
  if (spec.dropThreshold)
    add("dropout", IntegerType::get(context, 64), 1, KernelAccess::Read, 8);
  for (StringRef name : {"dq", "dk", "dv"})
    add(name, spec.grad, 4, KernelAccess::Write, 16);
  return arguments;
}

AttentionBackwardSignature::AttentionBackwardSignature(
    MLIRContext *context, const AttentionBackwardSpec &spec)
    : spec(spec), signature(context, getArguments(context, spec)) {
  int64_t sequence = spec.getSequenceDim();
  batch = signature.addExtent("batch", "q", 0);
  queries = signature.addExtent("queries", "q", sequence);
  keys = signature.addExtent("keys", "k", sequence);
}

void AttentionBackwardSignature::addTensor(StringRef name) {
  signature.addPointer(name + ".ptr", name);
  for (int64_t dim : {0, 1, 2})
    signature.addStride(name + ".stride" + Twine(dim), name, dim);
}

void AttentionBackwardSignature::addParams() {
  if (spec.isScaled)
    for (StringRef name : {"q_scale", "k_scale", "v_scale"})
      signature.addPointer(name + ".ptr", name);
  for (StringRef name : {"lse", "delta"})
    signature.addPointer(name + ".ptr", name);
  if (spec.hasKeyRanges)
    signature.addPointer("key_ranges.ptr", "key_ranges");
  if (spec.dropThreshold)
    signature.addPointer("dropout.ptr", "dropout");
  signature.addValue("batch", batch, 32);
  signature.addValue("queries", queries, 32);
  signature.addValue("keys", keys, 32);
}

AffineExpr AttentionBackwardSignature::getFlops() const {
  return batch * queries * keys *
         (spec.heads * (6 * spec.headDim + 4 * spec.headDimOfV));
}

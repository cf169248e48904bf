//===- AttentionShape.cpp - What both directions have ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionShape.h"
#include "llvm/Support/Format.h"

using namespace mlir;
using namespace mlir::fp8;

bool AttentionShape::hasKnownExtents() const {
  return llvm::none_of(ArrayRef{batch, queries, keys}, ShapedType::isDynamic);
}

void AttentionShape::describeShape(llvm::raw_ostream &os) const {
  os << q;
  if (k != q || v != q)
    os << '/' << k << '/' << v;
  os << " b" << batch << " h" << heads << '/' << headsOfK << ' ' << queries
     << 'x' << keys << 'x' << headDim;
  if (headDimOfV != headDim)
    os << '/' << headDimOfV;
  auto print = [&](std::optional<int64_t> side) {
    if (side)
      os << *side;
    else
      os << '*';
  };
  if (left || right) {
    os << " window[";
    print(left);
    os << ',';
    print(right);
    os << ']' << (bottomRight ? "br" : "");
  }
  if (cap)
    os << " cap" << llvm::format("%g", *cap);
  if (dropThreshold)
    os << " dropout"
       << llvm::format("%g", static_cast<double>(dropThreshold) * 0x1p-16);
}

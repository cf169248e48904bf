//===- TransposeSpec.cpp - What a transposing kernel computes -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TransposeSpec.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::fp8;

bool TransposeSpec::hasKnownExtents() const {
  return llvm::none_of(ArrayRef{batch, rows, columns}, ShapedType::isDynamic);
}

bool TransposeSpec::startsAtWords() const {
  auto isWhole = [&](int64_t extent) {
    return getElementBytes() == 4 || (!ShapedType::isDynamic(extent) &&
                                      extent * getElementBytes() % 4 == 0);
  };
  return isWhole(rows) && isWhole(columns);
}

std::string TransposeSpec::describe() const {
  return llvm::formatv("b{0} {1}x{2}x{3}", getElementBytes(), batch, rows,
                       columns);
}

FailureOr<TransposeSpec> TransposeSpec::get(RankedTensorType source,
                                            ArrayRef<int64_t> permutation,
                                            std::string &reason) {
  auto fail = [&](const auto &...parts) {
    reason = llvm::formatv(parts...);
    return failure();
  };
  if (permutation != ArrayRef<int64_t>{1, 0} &&
      permutation != ArrayRef<int64_t>{0, 2, 1})
    return fail("expected the last of two or three dimensions to be exchanged, "
                "but got [{0:$[, ]}]",
                llvm::make_range(permutation.begin(), permutation.end()));
  Type element = source.getElementType();
  unsigned width = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  if (width != 8 && width != 16 && width != 32)
    return fail("expected elements of 8, 16 or 32 bits, but got {0}", element);
  TransposeSpec spec;
  spec.elementType = element;
  spec.batched = source.getRank() == 3;
  if (spec.batched)
    spec.batch = source.getDimSize(0);
  spec.rows = source.getShape().take_back(2).front();
  spec.columns = source.getShape().back();
  for (auto [extent, name] :
       {std::pair{spec.rows, "rows"}, {spec.columns, "columns"}})
    if (!ShapedType::isDynamic(extent) &&
        extent * spec.getElementBytes() % 4 != 0)
      return fail("expected the number of {0} to be a multiple of {1}, so that "
                  "they start at words, but got {2}",
                  name, 4 / spec.getElementBytes(), extent);
  return spec;
}

//===- EqualRegions.h - Regions that compute the same -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_TRANSFORMS_UTILS_EQUALREGIONS_H
#define FP8_LIB_TRANSFORMS_UTILS_EQUALREGIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Region.h"
#include "llvm/ADT/DenseMapInfo.h"

namespace mlir::fp8 {

/// Keys of a DenseMap by what regions that are isolated from above compute,
/// wherever they stand. A region in the map must stay as it is.
struct EqualRegions : llvm::DenseMapInfo<Region *> {
  static unsigned getHashValue(const Region *region);
  static bool isEqual(const Region *a, const Region *b);
};

/// A private function without a body, in no module yet, which a program that is
/// linked into another keeps to itself, and LLVM to one copy.
func::FuncOp createInternalFunction(Location loc, const Twine &name,
                                    FunctionType type);

} // namespace mlir::fp8

#endif // FP8_LIB_TRANSFORMS_UTILS_EQUALREGIONS_H

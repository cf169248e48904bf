//===- FusedProducts.h - Products and sums of one rounding ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the epilogue of a kernel a product in f32 and the sum that it goes to are
// one instruction, with one rounding. Which of them is said here, so that no
// kernel's bits depend on what LLVM makes of its code, and a CPU that is told
// computes the same.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FUSEDPRODUCTS_H
#define FP8_IR_FUSEDPRODUCTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::fp8 {

/// Whether it is said of an epilogue's body: not where it has functions that
/// kernels approximate, so that its bits are their own. Roots, magnitudes and
/// rounding to integers are exact.
bool fusesProducts(Block &body);

/// As b.clone(op, mapping), of an operation of an epilogue's body. A sum or
/// difference of a product, of the body or of the accumulator and its factors
/// (the body's first argument), becomes one operation with it. The product
/// stays for others.
Operation *cloneFused(OpBuilder &b, Operation &op, IRMapping &mapping);

} // namespace mlir::fp8

#endif // FP8_IR_FUSEDPRODUCTS_H

//===- WindowSyntax.h - How windows of attention are written ----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_IR_WINDOWSYNTAX_H
#define FP8_LIB_IR_WINDOWSYNTAX_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::fp8 {

/// `window = [4095, 0]`, or nothing; `*`, stored as -1, is no limit.
ParseResult parseWindow(OpAsmParser &parser, DenseI64ArrayAttr &window);
void printWindow(OpAsmPrinter &printer, Operation *op,
                 DenseI64ArrayAttr window);

} // namespace mlir::fp8

#endif // FP8_LIB_IR_WINDOWSYNTAX_H

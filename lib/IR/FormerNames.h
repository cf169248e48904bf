//===- FormerNames.h - What things were called before -----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs that an earlier version wrote are read, with a warning.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_IR_FORMERNAMES_H
#define FP8_LIB_IR_FORMERNAMES_H

#include "mlir/IR/OpImplementation.h"

namespace mlir::fp8 {

/// A flag of an operation: `undef_padding`, or the name that it had.
ParseResult parseUndefPadding(OpAsmParser &parser, UnitAttr &flag);
void printUndefPadding(OpAsmPrinter &printer, Operation *op, UnitAttr flag);

/// A dictionary of attributes; those with a former name get their own.
ParseResult parseNamedAttributes(OpAsmParser &parser,
                                 NamedAttrList &attributes);
void printNamedAttributes(OpAsmPrinter &printer, Operation *op,
                          DictionaryAttr attributes);

} // namespace mlir::fp8

#endif // FP8_LIB_IR_FORMERNAMES_H

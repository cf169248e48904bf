//===- Formats.h - Element types and their formats --------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_IR_FORMATS_H
#define FP8_IR_FORMATS_H

#include "fp8/Formats.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::fp8 {

/// The format of an element type; null for one that Formats.def does not have.
const fp8rt::NumberFormat *getNumberFormat(Type type);
/// Its name, "e4m3", of a type that has one.
StringRef getFormatName(Type type);
/// The converse; null for another name.
Type getFormatType(MLIRContext *context, StringRef name);

/// Whether a scaled tensor may hold elements of this type.
bool isCodeType(Type type);
/// Whether its factors may.
bool isFactorType(Type type);

/// These types for messages: "f8E4M3FN, f8E5M2 or f4E2M1FN".
std::string listCodeTypes();
std::string listFactorTypes();

} // namespace mlir::fp8

#endif // FP8_IR_FORMATS_H

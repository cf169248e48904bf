//===- JSON.h - JSON from outside -------------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_JSON_H
#define FP8_SUPPORT_JSON_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/JSON.h"

namespace mlir::fp8 {

/// As llvm::json::parse, but deep nesting is an error, as LLVM's parser
/// recurses, and so is a key that an object has twice.
llvm::Expected<llvm::json::Value> parseJSON(StringRef text);

} // namespace mlir::fp8

#endif // FP8_SUPPORT_JSON_H

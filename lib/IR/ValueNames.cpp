//===- ValueNames.cpp - Names of inputs and outputs -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/ValueNames.h"
#include "fp8/IR/FP8Dialect.h"

using namespace mlir;
using namespace mlir::fp8;

static std::string getName(StringAttr given, StringRef kind, unsigned index) {
  return given ? given.str() : (kind + Twine(index)).str();
}

std::string fp8::getArgumentName(FunctionOpInterface function, unsigned index) {
  return getName(function.getArgAttrOfType<StringAttr>(index, kNameAttrName),
                 "arg", index);
}

std::string fp8::getResultName(FunctionOpInterface function, unsigned index) {
  return getName(function.getResultAttrOfType<StringAttr>(index, kNameAttrName),
                 "result", index);
}

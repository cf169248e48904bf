//===- Formats.cpp - Element types and their formats ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/IR/Formats.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using fp8rt::NumberFormat;

const NumberFormat *fp8::getNumberFormat(Type type) {
#define FP8_FORMAT(NAME, TEXT, TYPE, ...)                                      \
  if (isa<TYPE##Type>(type))                                                   \
    return &fp8rt::k##NAME;
#include "fp8/Formats.def"
  return nullptr;
}

StringRef fp8::getFormatName(Type type) {
  const NumberFormat *format = getNumberFormat(type);
  assert(format && "expected a type of Formats.def");
  return format->name;
}

Type fp8::getFormatType(MLIRContext *context, StringRef name) {
#define FP8_FORMAT(NAME, TEXT, TYPE, ...)                                      \
  if (name == TEXT)                                                            \
    return TYPE##Type::get(context);
#include "fp8/Formats.def"
  return {};
}

bool fp8::isCodeType(Type type) {
  const NumberFormat *format = getNumberFormat(type);
  return format && format->isCode;
}

bool fp8::isFactorType(Type type) {
  const NumberFormat *format = getNumberFormat(type);
  return format && format->isFactor;
}

/// Those with a property, the last one after "or".
static std::string listTypes(bool NumberFormat::*property) {
  SmallVector<StringRef> names;
  for (const NumberFormat *format : fp8rt::kFormats)
    if (format->*property)
      names.push_back(format->mlirName);
  StringRef last = names.pop_back_val();
  return llvm::join(names, ", ") + " or " + last.str();
}

std::string fp8::listCodeTypes() { return listTypes(&NumberFormat::isCode); }
std::string fp8::listFactorTypes() {
  return listTypes(&NumberFormat::isFactor);
}

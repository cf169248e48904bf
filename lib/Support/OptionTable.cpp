//===- OptionTable.cpp - Structs of options by their keys -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/OptionTable.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;

void fp8::warnOfFormerOption(StringRef former, StringRef key) {
  llvm::WithColor::warning()
      << "option '" << former << "' is called '" << key << "' now\n";
}

llvm::Error fp8::makeUnknownOptionError(StringRef key,
                                        ArrayRef<StringRef> keys) {
  std::string hint = suggest(key, keys);
  if (hint.empty())
    hint = ": expected one of " + llvm::join(keys, ", ");
  return llvm::createStringError("unknown option '" + key + "'" + hint);
}

llvm::Error fp8::makeOptionValueError(StringRef key, StringRef expected,
                                      StringRef text) {
  return llvm::createStringError("expected option '" + key + "' to be " +
                                 expected + ", but got '" + text + "'");
}

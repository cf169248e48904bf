//===- CompileOptions.cpp - Options of a compilation ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Compile.h"
#include "fp8/Program/Interface.h"

using namespace mlir;
using namespace mlir::fp8;

#define GET_CompileOptionTable_IMPL
#include "fp8/Compiler/CompileOptions.inc"

ArrayRef<OptionInfo<CompileOptions>> fp8::getCompileOptions() {
  return CompileOptionTable;
}

llvm::Error fp8::setOption(CompileOptions &options, StringRef key,
                           StringRef value) {
  StringRef expected;
  if (const auto *option = findOption(getPipelineOptions(), key)) {
    expected = option->set(options, value);
  } else if (const auto *option = findOption(getCompileOptions(), key)) {
    expected = option->set(options, value);
  } else {
    SmallVector<StringRef> keys;
    for (const auto &option : getPipelineOptions())
      keys.push_back(option.key);
    for (const auto &option : getCompileOptions())
      keys.push_back(option.key);
    return makeUnknownOptionError(key, keys);
  }
  if (key == "name" && makeIdentifier(value) != value)
    expected = "an identifier of C";
  return expected.empty() ? llvm::Error::success()
                          : makeOptionValueError(key, expected, value);
}

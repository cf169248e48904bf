//===- CompileOptions.cpp - Options of a compilation ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Compile.h"
#include "fp8/Kernels/Architecture.h"
#include "fp8/Program/Interface.h"

using namespace mlir;
using namespace mlir::fp8;

#define GET_CompileOptionTable_IMPL
#include "fp8/Compiler/CompileOptions.inc"

ArrayRef<OptionInfo<CompileOptions>> fp8::getCompileOptions() {
  return CompileOptionTable;
}

void fp8::setTarget(CompileOptions &options, StringRef target) {
  bool isPortable = target == kPortableTarget;
  options.target = target;
  if (!isPortable)
    return;
  registerAllArchitectures();
  options.target = getPortableChip();
  options.kernelFormat = "ptx";
}

llvm::Expected<CompileOptions> fp8::settleTarget(CompileOptions options) {
  if (options.target != kPortableTarget)
    return options;
  if (options.kernelFormat == "cubin")
    return llvm::createStringError(
        "expected ptx as the kernel-format of portable, but got 'cubin'");
  setTarget(options, kPortableTarget);
  return options;
}

std::optional<StringRef> fp8::trySetOption(CompileOptions &options,
                                           StringRef key, StringRef value) {
  StringRef expected;
  if (const auto *option = findOption(getPipelineOptions(), key))
    expected = option->set(options, value);
  else if (const auto *option = findOption(getCompileOptions(), key))
    expected = option->set(options, value);
  else
    return std::nullopt;
  if (key == "name" && makeIdentifier(value) != value)
    return "an identifier of C";
  return expected;
}

llvm::Error fp8::setOption(CompileOptions &options, StringRef key,
                           StringRef value) {
  if (std::optional<StringRef> expected = trySetOption(options, key, value))
    return expected->empty() ? llvm::Error::success()
                             : makeOptionValueError(key, *expected, value);
  SmallVector<StringRef> keys;
  for (const auto &option : getPipelineOptions())
    keys.push_back(option.key);
  for (const auto &option : getCompileOptions())
    keys.push_back(option.key);
  return makeUnknownOptionError(key, keys);
}

//===- State.cpp - The scaling state of a program -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/State.h"

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Runtime/DeviceState.h"

using namespace mlir;
using namespace mlir::fp8;

llvm::Expected<State> State::create(const Program &program,
                                    const fp8rt_program_function &function) {
  State state;
  const fp8rt_program_info &info = program.getInfo();
  if (info.state_manifest) {
    if (auto error =
            makeError(fp8rt_program_create_state(&info, &state.handle)))
      return error;
  } else if (function.flags & FP8RT_FUNCTION_TAKES_STATE) {
    return llvm::createStringError("expected a module with the attribute '" +
                                   kStateAttrName + "', since '" +
                                   function.name + "' takes a state");
  }
  return state;
}

llvm::Expected<std::vector<std::string>> State::load(const std::string &path,
                                                     bool strict) {
  fp8rt_load_report report;
  if (auto error = makeError(fp8rt_state_load(
          handle, path.c_str(), strict ? FP8RT_LOAD_STRICT : 0, &report)))
    return error;
  SmallVector<StringRef> lines;
  StringRef(report.text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  return std::vector<std::string>(lines.begin(), lines.end());
}

llvm::Error State::freeze() { return makeError(fp8rt_state_freeze(handle)); }

llvm::Error State::download(fp8rt_stream stream) {
  return makeError(fp8rt_state_download(handle, stream));
}

llvm::Error State::save(const std::string &path) const {
  return makeError(fp8rt_state_save(handle, path.c_str()));
}

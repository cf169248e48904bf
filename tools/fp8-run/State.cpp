//===- State.cpp - The scaling state of a program ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "State.h"

#include "Device.h"
#include "Executable.h"
#include "fp8/IR/FP8Dialect.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace mlir::fp8;

/// A program without state, which leaves nothing to do for some options.
static llvm::Error checkStateless(const Signature &signature,
                                  const RunOptions &options) {
  if (signature.takesState)
    return llvm::createStringError("expected a module with the attribute '" +
                                   kStateAttrName + "', since '" +
                                   signature.entry + "' takes a state");
  StringRef option;
  if (!options.stateIn.empty())
    option = "--state-in";
  else if (!options.stateOut.empty())
    option = "--state-out";
  else if (options.freeze)
    option = "--freeze";
  if (option.empty())
    return llvm::Error::success();
  return llvm::createStringError(
      "expected a program with scaling state for '" + option +
      "', but no tensor is quantised under a recipe with state, such as "
      "delayed");
}

llvm::Expected<State> State::create(const Executable &executable,
                                    const RunOptions &options) {
  State state;
  const std::string &manifest = executable.stateManifest;
  if (manifest.empty()) {
    if (llvm::Error error = checkStateless(executable.signature, options))
      return error;
    return state;
  }
  state.update = executable.updateState;
  if (auto error = makeError(
          fp8rt_state_create(manifest.data(), manifest.size(), &state.handle)))
    return error;
  if (auto error = makeError(fp8rt_state_get_rows(state.handle, &state.rows)))
    return error;
  if (!options.stateIn.empty())
    if (auto error = state.load(options.stateIn, options.stateStrict))
      return error;
  if (options.freeze)
    if (auto error = makeError(fp8rt_state_freeze(state.handle)))
      return error;
  return state;
}

llvm::Error State::load(const std::string &path, bool strict) {
  fp8rt_load_report report;
  if (auto error = makeError(fp8rt_state_load(
          handle, path.c_str(), strict ? FP8RT_LOAD_STRICT : 0, &report)))
    return error;
  SmallVector<StringRef> lines;
  StringRef(report.text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  for (StringRef line : lines)
    llvm::errs() << "fp8-run: warning: " << path << ": " << line << '\n';
  return llvm::Error::success();
}

llvm::Error State::moveTo(Device &target) {
  device = &target;
  return handle ? device->upload(handle, rows) : llvm::Error::success();
}

llvm::Error State::endStep() {
  if (!handle)
    return llvm::Error::success();
  return update(handle, device ? device->getContext() : nullptr);
}

llvm::Error State::moveToHost() {
  return handle && device ? device->download(handle) : llvm::Error::success();
}

llvm::Error State::save(const std::string &path) const {
  return makeError(fp8rt_state_save(handle, path.c_str()));
}

llvm::Error State::print(llvm::raw_ostream &os) const {
  if (!handle)
    return llvm::Error::success();
  auto contents = StateContents::read(handle);
  if (!contents)
    return contents.takeError();
  printSlots(*contents,
             llvm::to_vector(llvm::seq<size_t>(contents->slots.size())), os);
  return llvm::Error::success();
}

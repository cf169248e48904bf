//===- Executable.cpp - A program that is ready to run ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Executable.h"

#include "StateContents.h"

#include "fp8/IR/FP8Dialect.h"
#include "fp8/Target/CPU/Engine.h"
#include "fp8/Target/CPU/Processor.h"
#include "fp8/Target/Program/Interface.h"

#include <unistd.h>

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Compiled here
//===----------------------------------------------------------------------===//

static int onMessage(const char *text) {
  llvm::errs() << text << '\n';
  return 0;
}

/// A failed assertion has printed its message; what remains is to end without
/// a core dump and without outputs.
static void onAbort() {
  std::fflush(nullptr);
  llvm::errs() << "fp8-run: error: the program aborted\n";
  ::_exit(1);
}

namespace {
/// What the runtime has to know of a program to end a step of its state.
struct StateProgram {
  fp8rt_program_info info = {};
  fp8rt_program_function function = {};
  std::string manifest, recipe;
};
} // namespace

static llvm::Expected<std::shared_ptr<StateProgram>>
describeState(std::string manifest, CPUEngine::Function update, bool isOnGPU) {
  auto program = std::make_shared<StateProgram>();
  program->manifest = std::move(manifest);
  StateHandle state;
  fp8rt_state_info info;
  fp8rt_state_rows rows;
  for (fp8rt_status status :
       {fp8rt_state_create(program->manifest.data(), program->manifest.size(),
                           &state),
        fp8rt_state_get_info(state, &info), fp8rt_state_get_rows(state, &rows)})
    if (auto error = makeError(status))
      return error;
  program->recipe = info.recipe;
  program->function.flags = isOnGPU ? FP8RT_FUNCTION_TAKES_CONTEXT : 0;
  program->info.version = FP8RT_VERSION;
  program->info.num_functions = 1;
  program->info.functions = &program->function;
  program->info.name = "fp8-run";
  program->info.state_manifest = program->manifest.c_str();
  program->info.num_slots = rows.num_slots;
  program->info.num_words = rows.num_words;
  program->info.state_recipe = program->recipe.c_str();
  program->info.update_state = update;
  return program;
}

llvm::Expected<Executable>
Executable::compile(ModuleOp module, const Signature &signature, bool isOnGPU) {
  CPUEngineOptions options;
  options.onMessage = onMessage;
  options.onAbort = onAbort;
  auto engine = CPUEngine::create(module, options);
  if (!engine)
    return engine.takeError();
  auto function = (*engine)->lookup(signature.entry);
  if (!function)
    return function.takeError();

  Executable executable;
  executable.signature = signature;
  executable.isOnGPU = isOnGPU;
  executable.making = "compile";
  std::shared_ptr<CPUEngine> shared = std::move(*engine);
  executable.function =
      [shared, function = *function](void **arguments) -> llvm::Error {
    function(arguments);
    return llvm::Error::success();
  };
  if (auto manifest =
          module->getAttrOfType<StringAttr>(kStateManifestAttrName)) {
    executable.stateManifest = manifest.str();
    auto symbol =
        module->getAttrOfType<FlatSymbolRefAttr>(kStateUpdateAttrName);
    auto update = shared->lookup(symbol ? symbol.getValue() : StringRef());
    if (!update)
      return update.takeError();
    auto program = describeState(manifest.str(), *update, isOnGPU);
    if (!program)
      return program.takeError();
    executable.updateState = [shared, program = *program](
                                 fp8rt_state state, fp8rt_context *context) {
      return makeError(
          fp8rt_program_update_state(&program->info, state, context));
    };
  }
  if (auto slots = module->getAttrOfType<ArrayAttr>(kStatsSlotsAttrName))
    for (auto slot : slots.getAsRange<StringAttr>())
      executable.statsSlots.push_back(slot.str());
  return executable;
}

//===----------------------------------------------------------------------===//
// Compiled before
//===----------------------------------------------------------------------===//

static llvm::Expected<Signature> selectEntry(std::vector<Signature> functions,
                                             StringRef entry) {
  std::string names;
  for (Signature &function : functions) {
    if (function.entry == entry || (entry.empty() && functions.size() == 1))
      return std::move(function);
    names += (names.empty() ? "'" : ", '") + function.entry + "'";
  }
  return llvm::createStringError((entry.empty()
                                      ? Twine("expected --entry=NAME")
                                      : "expected a function '" + entry + "'") +
                                 ", but the program has " + names);
}

llvm::Expected<Executable> Executable::load(const std::string &path,
                                            StringRef entry,
                                            MLIRContext &context) {
  fp8rt_program *opened = nullptr;
  if (auto error = makeError(fp8rt_program_open(path.c_str(), &opened)))
    return error;
  std::shared_ptr<fp8rt_program> program(opened, fp8rt_program_close);
  const fp8rt_program_info *info;
  if (auto error = makeError(fp8rt_program_get_info(opened, &info)))
    return error;
  auto manifest = parseManifest(info->manifest, context);
  if (!manifest)
    return manifest.takeError();
  if (llvm::Error error = checkProcessor(manifest->processor))
    return error;
  auto signature = selectEntry(std::move(manifest->functions), entry);
  if (!signature)
    return signature.takeError();
  const fp8rt_program_function *function;
  if (auto error = makeError(fp8rt_program_get_function(
          info, signature->entry.c_str(), &function)))
    return error;

  Executable executable;
  executable.signature = std::move(*signature);
  executable.isOnGPU = function->flags & FP8RT_FUNCTION_TAKES_CONTEXT;
  executable.making = "load";
  executable.function = [program, function](void **arguments) {
    return makeError(fp8rt_program_invoke(function, arguments));
  };
  if (info->state_manifest) {
    executable.stateManifest = info->state_manifest;
    executable.updateState = [program, info](fp8rt_state state,
                                             fp8rt_context *context) {
      return makeError(fp8rt_program_update_state(info, state, context));
    };
  }
  return executable;
}

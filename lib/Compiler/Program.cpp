//===- Program.cpp - A program that can be called -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Program.h"

#include "fp8/Runtime/Profile.h"
#include "fp8/Support/Runtime.h"
#include "fp8/Target/CPU/LoadedObject.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// That this processor does not run the program.
static llvm::Error checkHost(const Processor &processor) {
  llvm::Error error = checkProcessor(processor);
  return error
             ? llvm::make_error<RuntimeError>(FP8RT_ERROR_UNSUPPORTED_ARCH,
                                              llvm::toString(std::move(error)))
             : llvm::Error::success();
}

llvm::Expected<std::unique_ptr<Program>>
Program::create(CompiledProgram compiled) {
  if (llvm::Error error = checkHost(compiled.interface.processor))
    return error;
  std::unique_ptr<Program> program(new Program);
  program->compiled = std::make_unique<CompiledProgram>(std::move(compiled));
  auto object = LoadedObject::load(program->compiled->objects);
  if (!object)
    return object.takeError();
  program->object = std::move(*object);
  auto info = program->object->lookup(FP8RT_PROGRAM_SYMBOL);
  if (!info)
    return info.takeError();
  program->info = static_cast<const fp8rt_program_info *>(*info);
  return program;
}

llvm::Expected<std::unique_ptr<Program>>
Program::load(const std::string &path) {
  std::unique_ptr<Program> program(new Program);
  fp8rt_program *library = nullptr;
  if (auto error = makeError(fp8rt_program_open(path.c_str(), &library)))
    return error;
  program->library.reset(library);
  if (auto error = makeError(fp8rt_program_get_info(library, &program->info)))
    return error;
  auto processor = parseProcessor(program->info->manifest);
  if (!processor)
    return processor.takeError();
  if (llvm::Error error = checkHost(*processor))
    return error;
  return program;
}

Program::~Program() = default;

bool Program::isOnGPU() const {
  return llvm::any_of(ArrayRef(info->functions, info->num_functions),
                      [](const fp8rt_program_function &function) {
                        return function.flags & FP8RT_FUNCTION_TAKES_CONTEXT;
                      });
}

llvm::Expected<const fp8rt_program_function *>
Program::getFunction(const std::string &name) const {
  const fp8rt_program_function *function = nullptr;
  if (auto error =
          makeError(fp8rt_program_get_function(info, name.c_str(), &function)))
    return error;
  return function;
}

llvm::Error
Program::withContext(int32_t device, fp8rt_stream stream,
                     llvm::function_ref<fp8rt_status(fp8rt_context *)> body) {
  DeviceContext *place;
  {
    std::lock_guard<std::mutex> lock(mutex);
    place = &contexts[device];
  }
  std::lock_guard<std::mutex> lock(place->mutex);
  if (auto error = makeError(
          place->context
              ? fp8rt_context_set_stream(place->context, stream)
              : fp8rt_context_create(device, stream, &place->context)))
    return error;
  return makeError(body(place->context));
}

llvm::Error Program::call(const fp8rt_program_function &function,
                          void *const *arguments, void *const *results,
                          fp8rt_state state, int32_t device,
                          fp8rt_stream stream) {
  auto run = [&](fp8rt_context *context) {
    return fp8rt_program_call(&function, arguments, results, state, context);
  };
  if (!(function.flags & FP8RT_FUNCTION_TAKES_CONTEXT))
    return makeError(run(/*context=*/nullptr));
  return withContext(device, stream, run);
}

llvm::Error Program::updateState(fp8rt_state state, int32_t device,
                                 fp8rt_stream stream) {
  auto run = [&](fp8rt_context *context) {
    return fp8rt_program_update_state(info, state, context);
  };
  if (!isOnGPU())
    return makeError(run(/*context=*/nullptr));
  return withContext(device, stream, run);
}

llvm::Error Program::startProfile(int32_t device, fp8rt_stream stream) {
  return withContext(device, stream, fp8rt_context_start_profile);
}

llvm::Expected<std::vector<ProfileEntry>>
Program::stopProfile(int32_t device, fp8rt_stream stream) {
  std::vector<ProfileEntry> entries;
  auto read = [&](fp8rt_context *context) -> fp8rt_status {
    if (fp8rt_status status = fp8rt_context_stop_profile(context))
      return status;
    int64_t size = fp8rt_context_get_profile_size(context);
    for (int64_t i = 0; i < size; ++i) {
      fp8rt_profile_entry entry;
      if (fp8rt_status status =
              fp8rt_context_get_profile_entry(context, i, &entry))
        return status;
      entries.push_back({entry.name, entry.kind, entry.start_ms,
                         entry.duration_ms, entry.bytes, entry.flops});
    }
    return FP8RT_OK;
  };
  if (auto error = withContext(device, stream, read))
    return error;
  return entries;
}

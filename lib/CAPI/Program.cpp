//===- Program.cpp - Programs from files, to files, and steps -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Program.h"

#include "Status.h"

#include "fp8/Compiler/State.h"

using namespace mlir::fp8;
using namespace mlir::fp8::capi;

fp8rt_status fp8c_program_load(const char *path, fp8c_program **program) {
  return guard([&]() -> fp8rt_status {
    if (!path || !program)
      return failNull();
    auto loaded = Program::load(path);
    if (!loaded)
      return fail(loaded.takeError());
    *program = new fp8c_program{std::move(*loaded)};
    return FP8RT_OK;
  });
}

fp8rt_status fp8c_program_save(const fp8c_program *program, const char *path,
                               const char *header) {
  return guard([&]() -> fp8rt_status {
    if (!program || !path)
      return failNull();
    const CompiledProgram *compiled = program->program->getCompiled();
    if (!compiled)
      return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                  "expected a program that was compiled in this process, but "
                  "got one that was loaded");
    if (llvm::Error error =
            compiled->writeSharedObject(path, header ? header : ""))
      return fail(std::move(error));
    return FP8RT_OK;
  });
}

void fp8c_program_destroy(fp8c_program *program) { delete program; }

fp8rt_status fp8c_program_get_info(const fp8c_program *program,
                                   const fp8rt_program_info **info) {
  if (!program || !info)
    return failNull();
  *info = &program->program->getInfo();
  return FP8RT_OK;
}

fp8rt_status fp8c_program_end_step(fp8c_program *program, fp8rt_state state,
                                   int32_t device, fp8rt_stream stream) {
  return guard([&]() -> fp8rt_status {
    if (!program)
      return failNull();
    if (llvm::Error error =
            program->program->updateState(state, device, stream))
      return fail(std::move(error));
    return FP8RT_OK;
  });
}

fp8rt_status fp8c_program_start_profile(fp8c_program *program, int32_t device,
                                        fp8rt_stream stream) {
  return guard([&]() -> fp8rt_status {
    if (!program)
      return failNull();
    if (!program->program->isOnGPU())
      return FP8RT_OK;
    if (llvm::Error error = program->program->startProfile(device, stream))
      return fail(std::move(error));
    return FP8RT_OK;
  });
}

fp8rt_status fp8c_program_stop_profile(fp8c_program *program, int32_t device,
                                       fp8rt_stream stream,
                                       fp8c_buffer **trace) {
  return guard([&]() -> fp8rt_status {
    if (!program || !trace)
      return failNull();
    std::vector<ProfileEntry> entries;
    if (program->program->isOnGPU()) {
      auto stopped = program->program->stopProfile(device, stream);
      if (!stopped)
        return fail(stopped.takeError());
      entries = std::move(*stopped);
    }
    *trace = new fp8c_buffer{getTrace(entries)};
    return FP8RT_OK;
  });
}

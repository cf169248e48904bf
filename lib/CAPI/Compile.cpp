//===- Compile.cpp - Options, programs and code of a source ---------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"
#include "Program.h"

#include "fp8/Compiler/Compile.h"
#include "fp8/Compiler/Monitor.h"
#include "fp8/Support/Runtime.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::capi;

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static llvm::Expected<CompileOptions> parseOptions(const fp8c_option *options,
                                                   size_t count) {
  CompileOptions result;
  for (const fp8c_option &option : ArrayRef(options, count)) {
    if (!option.key)
      return llvm::createStringError(
          "expected every option to have a key, but got null");
    if (llvm::Error error =
            setOption(result, option.key, option.value ? option.value : ""))
      return error;
  }
  return result;
}

int32_t fp8c_option_get_count(void) {
  return static_cast<int32_t>(getPipelineOptions().size() +
                              getCompileOptions().size());
}

fp8rt_status fp8c_option_get_info(int32_t index, fp8c_option_info *info) {
  if (!info)
    return failNull();
  if (info->struct_size < sizeof(*info))
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected info->struct_size to be " + Twine(sizeof(*info)) +
                    ", but got " + Twine(info->struct_size));
  if (index < 0 || index >= fp8c_option_get_count())
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected an option from 0 to " +
                    Twine(fp8c_option_get_count() - 1) + ", but got " +
                    Twine(index));
  // Literals, which end in a zero.
  auto describe = [&](const auto &option) {
    *info = {info->struct_size, option.key.data(), option.value.data(),
             option.help.data()};
  };
  size_t numPipelineOptions = getPipelineOptions().size();
  if (static_cast<size_t>(index) < numPipelineOptions)
    describe(getPipelineOptions()[index]);
  else
    describe(getCompileOptions()[index - numPipelineOptions]);
  return FP8RT_OK;
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

/// Hands a copy of the program, which is used up, and the options to `work`.
static fp8rt_status compile(
    fp8c_source &source, const fp8c_option *options, size_t numOptions,
    llvm::function_ref<llvm::Error(ModuleOp, const CompileOptions &)> work) {
  if (numOptions != 0 && !options)
    return failNull();
  auto parsed = parseOptions(options, numOptions);
  if (!parsed)
    return fail(parsed.takeError());
  return source.context->run(source.source, [&] {
    OwningOpRef<ModuleOp> module = source.source.getModule().clone();
    const Context &context = *source.context;
    if (!context.progressHandler)
      return work(*module, *parsed);
    Monitor monitor([&](StringRef step) {
      return context.progressHandler(step.str().c_str(),
                                     context.progressData) == 0;
    });
    parsed->monitor = &monitor;
    llvm::Error error = work(*module, *parsed);
    if (!error || !monitor.isStopped())
      return error;
    // What was said of a program that was left half way is no error of it.
    llvm::consumeError(std::move(error));
    return llvm::Error(llvm::make_error<RuntimeError>(
        FP8RT_ERROR_STOPPED, "the compilation was stopped"));
  });
}

fp8rt_status fp8c_compile(fp8c_source *source, const fp8c_option *options,
                          size_t num_options, fp8c_program **program) {
  return guard([&]() -> fp8rt_status {
    if (!source || !program)
      return failNull();
    auto makeProgram = [&](ModuleOp module,
                           const CompileOptions &options) -> llvm::Error {
      auto compiled = compileProgram(module, options);
      if (!compiled)
        return compiled.takeError();
      auto result = Program::create(std::move(*compiled));
      if (!result)
        return result.takeError();
      *program = new fp8c_program{std::move(*result)};
      return llvm::Error::success();
    };
    return compile(*source, options, num_options, makeProgram);
  });
}

fp8rt_status fp8c_emit(fp8c_source *source, const char *kind,
                       const fp8c_option *options, size_t num_options,
                       fp8c_buffer **buffer) {
  return guard([&]() -> fp8rt_status {
    if (!source || !kind || !buffer)
      return failNull();
    std::optional<CodeKind> code = symbolizeCodeKind(kind);
    if (!code)
      return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                  Twine("expected mlir, llvm, ptx or cubin, but got '") + kind +
                      "'");
    auto makeBuffer = [&](ModuleOp module,
                          const CompileOptions &options) -> llvm::Error {
      auto contents = emitCode(module, *code, options);
      if (!contents)
        return contents.takeError();
      *buffer = new fp8c_buffer{std::move(*contents)};
      return llvm::Error::success();
    };
    return compile(*source, options, num_options, makeBuffer);
  });
}

const char *fp8c_buffer_get_data(const fp8c_buffer *buffer, size_t *size) {
  if (size)
    *size = buffer->contents.size();
  return buffer->contents.c_str();
}

void fp8c_buffer_destroy(fp8c_buffer *buffer) { delete buffer; }

//===- Context.cpp - Contexts and sources ---------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Context.h"

#include "Messages.h"

#include "fp8/Support/ReportedError.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::capi;

//===----------------------------------------------------------------------===//
// One thing at a time
//===----------------------------------------------------------------------===//

namespace {
/// Keeps a context busy, if it is not.
class Turn {
public:
  explicit Turn(std::atomic<bool> &isBusy)
      : isBusy(isBusy), isMine(!isBusy.exchange(true)) {}
  ~Turn() {
    if (isMine)
      isBusy = false;
  }
  explicit operator bool() const { return isMine; }

private:
  std::atomic<bool> &isBusy;
  bool isMine;
};
} // namespace

static fp8rt_status failBusy() {
  return fail(FP8RT_ERROR_BUSY,
              "expected a context that nothing else is using, but got one that "
              "is busy");
}

Context::Context() : context(createContext()) {
  enableRemarks(context.get(), [this](GemmRemark remark) {
    remarks.push_back(std::move(remark));
  });
}

fp8rt_status Context::change(llvm::function_ref<void()> body) {
  Turn turn(isBusy);
  if (!turn)
    return failBusy();
  body();
  return FP8RT_OK;
}

fp8rt_status Context::run(Source &source,
                          llvm::function_ref<llvm::Error()> work) {
  Turn turn(isBusy);
  if (!turn)
    return failBusy();
  remarks.clear();
  DiagnosticCollector diagnostics(source.getManager(), context.get());
  llvm::Error error = work();
  if (diagnosticHandler)
    diagnostics.send(diagnosticHandler, diagnosticData);
  if (remarkHandler)
    for (const GemmRemark &remark : remarks)
      send(remark, remarkHandler, remarkData);
  if (!error)
    return FP8RT_OK;
  // Last: handlers may have used the runtime, and its message of an error.
  if (error.isA<ReportedError>()) {
    llvm::consumeError(std::move(error));
    std::string message = diagnostics.describeFirstError();
    return fail(FP8RT_ERROR_INVALID_PROGRAM,
                message.empty() ? "the program does not compile" : message);
  }
  return fail(std::move(error));
}

//===----------------------------------------------------------------------===//
// Contexts
//===----------------------------------------------------------------------===//

uint32_t fp8c_get_version(void) { return FP8C_VERSION; }

fp8rt_status fp8c_context_create(fp8c_context **context) {
  return guard([&]() -> fp8rt_status {
    if (!context)
      return failNull();
    *context = new fp8c_context{std::make_shared<Context>()};
    return FP8RT_OK;
  });
}

void fp8c_context_destroy(fp8c_context *context) { delete context; }

fp8rt_status fp8c_context_set_diagnostic_handler(
    fp8c_context *context, fp8c_diagnostic_handler handler, void *user_data) {
  if (!context)
    return failNull();
  Context &shared = *context->context;
  return shared.change([&] {
    shared.diagnosticHandler = handler;
    shared.diagnosticData = user_data;
  });
}

fp8rt_status fp8c_context_set_remark_handler(fp8c_context *context,
                                             fp8c_remark_handler handler,
                                             void *user_data) {
  if (!context)
    return failNull();
  Context &shared = *context->context;
  return shared.change([&] {
    shared.remarkHandler = handler;
    shared.remarkData = user_data;
  });
}

fp8rt_status fp8c_context_set_progress_handler(fp8c_context *context,
                                               fp8c_progress_handler handler,
                                               void *user_data) {
  if (!context)
    return failNull();
  Context &shared = *context->context;
  return shared.change([&] {
    shared.progressHandler = handler;
    shared.progressData = user_data;
  });
}

//===----------------------------------------------------------------------===//
// Sources
//===----------------------------------------------------------------------===//

static fp8rt_status parse(fp8c_context &context, Source text,
                          fp8c_source **source) {
  std::unique_ptr<fp8c_source> result(
      new fp8c_source{context.context, std::move(text)});
  if (fp8rt_status status = context.context->run(result->source, [&] {
        return result->source.parse(context.context->getMLIRContext());
      }))
    return status;
  *source = result.release();
  return FP8RT_OK;
}

fp8rt_status fp8c_source_create(fp8c_context *context, const char *text,
                                size_t size, const char *name,
                                fp8c_source **source) {
  return guard([&]() -> fp8rt_status {
    if (!context || !text || !name || !source)
      return failNull();
    // As -1, which other interfaces take for what a null character ends.
    if (size > PTRDIFF_MAX)
      return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                  "expected the size of the text, but got " +
                      llvm::Twine(size));
    return parse(*context,
                 Source(llvm::MemoryBuffer::getMemBufferCopy(
                     StringRef(text, size), name)),
                 source);
  });
}

fp8rt_status fp8c_source_create_from_file(fp8c_context *context,
                                          const char *path,
                                          fp8c_source **source) {
  return guard([&]() -> fp8rt_status {
    if (!context || !path || !source)
      return failNull();
    auto text = Source::open(path);
    if (!text)
      return fail(text.takeError());
    return parse(*context, std::move(*text), source);
  });
}

void fp8c_source_destroy(fp8c_source *source) { delete source; }

//===- Source.cpp - A program as it is written ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Source.h"

#include "fp8/InitAll.h"
#include "fp8/Support/InputFile.h"
#include "fp8/Support/Nesting.h"
#include "fp8/Support/ReportedError.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"

using namespace mlir;
using namespace mlir::fp8;

static std::unique_ptr<MLIRContext>
createContextOf(const DialectRegistry &registry) {
  auto context = std::make_unique<MLIRContext>(registry);
  // The source is shown; the operation, which may hold a whole module, says
  // nothing to the author of the program.
  context->printOpOnDiagnostic(false);
  return context;
}

std::unique_ptr<MLIRContext> fp8::createContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  return createContextOf(registry);
}

llvm::Expected<std::unique_ptr<MLIRContext>>
fp8::createContext(ArrayRef<std::string> plugins) {
  DialectRegistry registry;
  registerAllDialects(registry);
  for (const std::string &path : plugins) {
    auto plugin = DialectPlugin::load(path);
    if (!plugin)
      return plugin.takeError();
    plugin->registerDialectRegistryCallbacks(registry);
  }
  return createContextOf(registry);
}

Source::Source(std::unique_ptr<llvm::MemoryBuffer> text)
    : manager(std::make_shared<llvm::SourceMgr>()) {
  manager->AddNewSourceBuffer(std::move(text), llvm::SMLoc());
}

llvm::Expected<Source> Source::open(const std::string &path) {
  if (path == "-") {
    std::string message;
    auto input = openInputFile(path, &message);
    if (!input)
      return llvm::createStringError(std::errc::io_error, message.c_str());
    return Source(std::move(input));
  }
  auto file = readInputFile(path);
  if (!file)
    return llvm::createStringError(std::make_error_code(std::errc::io_error),
                                   "cannot open input file '" + path + "': " +
                                       llvm::toString(file.takeError()));
  return Source(std::move(*file));
}

llvm::Error Source::parse(MLIRContext &context) {
  const llvm::MemoryBuffer &text =
      *manager->getMemoryBuffer(manager->getMainFileID());
  if (llvm::Error error =
          checkNesting(text.getBuffer(), text.getBufferIdentifier()))
    return error;
  module = parseSourceFile<ModuleOp>(manager, &context);
  return module ? llvm::Error::success() : makeReportedError();
}

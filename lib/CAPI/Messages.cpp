//===- Messages.cpp - What is said of a source ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Messages.h"

#include "fp8/Support/Shorten.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;
using namespace mlir::fp8::capi;

//===----------------------------------------------------------------------===//
// Diagnostics
//===----------------------------------------------------------------------===//

static int32_t getSeverity(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return FP8C_SEVERITY_NOTE;
  case DiagnosticSeverity::Warning:
    return FP8C_SEVERITY_WARNING;
  case DiagnosticSeverity::Error:
    return FP8C_SEVERITY_ERROR;
  case DiagnosticSeverity::Remark:
    return FP8C_SEVERITY_REMARK;
  }
  return FP8C_SEVERITY_ERROR;
}

DiagnosticCollector::DiagnosticCollector(llvm::SourceMgr &sources,
                                         MLIRContext *context)
    : SourceMgrDiagnosticHandler(sources, context, stream), stream(text) {
  setHandler([this](Diagnostic &diagnostic) {
    add(diagnostic);
    for (Diagnostic &note : diagnostic.getNotes())
      add(note);
    return success();
  });
}

void DiagnosticCollector::add(Diagnostic &diagnostic) {
  Entry entry = {getSeverity(diagnostic.getSeverity()), 0, 0, "",
                 shortenWords(diagnostic.str()),        ""};
  diagnostic.getLocation()->walk([&](Location location) {
    auto place = dyn_cast<FileLineColLoc>(location);
    if (!place)
      return WalkResult::advance();
    entry.file = place.getFilename().str();
    entry.line = place.getLine();
    entry.column = place.getColumn();
    return WalkResult::interrupt();
  });
  text.clear();
  emitDiagnostic(diagnostic.getLocation(), entry.message,
                 diagnostic.getSeverity());
  entry.text = shortenLines(text);
  entries.push_back(std::move(entry));
}

std::string DiagnosticCollector::describeFirstError() const {
  auto error = llvm::find_if(entries, [](const Entry &entry) {
    return entry.severity == FP8C_SEVERITY_ERROR;
  });
  if (error == entries.end())
    return "";
  std::string place;
  if (error->line != 0)
    place = error->file + ":" + std::to_string(error->line) + ":" +
            std::to_string(error->column) + ": ";
  return place + error->message;
}

void DiagnosticCollector::send(fp8c_diagnostic_handler handler,
                               void *data) const {
  for (const Entry &entry : entries) {
    fp8c_diagnostic diagnostic = {entry.severity,
                                  static_cast<int32_t>(entry.line),
                                  static_cast<int32_t>(entry.column),
                                  /*reserved=*/0,
                                  entry.file.c_str(),
                                  entry.message.c_str(),
                                  entry.text.c_str()};
    handler(&diagnostic, data);
  }
}

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

void capi::send(const GemmRemark &remark, fp8c_remark_handler handler,
                void *data) {
  fp8c_remark view = {};
  std::pair<StringRef, const char **> named[] = {
      {"gemm", &view.name},     {"role", &view.role},
      {"shape", &view.shape},   {"recipe", &view.recipe},
      {"reason", &view.reason}, {"suggestion", &view.suggestion}};
  for (auto [key, member] : named)
    *member = "";
  std::vector<fp8c_remark_detail> details;
  for (const auto &argument : remark.arguments) {
    auto *found = llvm::find_if(named, [&](const auto &entry) {
      return entry.first == argument.first;
    });
    if (found == std::end(named))
      details.push_back({argument.first.c_str(), argument.second.c_str()});
    else
      *found->second = argument.second.c_str();
  }
  std::string text = remark.getText();
  switch (remark.kind) {
  case GemmRemark::Kind::Passed:
    view.kind = FP8C_REMARK_FP8;
    break;
  case GemmRemark::Kind::Missed:
    view.kind = FP8C_REMARK_HIGH_PRECISION;
    break;
  case GemmRemark::Kind::Copy:
    view.kind = FP8C_REMARK_COPY;
    break;
  }
  view.num_details = static_cast<int32_t>(details.size());
  view.function = remark.function.c_str();
  view.location = remark.location.c_str();
  view.text = text.c_str();
  view.details = details.data();
  handler(&view, data);
}

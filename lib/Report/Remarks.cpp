//===- Remarks.cpp - What was decided about contractions ------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Report/Remarks.h"
#include "fp8/Support/OutputFile.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fp8;

using remark::detail::Remark;

//===----------------------------------------------------------------------===//
// Remarks
//===----------------------------------------------------------------------===//

StringRef GemmRemark::get(StringRef key) const {
  for (const auto &[name, value] : arguments)
    if (name == key)
      return value;
  return "";
}

static StringRef describe(GemmRemark::Kind kind) {
  switch (kind) {
  case GemmRemark::Kind::Passed:
    return "fp8";
  case GemmRemark::Kind::Missed:
    return "high precision";
  case GemmRemark::Kind::Copy:
    return "copy";
  }
  llvm_unreachable("every kind has a name");
}

std::string GemmRemark::getText() const {
  std::string text = (get("gemm") + ": " + describe(kind)).str();
  StringRef separator = "; ";
  for (const auto &[key, value] : arguments) {
    if (key == "gemm")
      continue;
    text += (separator + key + " " + value).str();
    separator = ", ";
  }
  return text;
}

llvm::json::Object GemmRemark::getJSON() const {
  llvm::json::Object object;
  if (kind != Kind::Copy)
    object["kind"] = kind == Kind::Missed ? "missed" : "passed";
  object["function"] = function;
  if (!location.empty())
    object["location"] = location;
  for (const auto &[key, value] : arguments) {
    int64_t bytes;
    if (key == "bytes" && llvm::to_integer(value, bytes))
      object[key] = bytes;
    else
      object[key] = value;
  }
  return object;
}

std::string fp8::describeLocation(Location location) {
  std::string text;
  location->walk([&](Location inner) {
    auto file = dyn_cast<FileLineColLoc>(inner);
    if (!file)
      return WalkResult::advance();
    text = (file.getFilename().getValue() + ":" + Twine(file.getLine()) + ":" +
            Twine(file.getColumn()))
               .str();
    return WalkResult::interrupt();
  });
  return text;
}

static GemmRemark convert(const Remark &remark) {
  GemmRemark result;
  bool isMissed = remark.getRemarkTypeString().contains_insensitive("missed");
  result.kind = remark.getRemarkName() == "copy" ? GemmRemark::Kind::Copy
                : isMissed                       ? GemmRemark::Kind::Missed
                                                 : GemmRemark::Kind::Passed;
  result.function = remark.getFunction().str();
  result.location = describeLocation(remark.getLocation());
  // Upstream's `Reason` and `Suggestion` as the other keys are spelled.
  for (const Remark::Arg &arg : remark.getArgs())
    result.arguments.emplace_back(StringRef(arg.key).lower(), arg.val);
  return result;
}

//===----------------------------------------------------------------------===//
// Where they go
//===----------------------------------------------------------------------===//

namespace {
class Streamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  explicit Streamer(std::function<void(GemmRemark)> handler)
      : handler(std::move(handler)) {}

  void streamOptimizationRemark(const Remark &remark) override {
    handler(convert(remark));
  }

private:
  std::function<void(GemmRemark)> handler;
};

/// Collects remarks and writes them at the end, through a temporary file.
class RemarksFile {
public:
  RemarksFile(StringRef path, bool isJSON,
              std::function<void(llvm::Error)> onWriteError)
      : path(path), isJSON(isJSON), onWriteError(std::move(onWriteError)) {}

  void add(const GemmRemark &remark) {
    if (isJSON)
      (remark.kind == GemmRemark::Kind::Copy ? copies : gemms)
          .push_back(remark.getJSON());
    else
      text += remark.getText() + "\n";
  }

  ~RemarksFile() {
    if (isJSON)
      text = llvm::formatv("{0:2}\n", llvm::json::Value(llvm::json::Object{
                                          {"version", 2},
                                          {"remarks", std::move(gemms)},
                                          {"copies", std::move(copies)}}))
                 .str();
    if (llvm::Error error = writeOutputFile(path, text))
      onWriteError(llvm::createStringError("remarks file " +
                                           llvm::toString(std::move(error))));
  }

private:
  std::string path;
  bool isJSON;
  std::function<void(llvm::Error)> onWriteError;
  llvm::json::Array gemms, copies;
  std::string text;
};
} // namespace

void fp8::enableRemarks(MLIRContext *context,
                        std::function<void(GemmRemark)> handler) {
  remark::RemarkCategories categories;
  categories.passed = categories.missed = categories.analysis = "fp8";
  // It fails only if a category is no regular expression.
  (void)remark::enableOptimizationRemarks(
      *context, std::make_unique<Streamer>(std::move(handler)),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}

LogicalResult fp8::enableRemarks(MLIRContext *context, StringRef spec,
                                 std::function<void(llvm::Error)> onWriteError,
                                 std::string &error) {
  auto [format, path] = spec.split(':');
  if ((format != "json" && format != "text") || path.empty()) {
    error =
        ("expected remarks as json:FILE or text:FILE, but got '" + spec + "'")
            .str();
    return failure();
  }
  // Found out now, before the work, not when the file is written.
  if (path != "-") {
    if (llvm::sys::fs::is_directory(path)) {
      error =
          ("remarks file '" + path + "': expected a file, but got a directory")
              .str();
      return failure();
    }
    SmallString<128> directory(path);
    llvm::sys::path::remove_filename(directory);
    if (directory.empty())
      directory = ".";
    if (!llvm::sys::fs::is_directory(directory) ||
        llvm::sys::fs::access(directory, llvm::sys::fs::AccessMode::Write)) {
      error =
          ("remarks file '" + path + "': expected a writable directory").str();
      return failure();
    }
  }
  auto file = std::make_shared<RemarksFile>(path, format == "json",
                                            std::move(onWriteError));
  enableRemarks(context,
                [file](const GemmRemark &remark) { file->add(remark); });
  return success();
}

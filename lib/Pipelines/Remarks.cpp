//===- Remarks.cpp - What was decided about every contraction -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Pipelines/Remarks.h"
#include "fp8/Support/OutputFile.h"
#include "mlir/IR/Location.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mlir::fp8;

namespace {

using remark::detail::Remark;

/// Location as `file:line:column`; empty if it has none.
std::string describeLocation(Location location) {
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

/// Key of `arg` in the output: upstream's `Reason` and `Suggestion` as the
/// other keys are spelled.
std::string getKey(const Remark::Arg &arg) {
  return StringRef(arg.key).lower();
}

llvm::json::Object toJSON(const Remark &remark) {
  llvm::json::Object object;
  object["kind"] = remark.getRemarkTypeString().contains_insensitive("missed")
                       ? "missed"
                       : "passed";
  object["function"] = remark.getFunction();
  if (std::string location = describeLocation(remark.getLocation());
      !location.empty())
    object["location"] = location;
  for (const Remark::Arg &arg : remark.getArgs())
    object[getKey(arg)] = arg.val;
  return object;
}

/// `name: fp8` or `name: high precision` and one `key value` for each argument.
void printText(raw_ostream &os, const Remark &remark) {
  bool missed = remark.getRemarkTypeString().contains_insensitive("missed");
  bool first = true;
  for (const Remark::Arg &arg : remark.getArgs()) {
    if (arg.key == "gemm") {
      os << arg.val << ": " << (missed ? "high precision" : "fp8");
      continue;
    }
    os << (first ? "; " : ", ") << getKey(arg) << ' ' << arg.val;
    first = false;
  }
  os << '\n';
}

/// Collects remarks and writes them at the end, through a temporary file.
class FileStreamer : public remark::detail::MLIRRemarkStreamerBase {
public:
  FileStreamer(StringRef path, bool json) : path(path), json(json) {}

  void streamOptimizationRemark(const Remark &remark) override {
    if (json)
      objects.push_back(toJSON(remark));
    else
      printText(*textStream, remark);
  }

  void finalize() override {
    if (json)
      *textStream << llvm::formatv(
                         "{0:2}",
                         llvm::json::Value(llvm::json::Object{
                             {"version", 1}, {"remarks", std::move(objects)}}))
                  << '\n';
    // A context that is torn down has nobody to report to but the user.
    if (llvm::Error error = writeOutputFile(path, text))
      llvm::errs() << "error: remarks file " << llvm::toString(std::move(error))
                   << '\n';
  }

private:
  std::string path;
  bool json;
  llvm::json::Array objects;
  std::string text;
  std::unique_ptr<llvm::raw_string_ostream> textStream =
      std::make_unique<llvm::raw_string_ostream>(text);
};

} // namespace

LogicalResult fp8::enableRemarks(MLIRContext *context, StringRef spec,
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
  remark::RemarkCategories categories;
  categories.passed = categories.missed = "fp8";
  return remark::enableOptimizationRemarks(
      *context, std::make_unique<FileStreamer>(path, format == "json"),
      std::make_unique<remark::RemarkEmittingPolicyAll>(), categories);
}

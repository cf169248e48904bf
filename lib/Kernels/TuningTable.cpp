//===- TuningTable.cpp - Measured choices of configs ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/TuningTable.h"
#include "fp8/Support/InputFile.h"
#include "fp8/Support/JSON.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::fp8;

/// 1 had entries of matmuls alone.
static constexpr int64_t kVersion = 2;

std::string TuningTable::describe(const KernelSpec &spec) {
  return (spec.getKind() + " " + spec.describe()).str();
}

const TuningTable::Entry *TuningTable::lookup(const KernelSpec &spec) const {
  if (!spec.hasKnownExtents())
    return nullptr;
  auto found = entries.find(describe(spec));
  return found == entries.end() ? nullptr : &found->second;
}

void TuningTable::insert(const KernelSpec &spec, Entry entry) {
  assert(spec.hasKnownExtents() && "a table has no dynamic extents");
  entries[describe(spec)] = entry;
}

//===----------------------------------------------------------------------===//
// Reading and writing
//===----------------------------------------------------------------------===//

/// The config that `text` spells; null, with what is wrong with it in `reason`.
static KernelConfigAttrInterface
parseConfig(StringRef text, MLIRContext *context, std::string &reason) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    reason = diagnostic.str();
    return success();
  });
  auto config = dyn_cast_or_null<KernelConfigAttrInterface>(
      parseAttribute(text, context));
  if (!config && reason.empty())
    reason = "expected the config of a kernel";
  return config;
}

/// The key of today for how many neighbours a cluster of a #fp8_sm90.gemm has:
/// those along the tensor core's rows were `cluster`, with `swap_ab` of N.
static StringRef getClusterKey(StringRef text, StringRef former) {
  bool ofRows = former == " cluster = ";
  return ofRows != text.contains("swap_ab = true") ? " cluster_m = "
                                                   : " cluster_n = ";
}

/// Puts words of today in the place of those that an entry was written with.
static std::string modernize(StringRef text) {
  static constexpr std::pair<StringLiteral, StringLiteral> words[] = {
      {"#fp8_stream.", "#fp8_fusion."},
      {"finishers = ", "epilogue_warpgroups = "},
      {" counted groups", " masked groups"},
      {" alone", " undef_padding"},
      {" by chance", " stochastic"}};
  std::string modern = text.str();
  if (text.starts_with("stream "))
    modern.replace(0, StringRef("stream").size(), "fusion");
  for (auto [former, word] : words)
    if (size_t place = modern.find(former); place != std::string::npos)
      modern.replace(place, former.size(), word);
  if (text.starts_with("#fp8_sm100.gemm"))
    if (size_t place = modern.find(" blocks = "); place != std::string::npos)
      modern.replace(place, StringRef(" blocks").size(), " cta_group");
  if (text.starts_with("#fp8_sm90.gemm"))
    for (StringRef former : {" cluster = ", " cluster_cols = "})
      if (size_t place = StringRef(modern).find(former);
          place != StringRef::npos)
        modern.replace(place, former.size(), getClusterKey(text, former));
  return modern;
}

namespace {
/// One kernel of the file; `error` and `remark` know where it is.
struct EntryReader {
  const llvm::json::Object &object;
  MLIRContext *context;
  llvm::function_ref<LogicalResult(const Twine &)> error;
  llvm::function_ref<void(const Twine &)> remark;
  /// Whether it has words that an earlier version wrote.
  bool isFormer = false;

  LogicalResult read(llvm::StringMap<TuningTable::Entry> &entries) {
    for (const auto &[key, value] : object)
      if (key != "kernel" && key != "config" && key != "microseconds")
        return error("unknown key '" + StringRef(key) +
                     "': expected kernel, config or microseconds");
    for (StringRef key : {"kernel", "config"})
      if (!object.getString(key))
        return error("expected key '" + key + "' to be a string");
    std::optional<double> time = object.getNumber("microseconds");
    if (!time)
      return error("expected key 'microseconds' to be a number");
    std::string reason;
    std::string kernel = modernize(*object.getString("kernel")),
                configText = modernize(*object.getString("config"));
    isFormer = kernel != *object.getString("kernel") ||
               configText != *object.getString("config");
    KernelConfigAttrInterface config = parseConfig(configText, context, reason);
    if (config)
      entries[kernel] = {config, *time};
    else
      remark("ignored, for its config is not known: " + reason);
    return success();
  }
};
} // namespace

LogicalResult TuningTable::load(StringRef path, MLIRContext *context,
                                Location loc) {
  std::string table = ("tuning table '" + path + "': ").str();
  auto error = [&](const Twine &message) -> LogicalResult {
    return emitError(loc, table + message);
  };
  auto buffer = readInputFile(path);
  if (!buffer)
    return error(llvm::toString(buffer.takeError()));
  llvm::Expected<llvm::json::Value> json = parseJSON((*buffer)->getBuffer());
  if (!json)
    return error(llvm::toString(json.takeError()));
  const llvm::json::Object *root = json->getAsObject();
  if (!root)
    return error("expected a JSON object");
  // Another version has other keys.
  if (root->getInteger("version") != kVersion)
    return error("expected key 'version' to be " + Twine(kVersion));
  for (const auto &[key, value] : *root)
    if (!llvm::is_contained({"version", "target", "device", "kernels"},
                            StringRef(key)))
      return error("unknown key '" + StringRef(key) +
                   "': expected version, target, device or kernels");
  for (StringRef key : {"target", "device"})
    if (!root->getString(key))
      return error("expected key '" + key + "' to be a string");
  const llvm::json::Array *kernels = root->getArray("kernels");
  if (!kernels)
    return error("expected key 'kernels' to be an array");

  if (*root->getString("target") != chip) {
    emitRemark(loc, table) << "ignored, for it is for "
                           << *root->getString("target");
    return success();
  }
  device = *root->getString("device");
  size_t numFormer = 0;
  for (auto [index, value] : llvm::enumerate(*kernels)) {
    std::string where = "kernel " + std::to_string(index) + ": ";
    const llvm::json::Object *object = value.getAsObject();
    if (!object)
      return error(where + "expected an object");
    auto entryError = [&](const Twine &message) {
      return error(where + message);
    };
    auto remark = [&](const Twine &message) {
      emitRemark(loc, table) << where << message;
    };
    EntryReader reader{*object, context, entryError, remark};
    if (failed(reader.read(entries)))
      return failure();
    numFormer += reader.isFormer;
  }
  if (numFormer)
    emitWarning(loc, table) << numFormer << " of " << kernels->size()
                            << " kernels are spelled as an earlier version "
                               "wrote them, which is read until 0.3; fp8-tune "
                               "and 'tune' write them as they are spelled now";
  return success();
}

void TuningTable::write(raw_ostream &os) const {
  llvm::json::OStream json(os, /*IndentSize=*/1);
  SmallVector<StringRef> keys(entries.keys());
  llvm::sort(keys);
  json.object([&] {
    json.attribute("version", kVersion);
    json.attribute("target", chip);
    json.attribute("device", device);
    json.attributeArray("kernels", [&] {
      for (StringRef key : keys)
        json.object([&] {
          const Entry &entry = entries.find(key)->second;
          std::string config;
          llvm::raw_string_ostream(config) << entry.config;
          json.attribute("kernel", key);
          json.attribute("config", config);
          json.attributeBegin("microseconds");
          json.rawValue(llvm::formatv("{0:f2}", entry.microseconds).str());
          json.attributeEnd();
        });
    });
  });
  os << '\n';
}

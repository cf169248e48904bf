//===- TuningTable.cpp - Measured choices of configs ----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Kernels/TuningTable.h"
#include "fp8/Kernels/MatmulKernel.h"
#include "fp8/Kernels/Target.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir;
using namespace mlir::fp8;

static constexpr int64_t kVersion = 1;

//===----------------------------------------------------------------------===//
// Keys
//===----------------------------------------------------------------------===//

/// The epilogue as what it reads and does, e.g. "n:bf16 extf addf truncf";
/// empty for none.
static std::string describeEpilogue(const MatmulSpec &spec) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator space(" ");
  for (const EpilogueOperandSpec &operand : spec.operands) {
    os << space << (operand.alongBatch ? "b" : "")
       << (operand.alongM ? "m" : "") << (operand.alongN ? "n" : "") << ':'
       << operand.elementType;
  }
  if (spec.epilogue)
    for (Operation &op : spec.epilogue->without_terminator())
      if (!op.hasTrait<OpTrait::ConstantLike>())
        os << space << op.getName().stripDialect();
  if (spec.amax)
    os << space << "amax";
  return text;
}

/// "e4m3_e4m3_bf16_tensor_tensor_fast 1x64x4096x4096 extf addf": types, factors
/// and accumulation, then batch, M, N and K, then the epilogue.
std::string TuningTable::describe(const MatmulSpec &spec) {
  std::string key;
  llvm::raw_string_ostream os(key);
  os << getMatmulTypesName(spec) << ' ' << spec.batch << 'x' << spec.m << 'x'
     << spec.n << 'x' << spec.k;
  std::string epilogue = describeEpilogue(spec);
  if (!epilogue.empty())
    os << ' ' << epilogue;
  return key;
}

static bool areExtentsKnown(const MatmulSpec &spec) {
  return llvm::none_of(ArrayRef{spec.batch, spec.m, spec.n, spec.k},
                       ShapedType::isDynamic);
}

const TuningTable::Entry *TuningTable::lookup(const MatmulSpec &spec) const {
  if (!areExtentsKnown(spec))
    return nullptr;
  auto found = entries.find(describe(spec));
  return found == entries.end() ? nullptr : &found->second;
}

void TuningTable::insert(const MatmulSpec &spec, Entry entry) {
  assert(areExtentsKnown(spec) && "a table has no dynamic extents");
  entries[describe(spec)] = entry;
}

//===----------------------------------------------------------------------===//
// Reading and writing
//===----------------------------------------------------------------------===//

/// The config that `text` spells; null, with what is wrong with it in `reason`.
static GemmConfigAttr parseConfig(StringRef text, MLIRContext *context,
                                  std::string &reason) {
  ScopedDiagnosticHandler handler(context, [&](Diagnostic &diagnostic) {
    reason = diagnostic.str();
    return success();
  });
  auto config = dyn_cast_or_null<GemmConfigAttr>(parseAttribute(text, context));
  if (!config && reason.empty())
    reason = "expected a #fp8.gemm_config";
  return config;
}

namespace {
/// One matmul of the file; `error` and `remark` know where it is.
struct EntryReader {
  const llvm::json::Object &object;
  MLIRContext *context;
  llvm::function_ref<LogicalResult(const Twine &)> error;
  llvm::function_ref<void(const Twine &)> remark;

  LogicalResult read(llvm::StringMap<TuningTable::Entry> &entries) {
    for (const auto &[key, value] : object)
      if (key != "matmul" && key != "config" && key != "microseconds")
        return error("unknown key '" + StringRef(key) +
                     "': expected matmul, config or microseconds");
    for (StringRef key : {"matmul", "config"})
      if (!object.getString(key))
        return error("expected key '" + key + "' to be a string");
    std::optional<double> time = object.getNumber("microseconds");
    if (!time)
      return error("expected key 'microseconds' to be a number");
    std::string reason;
    GemmConfigAttr config =
        parseConfig(*object.getString("config"), context, reason);
    if (config)
      entries[*object.getString("matmul")] = {config, *time};
    else
      remark("ignored, for its config is not known: " + reason);
    return success();
  }
};
} // namespace

FailureOr<TuningTable>
TuningTable::load(StringRef path, MLIRContext *context,
                  llvm::function_ref<InFlightDiagnostic()> emitError,
                  llvm::function_ref<InFlightDiagnostic()> emitRemark) {
  auto error = [&](const Twine &message) -> LogicalResult {
    return emitError() << "tuning table '" << path << "': " << message;
  };
  auto buffer = llvm::MemoryBuffer::getFile(path, /*IsText=*/true);
  if (!buffer)
    return error(buffer.getError().message());
  llvm::Expected<llvm::json::Value> json =
      llvm::json::parse((*buffer)->getBuffer());
  if (!json)
    return error(llvm::toString(json.takeError()));
  const llvm::json::Object *root = json->getAsObject();
  if (!root)
    return error("expected a JSON object");
  for (const auto &[key, value] : *root)
    if (!llvm::is_contained({"version", "target", "device", "matmuls"},
                            StringRef(key)))
      return error("unknown key '" + StringRef(key) +
                   "': expected version, target, device or matmuls");
  if (root->getInteger("version") != kVersion)
    return error("expected key 'version' to be " + Twine(kVersion));
  for (StringRef key : {"target", "device"})
    if (!root->getString(key))
      return error("expected key '" + key + "' to be a string");
  const llvm::json::Array *matmuls = root->getArray("matmuls");
  if (!matmuls)
    return error("expected key 'matmuls' to be an array");

  TuningTable table;
  table.device = *root->getString("device");
  if (*root->getString("target") != kSM90.chip) {
    emitRemark() << "tuning table '" << path << "': ignored, for it is for "
                 << *root->getString("target");
    return table;
  }
  for (auto [index, value] : llvm::enumerate(*matmuls)) {
    std::string where = "matmul " + std::to_string(index) + ": ";
    const llvm::json::Object *object = value.getAsObject();
    if (!object)
      return error(where + "expected an object");
    auto entryError = [&](const Twine &message) {
      return error(where + message);
    };
    auto remark = [&](const Twine &message) {
      emitRemark() << "tuning table '" << path << "': " << where << message;
    };
    EntryReader reader{*object, context, entryError, remark};
    if (failed(reader.read(table.entries)))
      return failure();
  }
  return table;
}

void TuningTable::write(raw_ostream &os) const {
  llvm::json::OStream json(os, /*IndentSize=*/1);
  SmallVector<StringRef> keys(entries.keys());
  llvm::sort(keys);
  json.object([&] {
    json.attribute("version", kVersion);
    json.attribute("target", kSM90.chip);
    json.attribute("device", device);
    json.attributeArray("matmuls", [&] {
      for (StringRef key : keys)
        json.object([&] {
          const Entry &entry = entries.find(key)->second;
          std::string config;
          llvm::raw_string_ostream(config) << entry.config;
          json.attribute("matmul", key);
          json.attribute("config", config);
          json.attributeBegin("microseconds");
          json.rawValue(llvm::formatv("{0:f2}", entry.microseconds).str());
          json.attributeEnd();
        });
    });
  });
  os << '\n';
}

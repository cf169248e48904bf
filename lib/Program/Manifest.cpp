//===- Manifest.cpp - Programs described in JSON --------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Program/Interface.h"
#include "fp8/Runtime/Status.h"
#include "fp8/Support/JSON.h"
#include "mlir/AsmParser/AsmParser.h"

using namespace mlir;
using namespace mlir::fp8;

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static void writeValueInfo(llvm::json::OStream &json, const ValueInfo &info,
                           int64_t alignment) {
  json.object([&] {
    std::string type;
    llvm::raw_string_ostream(type) << info.type;
    json.attribute("name", info.name);
    json.attribute("type", type);
    json.attribute("dtype", StringRef(fp8rt::stringifyDType(info.dtype)));
    json.attribute("alignment", alignment);
    if (!info.isShaped())
      return;
    json.attributeArray("shape", [&] {
      for (int64_t size : info.shape)
        ShapedType::isDynamic(size) ? json.value(nullptr) : json.value(size);
    });
  });
}

std::string fp8::getManifest(const ProgramInterface &program) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  auto writeValueInfos = [&](StringRef key, ArrayRef<ValueInfo> infos) {
    json.attributeArray(key, [&] {
      for (const ValueInfo &info : infos)
        writeValueInfo(json, info, getAlignment(program, info));
    });
  };
  json.object([&] {
    json.attribute("version", 1);
    json.attribute("abi", static_cast<int64_t>(FP8RT_VERSION));
    json.attribute("name", program.name);
    json.attribute("target", program.target);
    json.attribute("cpu", program.processor.name);
    json.attribute("cpu_features", program.processor.features);
    json.attribute("recipe", program.recipe);
    if (program.isOnGPU())
      json.attribute("kernels", program.kernelFormat);
    json.attributeArray("functions", [&] {
      for (const ProgramFunction &function : program.functions)
        json.object([&] {
          json.attribute("name", function.signature.entry);
          json.attribute("symbol", function.symbol);
          json.attribute("takes_state", function.signature.takesState);
          writeValueInfos("arguments", function.signature.arguments);
          writeValueInfos("results", function.signature.results);
        });
    });
    if (!program.statsSlots.empty())
      json.attributeArray("stats", [&] {
        for (StringRef slot : program.statsSlots)
          json.value(slot);
      });
    if (!program.stateManifest.empty())
      json.attributeBegin("state"), json.rawValue(program.stateManifest),
          json.attributeEnd();
  });
  return text;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static llvm::Error parsePorts(const llvm::json::Array &values,
                              MLIRContext &context,
                              SmallVectorImpl<ValueInfo> &infos) {
  for (const llvm::json::Value &value : values) {
    const llvm::json::Object *object = value.getAsObject();
    auto name = object ? object->getString("name") : std::nullopt;
    auto text = object ? object->getString("type") : std::nullopt;
    Type type = name && text ? parseType(*text, &context) : Type();
    FailureOr<ValueInfo> info =
        type ? getValueInfo(*name, type) : FailureOr<ValueInfo>();
    if (failed(info))
      return llvm::createStringError(
          "expected arguments and results in the program's manifest to have a "
          "name and a type");
    infos.push_back(std::move(*info));
  }
  return llvm::Error::success();
}

static llvm::Expected<Signature> parseFunction(const llvm::json::Value &value,
                                               MLIRContext &context) {
  const llvm::json::Object *function = value.getAsObject();
  const llvm::json::Array *arguments =
      function ? function->getArray("arguments") : nullptr;
  const llvm::json::Array *results =
      function ? function->getArray("results") : nullptr;
  if (!arguments || !results || !function->getString("name"))
    return llvm::createStringError(
        "expected functions in the program's manifest to have a name, "
        "arguments and results");
  Signature signature;
  signature.entry = function->getString("name")->str();
  signature.takesState = function->getBoolean("takes_state").value_or(false);
  if (llvm::Error error = parsePorts(*arguments, context, signature.arguments))
    return error;
  if (llvm::Error error = parsePorts(*results, context, signature.results))
    return error;
  return signature;
}

llvm::Expected<Processor> fp8::parseProcessor(StringRef manifest) {
  auto value = parseJSON(manifest);
  if (!value)
    return value.takeError();
  const llvm::json::Object *object = value->getAsObject();
  if (!object || !object->getString("cpu"))
    return llvm::createStringError(
        "expected the program's manifest to have a cpu");
  return Processor{object->getString("cpu")->str(),
                   object->getString("cpu_features").value_or("").str()};
}

llvm::Expected<std::vector<Signature>>
fp8::parseSignatures(StringRef manifest, MLIRContext &context) {
  auto value = parseJSON(manifest);
  if (!value)
    return value.takeError();
  const llvm::json::Object *object = value->getAsObject();
  if (!object || !object->getArray("functions"))
    return llvm::createStringError(
        "expected the program's manifest to have functions");
  std::vector<Signature> signatures;
  for (const llvm::json::Value &element : *object->getArray("functions")) {
    auto function = parseFunction(element, context);
    if (!function)
      return function.takeError();
    signatures.push_back(std::move(*function));
  }
  return signatures;
}

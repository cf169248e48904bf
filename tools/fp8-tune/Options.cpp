//===- Options.cpp - Command line of fp8-tune -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "CommandLine.h"
#include "OptionTable.inc"

#include "fp8/Kernels/Architecture.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm::opt;
using namespace mlir::fp8;
using llvm::StringRef;

static llvm::Error parseShape(const Arg &arg, ShapeOptions &shapes) {
  llvm::SmallVector<StringRef> parts;
  getValue(arg).split(parts, 'x');
  std::array<int64_t, 4> extents{};
  if (parts.size() != 3 && parts.size() != 4)
    return makeValueError(arg, "MxNxK or BxMxNxK");
  for (auto [part, extent] : llvm::zip_equal(
           parts, llvm::MutableArrayRef(extents).take_back(parts.size())))
    if (part.getAsInteger(10, extent) || extent < 1 || extent > INT32_MAX)
      return makeValueError(arg, "MxNxK or BxMxNxK");
  shapes.extents.push_back(extents);
  return llvm::Error::success();
}

static llvm::Error parseChoice(const Arg &arg, std::string &value,
                               std::initializer_list<StringRef> choices) {
  if (!llvm::is_contained(choices, getValue(arg)))
    return makeValueError(arg, llvm::join(choices, " or "));
  value = getValue(arg);
  return llvm::Error::success();
}

static llvm::Error parseValue(const Arg &arg, TuneOptions &options) {
  ShapeOptions &shapes = options.shapes;
  switch (arg.getOption().getID()) {
  case OPT_o:
    options.output = getValue(arg);
    return llvm::Error::success();
  case OPT_shape:
    return parseShape(arg, shapes);
  case OPT_a:
    return parseChoice(arg, shapes.a, {"e4m3", "e5m2"});
  case OPT_b:
    return parseChoice(arg, shapes.b, {"e4m3", "e5m2"});
  case OPT_result:
    return parseChoice(arg, shapes.result, {"bf16", "f16", "f32"});
  case OPT_scales:
    return parseChoice(arg, shapes.scales, {"tensor", "row", "block"});
  case OPT_accumulate:
    return parseChoice(arg, shapes.accumulate, {"promote", "fast"});
  case OPT_rounds:
    return parseCount(arg, options.rounds);
  case OPT_costs:
    options.costs = true;
    return llvm::Error::success();
  case OPT_costs_EQ:
    options.configs = getValue(arg);
    return llvm::Error::success();
  case OPT_exhaustive:
    options.exhaustive = true;
    return llvm::Error::success();
  default:
    return parseCompilerOption(arg, options).takeError();
  }
}

/// Options that would have no effect are mistakes.
static llvm::Error checkUse(const InputArgList &args,
                            const TuneOptions &options) {
  bool hasShape = !options.shapes.extents.empty();
  if (!hasShape)
    for (ID id : {OPT_a, OPT_b, OPT_result, OPT_scales, OPT_accumulate})
      if (const Arg *arg = args.getLastArg(id))
        return llvm::createStringError("expected --shape=MxNxK with '" +
                                       arg->getAsString(args) + "'");
  if (hasShape && args.hasArg(OPT_INPUT))
    return llvm::createStringError(
        "expected a file or --shape=MxNxK, but got both");
  if (!lookupArchitecture(options.pipeline.target))
    return llvm::createStringError(
        "expected --target=" + llvm::join(getArchitectureChips(), " or ") +
        ", but got '" + options.pipeline.target + "'");
  return llvm::Error::success();
}

llvm::Expected<TuneOptions> mlir::fp8::parseOptions(int argc, char **argv) {
  ToolOptTable table;
  auto parsed = parseArguments(table, argc, argv, OPT_help);
  if (!parsed)
    return parsed.takeError();
  const InputArgList &args = *parsed;
  TuneOptions options;
  registerAllArchitectures();
  options.pipeline.target = getArchitectureChips().front();
  if (args.hasArg(OPT_help)) {
    table.printHelp(
        llvm::outs(),
        "fp8-tune {FILE.mlir | --shape=MxNxK...} -o TABLE.json "
        "[options]",
        "Measures the kernels of a program on this machine's GPU and "
        "writes which are fastest");
    options.help = true;
    return options;
  }
  for (const Arg *arg : args)
    if (llvm::Error error = parseValue(*arg, options))
      return error;
  auto settled = settleTarget(options.pipeline);
  if (!settled)
    return settled.takeError();
  options.pipeline = std::move(*settled);
  if (llvm::Error error = checkUse(args, options))
    return error;
  if (options.shapes.extents.empty()) {
    auto file = getInputFile(args);
    if (!file)
      return file.takeError();
    options.file = *file;
  }
  return options;
}

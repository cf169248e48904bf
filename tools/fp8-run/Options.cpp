//===- Options.cpp - Command line of fp8-run --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Through LLVM's option tables rather than its global options: those would add
// the hundreds that its libraries define, and collide with `--stats`.
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Option/Arg.h"
#include "llvm/Option/ArgList.h"
#include "llvm/Option/OptTable.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm::opt;
using namespace mlir::fp8;

namespace {
enum ID {
  OPT_INVALID = 0,
#define OPTION(...) LLVM_MAKE_OPT_ID(__VA_ARGS__),
#include "Options.inc"
#undef OPTION
};

#define OPTTABLE_STR_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_STR_TABLE_CODE

#define OPTTABLE_PREFIXES_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_PREFIXES_TABLE_CODE

constexpr OptTable::Info kInfos[] = {
#define OPTION(...) LLVM_CONSTRUCT_OPT_INFO(__VA_ARGS__),
#include "Options.inc"
#undef OPTION
};

struct RunOptTable : GenericOptTable {
  RunOptTable()
      : GenericOptTable(OptionStrTable, OptionPrefixesTable, kInfos) {}
};
} // namespace

llvm::Expected<RunOptions> mlir::fp8::parseOptions(int argc, char **argv) {
  RunOptTable table;
  unsigned missingIndex = 0, missingCount = 0;
  InputArgList args = table.ParseArgs(llvm::ArrayRef(argv + 1, argv + argc),
                                      missingIndex, missingCount);
  RunOptions options;
  if (args.hasArg(OPT_help)) {
    table.printHelp(llvm::outs(), "fp8-run FILE.mlir [options]",
                    "Compiles an MLIR program with FP8 matmuls and runs it");
    options.help = true;
    return options;
  }
  for (const Arg *arg : args.filtered(OPT_UNKNOWN)) {
    std::string nearest, text = arg->getAsString(args);
    std::string hint = "; see --help";
    if (table.findNearest(text, nearest) <= 2)
      hint = "; did you mean '" + nearest + "'?";
    return llvm::createStringError("unknown option '" + text + "'" + hint);
  }

  std::vector<std::string> files = args.getAllArgValues(OPT_INPUT);
  if (files.size() != 1)
    return llvm::createStringError("expected one input file, but got " +
                                   llvm::Twine(files.size()) + "; see --help");
  options.file = files.front();
  struct {
    ID id;
    std::string &value;
  } strings[] = {
      {OPT_entry, options.entry},
      {OPT_recipe, options.recipe},
      {OPT_recipe_file, options.recipeFile},
      {OPT_target, options.target},
      {OPT_compare, options.compare},
      {OPT_inputs, options.inputs},
      {OPT_outputs, options.outputs},
      {OPT_compile_to, options.compileTo},
      {OPT_fp8_remarks, options.remarks},
      {OPT_state_in, options.stateIn},
      {OPT_state_out, options.stateOut},
  };
  for (auto &[id, value] : strings) {
    const Arg *arg = args.getLastArg(id);
    if (!arg)
      continue;
    value = arg->getValue();
    if (value.empty())
      return llvm::createStringError("expected a value after '" +
                                     llvm::Twine(arg->getSpelling()) + "'");
  }
  options.time = args.hasArg(OPT_time);
  options.stats = args.hasArg(OPT_stats);
  options.freeze = args.hasArg(OPT_freeze);
  options.stateStrict = args.hasArg(OPT_state_strict);
  if (options.stateStrict && options.stateIn.empty())
    return llvm::createStringError(
        "expected --state-in=FILE with --state-strict");
  if (!options.compare.empty() && options.compare != "cpu")
    return llvm::createStringError(
        "expected cpu after '--compare=', but got '" + options.compare + "'");
  if (const Arg *arg = args.getLastArg(OPT_tolerance))
    if (llvm::StringRef(arg->getValue()).getAsDouble(options.tolerance))
      return llvm::createStringError(
          "expected a number after '--tolerance=', but got '" +
          llvm::Twine(arg->getValue()) + "'");
  if (const Arg *arg = args.getLastArg(OPT_max_padding))
    if (llvm::StringRef(arg->getValue()).getAsDouble(options.maxPadding))
      return llvm::createStringError(
          "expected a number after '--max-padding=', but got '" +
          llvm::Twine(arg->getValue()) + "'");
  auto parseCount = [&](llvm::opt::OptSpecifier id,
                        int64_t &count) -> llvm::Error {
    const Arg *arg = args.getLastArg(id);
    llvm::StringRef text = arg->getValue();
    if (text.getAsInteger(10, count) || count < 1)
      return llvm::createStringError(
          "expected an integer of at least 1 after '" + arg->getSpelling() +
          "', but got '" + text + "'");
    return llvm::Error::success();
  };
  if (args.hasArg(OPT_steps))
    if (llvm::Error error = parseCount(OPT_steps, options.steps.emplace()))
      return error;
  if (args.hasArg(OPT_microbatches))
    if (llvm::Error error = parseCount(OPT_microbatches, options.microbatches))
      return error;
  if (options.steps.value_or(1) % options.microbatches != 0)
    return llvm::createStringError(
        "expected --steps to be a multiple of --microbatches=" +
        llvm::Twine(options.microbatches) + ", but got " +
        llvm::Twine(options.steps.value_or(1)));
  options.require = args.hasArg(OPT_fp8_require);
  options.evaluateConstants = !args.hasArg(OPT_no_evaluate_constants);
  return options;
}

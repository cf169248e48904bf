//===- Options.cpp - Command line of fp8-state ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Options.h"

#include "CommandLine.h"
#include "OptionTable.inc"

#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>

using namespace llvm::opt;
using namespace mlir::fp8;
using llvm::Twine;

#define OPTTABLE_SUBCOMMAND_IDS_TABLE_CODE
#include "Options.inc"
#undef OPTTABLE_SUBCOMMAND_IDS_TABLE_CODE

#define OPTTABLE_SUBCOMMANDS_CODE
#include "Options.inc"
#undef OPTTABLE_SUBCOMMANDS_CODE

static llvm::Error checkOptions(const OptTable &table, const InputArgList &args,
                                llvm::StringRef command) {
  for (const Arg *arg : args) {
    bool isKnown = !arg->getOption().matches(OPT_UNKNOWN) &&
                   !arg->getOption().matches(OPT_INPUT);
    if (isKnown && !arg->getOption().isRegisteredSC(command))
      return llvm::createStringError("expected an option of '" + command +
                                     "', but got '" + arg->getAsString(args) +
                                     "'; see --help");
    if (llvm::Error error = checkOption(table, args, *arg))
      return error;
  }
  return llvm::Error::success();
}

static llvm::Error parseValue(const Arg &arg, StateOptions &options) {
  llvm::StringRef value = getValue(arg);
  switch (arg.getOption().getID()) {
  case OPT_slot:
    options.slots = value;
    break;
  case OPT_out:
    options.out = value;
    break;
  case OPT_remove:
    options.removals.push_back(value.str());
    break;
  case OPT_reset:
    options.resets.push_back(value.str());
    break;
  case OPT_history:
    options.history = true;
    break;
  case OPT_json:
    options.json = true;
    break;
  case OPT_tolerance:
    if (value.getAsDouble(options.tolerance) || !(options.tolerance >= 0))
      return makeValueError(arg, "a number of at least 0");
    break;
  case OPT_amax_history_len:
    if (value.getAsInteger(10, options.amaxHistoryLen.emplace()))
      return makeValueError(arg, "an integer");
    break;
  case OPT_set_scale: {
    auto [name, text] = value.rsplit('=');
    double scale;
    if (name.empty() || text.getAsDouble(scale))
      return makeValueError(arg, "NAME=VALUE");
    options.scales.push_back({name.str(), static_cast<float>(scale)});
    break;
  }
  case OPT_rename: {
    auto [oldName, newName] = value.split('=');
    if (oldName.empty() || newName.empty() || newName.contains('='))
      return makeValueError(arg, "OLD=NEW");
    options.renamings.push_back({oldName.str(), newName.str()});
    break;
  }
  default:
    break;
  }
  return llvm::Error::success();
}

llvm::Expected<StateOptions> mlir::fp8::parseOptions(int argc, char **argv) {
  ToolOptTable table(OptionSubCommands, OptionSubCommandIDsTable);
  unsigned missingIndex = 0, missingCount = 0;
  InputArgList args = table.ParseArgs(llvm::ArrayRef(argv + 1, argv + argc),
                                      missingIndex, missingCount);
  StateOptions options;
  options.files = args.getAllArgValues(OPT_INPUT);
  std::string command;
  if (!options.files.empty()) {
    command = options.files.front();
    options.files.erase(options.files.begin());
  }
  options.command = llvm::StringSwitch<StateOptions::Command>(command)
                        .Case("print", StateOptions::Print)
                        .Case("compare", StateOptions::Compare)
                        .Case("edit", StateOptions::Edit)
                        .Default(StateOptions::Help);
  bool known = options.command != StateOptions::Help;
  if (args.hasArg(OPT_help)) {
    table.printHelp(llvm::outs(), "fp8-state COMMAND [options]",
                    "Shows, compares and edits saved states of delayed scaling",
                    /*ShowHidden=*/false, /*ShowAllAliases=*/false,
                    Visibility(), known ? command : "");
    options.command = StateOptions::Help;
    return options;
  }
  if (!known)
    return llvm::createStringError(
        "expected the command print, compare or edit" +
        (command.empty() ? Twine() : ", but got '" + Twine(command) + "'") +
        "; see --help");
  if (llvm::Error error = checkOptions(table, args, command))
    return error;
  size_t numFiles = options.command == StateOptions::Compare ? 2 : 1;
  if (options.files.size() != numFiles)
    return llvm::createStringError(
        "expected " + Twine(numFiles == 1 ? "a file" : "two files") +
        " after '" + command + "', but got " + Twine(options.files.size()));
  for (const Arg *arg : args)
    if (llvm::Error error = parseValue(*arg, options))
      return error;
  if (options.command == StateOptions::Edit && options.out.empty())
    return llvm::createStringError("expected --out=FILE, which may be the "
                                   "same file, after 'edit'");
  return options;
}

//===- KeyedOption.td - Options known by a key -------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What an option is called is written once, in a record, from which come the
// table that reads it by its key (OptionTable.h) and the tools' command lines.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_SUPPORT_KEYEDOPTION_TD
#define FP8_SUPPORT_KEYEDOPTION_TD

include "llvm/TableGen/SearchableTable.td"

class KeyedOption<string owner, string key, string member, string value,
                  string help> {
  string Key = key;
  /// What it was called before, which still works; empty for most.
  string FormerKey = "";
  /// The member of the struct `owner` that holds it.
  string Member = "&" # owner # "::" # member;
  /// What stands for a value in help texts; empty for a flag.
  string Value = value;
  /// Without quotes, which the table could not hold.
  string Help = help;
}

class KeyedOptionTable<string owner, string options> : GenericTable {
  let FilterClass = options;
  let CppTypeName = "OptionInfo<" # owner # ">";
  let Fields = ["Key", "Member", "Value", "Help", "FormerKey"];
  string TypeOf_Member = "code";
}

#endif // FP8_SUPPORT_KEYEDOPTION_TD

//===- Options.td - Command line of fp8-state --------------*- tablegen -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "llvm/Option/OptParser.td"

def sc_print : SubCommand<"print", "Show what a saved state holds",
                          "fp8-state print FILE [options]">;
def sc_compare : SubCommand<"compare",
    "Show what differs; the exit status is 0 if nothing does, 1 if something "
    "does, and 2 if the files cannot be compared",
    "fp8-state compare FILE FILE [options]">;
def sc_edit : SubCommand<"edit", "Write a changed state, whole or not at all",
                         "fp8-state edit FILE --out=FILE [options]">;

class J<string name, string meta, list<SubCommand> commands, string help>
    : Joined<["--"], name # "=", commands>, MetaVarName<meta>, HelpText<help>;
class F<string name, list<SubCommand> commands, string help>
    : Flag<["--"], name, commands>, HelpText<help>;

def slot : J<"slot", "GLOB", [sc_print, sc_compare],
             "Only slots with such a name, e.g. 'layers.0.*'">;
def history : F<"history", [sc_print], "Also the past amaxes, oldest first">;
def json : F<"json", [sc_print], "JSON, with all digits and everything">;
def tolerance : J<"tolerance", "X", [sc_compare],
                  "Let scales and amaxes differ by this share (0)">;
def out : J<"out", "FILE", [sc_edit], "Where to; it may be the same file">;
def remove : J<"remove", "GLOB", [sc_edit], "Drop slots">;
def amax_history_len : J<"amax-history-len", "N", [sc_edit],
                         "Keep the newest amaxes, or add zeros as the oldest">;
def reset : J<"reset", "GLOB", [sc_edit],
              "Scale 1, no past amaxes and no counts, as in a new state">;
def set_scale : J<"set-scale", "NAME=VALUE", [sc_edit],
                  "Until the slot's next update">;
def rename : J<"rename", "OLD=NEW", [sc_edit],
               "After all other edits, and one after the other">;
def help : F<"help", [sc_print, sc_compare, sc_edit], "Print this">;

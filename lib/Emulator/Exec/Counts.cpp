//===- Counts.cpp - What a launch has done --------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counts.h"

using namespace fp8emu;

void Counts::countInstructions(unsigned warp, uint64_t count) {
  if (warp >= instructions.size())
    instructions.resize(warp + 1);
  instructions[warp] += count;
}

std::string Counts::str(const std::string &kernel) const {
  std::string text = "{\"kernel\": \"" + kernel + "\", \"products\": {";
  const char *separator = "";
  for (const auto &[name, count] : products) {
    text += separator + ("\"" + name) + "\": " + std::to_string(count);
    separator = ", ";
  }
  text += "}";
  auto add = [&](const char *name, uint64_t count) {
    text += std::string(", \"") + name + "\": " + std::to_string(count);
  };
  add("loaded", loaded);
  add("stored", stored);
  add("copied", copied);
  add("fills", fills);
  add("taken", taken);
  add("waits", waits);
  text += ", \"instructions\": [";
  separator = "";
  for (uint64_t count : instructions) {
    text += separator + std::to_string(count);
    separator = ", ";
  }
  return text + "]}\n";
}

//===- Settings.cpp - What the environment says ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Settings.h"

#include <algorithm>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

using namespace fp8emu;

static void expectOneOf(std::string &problem, const char *name,
                        const char *value, const char *expected) {
  problem += std::string(problem.empty() ? "" : "; ") + "expected " + name +
             " to be " + expected + ", but got '" + value + "'";
}

static void readNumber(std::string &problem, const char *name, uint64_t low,
                       uint64_t high, auto &number) {
  const char *value = std::getenv(name);
  if (!value)
    return;
  char *end = nullptr;
  unsigned long long read = std::strtoull(value, &end, 0);
  if (end == value || *end || read < low || read > high)
    return expectOneOf(
        problem, name, value,
        ("a number from " + std::to_string(low) + " to " + std::to_string(high))
            .c_str());
  number = static_cast<std::remove_reference_t<decltype(number)>>(read);
}

/// The index of the value among the words; -1 if it is not set or none.
static int readWord(std::string &problem, const char *name,
                    std::initializer_list<std::string_view> words,
                    const char *expected) {
  const char *value = std::getenv(name);
  if (!value)
    return -1;
  int index = 0;
  for (std::string_view word : words) {
    if (word == value)
      return index;
    ++index;
  }
  expectOneOf(problem, name, value, expected);
  return -1;
}

/// Words with commas between them.
static void readChecks(std::string &problem, uint32_t &checks) {
  constexpr std::string_view words[] = {
      "races", "proxies", "uninitialized", "registers", "launches", "global"};
  const char *name = "FP8_EMULATOR_CHECK", *value = std::getenv(name);
  if (!value)
    return;
  for (std::string_view rest = value; !rest.empty();) {
    std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    auto *it = std::find(std::begin(words), std::end(words), word);
    if (it != std::end(words))
      checks |= 1u << (it - words);
    else if (word == "all")
      checks = (1u << std::size(words)) - 1;
    else if (word != "none")
      return expectOneOf(problem, name, value,
                         "a list of races, proxies, uninitialized, registers, "
                         "launches, global, "
                         "all");
  }
}

Settings Settings::read(std::string &problem) {
  Settings settings;
  readNumber(problem, "FP8_EMULATOR_ARCH", 90, 100, settings.arch);
  readNumber(problem, "FP8_EMULATOR_SMS", 1, 1024, settings.multiprocessors);
  readNumber(problem, "FP8_EMULATOR_SEED", 0, UINT64_MAX, settings.seed);
  readNumber(problem, "FP8_EMULATOR_STEPS", 1, UINT64_MAX, settings.maxSteps);
  if (int order =
          readWord(problem, "FP8_EMULATOR_ORDER", {"eager", "lazy", "random"},
                   "eager, lazy or random");
      order >= 0)
    settings.order = static_cast<Order>(order);
  readChecks(problem, settings.checks);
  if (int mode = readWord(problem, "FP8_EMULATOR_MODE", {"lax", "strict"},
                          "strict or lax");
      mode >= 0)
    settings.strict = mode == 1;
  if (int math = readWord(problem, "FP8_EMULATOR_MATH", {"f32", "exact"},
                          "exact or f32");
      math >= 0)
    settings.exact = math == 1;
  if (const char *file = std::getenv("FP8_EMULATOR_REPORT"))
    settings.reportFile = file;
  if (const char *file = std::getenv("FP8_EMULATOR_TRACE"))
    settings.traceFile = file;
  return settings;
}

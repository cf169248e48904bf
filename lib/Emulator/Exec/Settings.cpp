//===- Settings.cpp - What the environment says ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <string_view>

using namespace fp8emu;

/// The value of a variable; null if it is not set, or empty.
static const char *getVariable(const char *name) {
  const char *value = std::getenv(name);
  return value && *value ? value : nullptr;
}

static void expectOneOf(std::string &problem, const char *name,
                        const char *value, const char *expected) {
  problem += std::string(problem.empty() ? "" : "; ") + "expected " + name +
             " to be " + expected + ", but got '" + value + "'";
}

static void readNumber(std::string &problem, const char *name, uint64_t low,
                       uint64_t high, auto &number) {
  const char *value = getVariable(name);
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
  const char *value = getVariable(name);
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

/// Words with commas between them, until one is refused.
static void readList(const char *name, auto take) {
  const char *value = std::getenv(name);
  for (std::string_view rest = value ? value : ""; !rest.empty();) {
    std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (!take(word))
      return;
  }
}

static void readChecks(std::string &problem, uint32_t &checks) {
  constexpr std::string_view words[] = {
      "races",    "proxies", "uninitialized", "registers",
      "launches", "global",  "unwritten",     "sums"};
  const char *name = "FP8_EMULATOR_CHECK";
  readList(name, [&](std::string_view word) {
    auto *it = std::find(std::begin(words), std::end(words), word);
    if (it != std::end(words)) {
      checks |= 1u << (it - words);
    } else if (word == "all") {
      // A sum in any order is no mistake, unless a kernel promises one.
      checks |= kCheckSums - 1;
    } else if (word != "none") {
      expectOneOf(problem, name, std::getenv(name),
                  "a list of races, proxies, uninitialized, registers, "
                  "launches, global, unwritten, sums, all");
      return false;
    }
    return true;
  });
}

template <class T>
static bool parseNumber(std::string_view text, T &number) {
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end && number > 0;
}

/// function[@call]=error
static bool parseFailure(std::string_view text, Failure &failure) {
  size_t equals = text.find('='), at = text.find('@');
  if (equals == std::string_view::npos ||
      !parseNumber(text.substr(equals + 1), failure.error))
    return false;
  text = text.substr(0, equals);
  failure.function = text.substr(0, at);
  return at == std::string_view::npos ||
         (at < equals && parseNumber(text.substr(at + 1), failure.call));
}

static void readFailures(std::string &problem, Settings &settings) {
  const char *name = "FP8_EMULATOR_FAIL";
  readList(name, [&](std::string_view word) {
    Failure failure;
    if (!parseFailure(word, failure)) {
      expectOneOf(problem, name, std::getenv(name),
                  "a list of FUNCTION=ERROR and FUNCTION@CALL=ERROR");
      return false;
    }
    settings.failures.push_back(std::move(failure));
    return true;
  });
}

Settings Settings::read(std::string &problem) {
  Settings settings;
  readNumber(problem, "FP8_EMULATOR_VERSION", 1000, 99999, settings.version);
  readNumber(problem, "FP8_EMULATOR_DEVICES", 0, 8, settings.devices);
  readNumber(problem, "FP8_EMULATOR_MEMORY", 0, uint64_t{1} << 40,
             settings.memory);
  readNumber(problem, "FP8_EMULATOR_POOLS", 0, 1, settings.pools);
  readNumber(problem, "FP8_EMULATOR_HOST_TENSORS", 0, 1, settings.hostTensors);
  readList("FP8_EMULATOR_WITHOUT", [&](std::string_view word) {
    settings.missing.emplace_back(word);
    return true;
  });
  readFailures(problem, settings);
  if (int arch = readWord(problem, "FP8_EMULATOR_ARCH",
                          {"80", "89", "90", "100", "120", "121"},
                          "80, 89, 90, 100, 120 or 121");
      arch >= 0)
    settings.arch =
        std::array{80u, 89u, 90u, 100u, 120u, 121u}[static_cast<size_t>(arch)];
  if (int kernels = readWord(problem, "FP8_EMULATOR_KERNELS", {"skip", "run"},
                             "run or skip");
      kernels >= 0)
    settings.runKernels = kernels == 1;
  readNumber(problem, "FP8_EMULATOR_SMS", 1, 1024, settings.multiprocessors);
  readNumber(problem, "FP8_EMULATOR_SEED", 0, UINT64_MAX, settings.seed);
  readNumber(problem, "FP8_EMULATOR_STEPS", 1, UINT64_MAX, settings.maxSteps);
  if (int order =
          readWord(problem, "FP8_EMULATOR_ORDER", {"eager", "lazy", "random"},
                   "eager, lazy or random");
      order >= 0)
    settings.order = static_cast<Order>(order);
  if (int blocks = readWord(problem, "FP8_EMULATOR_BLOCKS",
                            {"ordered", "shuffled"}, "ordered or shuffled");
      blocks >= 0)
    settings.shuffled = blocks == 1;
  readChecks(problem, settings.checks);
  if (int mode = readWord(problem, "FP8_EMULATOR_MODE", {"lax", "strict"},
                          "strict or lax");
      mode >= 0)
    settings.strict = mode == 1;
  if (int math = readWord(problem, "FP8_EMULATOR_MATH", {"f32", "exact"},
                          "exact or f32");
      math >= 0)
    settings.exact = math == 1;
  if (const char *file = getVariable("FP8_EMULATOR_REPORT"))
    settings.reportFile = file;
  if (const char *file = getVariable("FP8_EMULATOR_TRACE"))
    settings.traceFile = file;
  if (const char *file = getVariable("FP8_EMULATOR_COUNTS"))
    settings.countsFile = file;
  return settings;
}

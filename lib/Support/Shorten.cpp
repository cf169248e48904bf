//===- Shorten.cpp - Texts of users in messages ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Support/Shorten.h"

#include <algorithm>

using namespace mlir;
using namespace mlir::fp8;

/// No path has more, and what is left of a word on either side.
static constexpr size_t kLongestWord = 1024, kEnd = 100;
/// A line shows where something is.
static constexpr size_t kLongestLine = 4096;

/// Where a text may be cut at or before `end`: not within a character.
static size_t findEnd(StringRef text, size_t end) {
  while (end > 0 && end < text.size() && (text[end] & 0xC0) == 0x80)
    --end;
  return end;
}

std::string fp8::shortenWords(StringRef message) {
  std::string result;
  while (!message.empty()) {
    StringRef word = message.take_until([](char c) { return c == ' '; });
    if (word.size() <= kLongestWord) {
      result += word;
    } else {
      result += word.take_front(findEnd(word, kEnd));
      result += "...";
      result += word.drop_front(findEnd(word, word.size() - kEnd));
      result += " (" + std::to_string(word.size()) + " bytes)";
    }
    message = message.drop_front(word.size());
    StringRef spaces = message.take_while([](char c) { return c == ' '; });
    result += spaces;
    message = message.drop_front(spaces.size());
  }
  return result;
}

std::string fp8::shortenLines(StringRef text) {
  std::string result;
  {
    llvm::raw_string_ostream os(result);
    ShortLineStream(os) << text;
  }
  return result;
}

void ShortLineStream::finishLine() {
  if (width > kLongestLine)
    os << "... (" << width << " bytes)";
  width = 0;
}

void ShortLineStream::write_impl(const char *data, size_t size) {
  position += size;
  StringRef text(data, size);
  while (!text.empty()) {
    StringRef line = text.take_until([](char c) { return c == '\n'; });
    os << line.take_front(kLongestLine - std::min(width, kLongestLine));
    width += line.size();
    text = text.drop_front(line.size());
    if (text.consume_front("\n")) {
      finishLine();
      os << '\n';
    }
  }
}

llvm::raw_ostream &ShortLineStream::changeColor(enum Colors color, bool bold,
                                                bool background) {
  os.changeColor(color, bold, background);
  return *this;
}

llvm::raw_ostream &ShortLineStream::resetColor() {
  os.resetColor();
  return *this;
}

//===- Lexer.h - Tokens of PTX ----------------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_PTX_LEXER_H
#define FP8_LIB_EMULATOR_PTX_LEXER_H

#include "Module.h"

namespace fp8emu {

struct Token {
  enum Kind : uint8_t { End, Word, Integer, Float, Float32, String, Punct };
  Kind kind = End;
  unsigned line = 1;
  std::string_view text;
  uint64_t value = 0; /* of a float: the bits of an f64, or of an f32 */

  bool is(std::string_view word) const {
    return (kind == Word || kind == Punct) && text == word;
  }
};

/// Splits text on demand. A word may hold dots and pairs of colons, so that an
/// opcode with its modifiers is one.
class Lexer {
public:
  explicit Lexer(std::string_view text) : text(text) { advance(); }

  const Token &peek() const { return token; }
  /// The present token; the next one becomes it.
  Token take() {
    Token taken = token;
    advance();
    return taken;
  }
  bool takeIf(std::string_view word) {
    if (!token.is(word))
      return false;
    advance();
    return true;
  }

private:
  void advance();
  void skipBlanks();
  void lexNumber();
  void lexBits(int digits);
  char at(size_t offset) const {
    return position + offset < text.size() ? text[position + offset] : '\0';
  }

  std::string_view text;
  size_t position = 0;
  unsigned line = 1;
  Token token;
};

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_PTX_LEXER_H

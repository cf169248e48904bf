//===- Lexer.cpp - Tokens of PTX ------------------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Lexer.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

using namespace fp8emu;

static bool isWordStart(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '%' || c == '.';
}

static bool isWordPart(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' ||
         c == '.';
}

void Lexer::skipBlanks() {
  while (position < text.size()) {
    char c = text[position];
    if (c == '\n')
      ++line;
    if (std::isspace(static_cast<unsigned char>(c))) {
      ++position;
    } else if (c == '/' && at(1) == '/') {
      while (position < text.size() && text[position] != '\n')
        ++position;
    } else if (c == '/' && at(1) == '*') {
      unsigned begin = line;
      position += 2;
      while (position < text.size() && !(at(0) == '*' && at(1) == '/'))
        line += text[position++] == '\n';
      if (position >= text.size())
        throw PTXError(begin, "expected the end of a comment, but got none");
      position += 2;
    } else {
      return;
    }
  }
}

/// 0f3F800000 and 0d3FF0000000000000.
void Lexer::lexBits(int digits) {
  size_t begin = position;
  position += 2;
  for (int i = 0; i < digits; ++i, ++position) {
    char c = at(0);
    if (!std::isxdigit(static_cast<unsigned char>(c)))
      throw PTXError(
          line, "expected " + std::to_string(digits) +
                    " hexadecimal digits of a number, but got '" +
                    std::string(text.substr(begin, position - begin)) + "'");
    int digit = std::isdigit(static_cast<unsigned char>(c))
                    ? c - '0'
                    : std::tolower(c) - 'a' + 10;
    token.value = token.value << 4 | static_cast<uint64_t>(digit);
  }
  token.kind = digits == 8 ? Token::Float32 : Token::Float;
}

void Lexer::lexNumber() {
  size_t begin = position;
  char second = static_cast<char>(std::tolower(at(1)));
  if (at(0) == '0' && (second == 'f' || second == 'd')) {
    lexBits(second == 'f' ? 8 : 16);
  } else {
    bool isFloat = false;
    int base = 10;
    if (at(0) == '0' && (second == 'x' || second == 'b')) {
      base = second == 'x' ? 16 : 2;
      position += 2;
    } else if (at(0) == '0') {
      base = 8;
    }
    size_t digits = position;
    while (base == 16 ? std::isxdigit(static_cast<unsigned char>(at(0)))
                      : std::isdigit(static_cast<unsigned char>(at(0))))
      ++position;
    if (base == 10 || base == 8) {
      if (at(0) == '.' && std::isdigit(static_cast<unsigned char>(at(1)))) {
        isFloat = true;
        ++position;
        while (std::isdigit(static_cast<unsigned char>(at(0))))
          ++position;
      }
      if ((at(0) == 'e' || at(0) == 'E') && isFloat) {
        ++position;
        if (at(0) == '-' || at(0) == '+')
          ++position;
        while (std::isdigit(static_cast<unsigned char>(at(0))))
          ++position;
      }
    }
    std::string number(text.substr(digits, position - digits));
    errno = 0;
    char *end = nullptr;
    if (isFloat) {
      double value = std::strtod(number.c_str(), &end);
      std::memcpy(&token.value, &value, sizeof(value));
      token.kind = Token::Float;
    } else {
      token.value = std::strtoull(number.c_str(), &end, base);
      token.kind = Token::Integer;
      if (at(0) == 'U')
        ++position;
    }
    if (number.empty() || *end || errno == ERANGE)
      throw PTXError(
          line, "expected a number, but got '" +
                    std::string(text.substr(begin, position - begin)) + "'");
  }
  if (isWordPart(at(0)) && at(0) != '.')
    throw PTXError(
        line, "expected a number, but got '" +
                  std::string(text.substr(begin, position - begin + 1)) + "'");
  token.text = text.substr(begin, position - begin);
}

void Lexer::advance() {
  skipBlanks();
  token = Token();
  token.line = line;
  if (position >= text.size())
    return;
  size_t begin = position;
  char c = text[position];
  if (std::isdigit(static_cast<unsigned char>(c)))
    return lexNumber();
  if (isWordStart(c)) {
    ++position;
    while (isWordPart(at(0)) || (at(0) == ':' && at(1) == ':'))
      position += at(0) == ':' ? 2 : 1;
    token.kind = Token::Word;
  } else if (c == '"') {
    ++position;
    while (position < text.size() && text[position] != '"' &&
           text[position] != '\n')
      ++position;
    if (at(0) != '"')
      throw PTXError(line, "expected the end of a string, but got none");
    ++position;
    token.kind = Token::String;
  } else if (c && std::strchr("{}[]()<>,;:|+-!@=~*/&?^", c)) {
    ++position;
    token.kind = Token::Punct;
  } else {
    unsigned byte = static_cast<unsigned char>(c);
    throw PTXError(line, byte >= 32 && byte < 127
                             ? std::string("unexpected character '") + c + "'"
                             : "unexpected byte " + std::to_string(byte));
  }
  token.text = text.substr(begin, position - begin);
}

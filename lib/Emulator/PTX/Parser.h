//===- Parser.h - Grammar of PTX modules ------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_PTX_PARSER_H
#define FP8_LIB_EMULATOR_PTX_PARSER_H

#include "Lexer.h"

#include <unordered_map>

namespace fp8emu {

/// What is common to modules and functions: variables, and lists of words.
class ParserBase {
protected:
  explicit ParserBase(Lexer &lexer) : lexer(lexer) {}

  [[noreturn]] void fail(const std::string &what) const {
    throw PTXError(lexer.peek().line, what);
  }
  [[noreturn]] void failToken(const std::string &expected) const;
  void expect(std::string_view word) {
    if (!lexer.takeIf(word))
      failToken("'" + std::string(word) + "'");
  }
  std::string_view expectName(const char *what);
  uint64_t expectInteger(const char *what);
  /// .align, types, a name, extents, and initial values, after the space.
  Variable parseVariable(Space space);
  void skipToSemicolon();
  void skipBraces();

  Lexer &lexer;

private:
  void parseInitial(Variable &variable, uint64_t elementBytes, bool isFloat);
};

/// The body of a function: registers, labels, and statements in scopes.
class BodyParser : ParserBase {
public:
  BodyParser(Lexer &lexer, Function &function)
      : ParserBase(lexer), function(function) {}
  /// After the opening brace, to past the closing one.
  void parse();

private:
  struct LabelUse {
    size_t statement, operand;
    unsigned line;
  };
  struct Scope {
    std::unordered_map<std::string_view, uint32_t> registers;
    std::unordered_map<std::string_view, int64_t> labels;
    std::vector<LabelUse> uses;
  };

  void parseItem();
  void parseRegisters();
  void parseStatement();
  void openScope();
  void closeScope();
  void addRegister(std::string_view name, uint8_t bits);
  Operand parseOperand();
  Operand parseValue();
  Operand parseName();
  Operand parseMemory();
  Operand parseVector();
  const uint32_t *findRegister(std::string_view name) const;
  /// A view of a string that lives as long as the module's.
  std::string_view intern(std::string name);

  Function &function;
  std::vector<Scope> scopes;
  unsigned depth = 0; /* of brackets */
};

/// Bits of a fundamental type by its name without the dot; 0 if there is none.
unsigned getTypeBits(std::string_view type);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_PTX_PARSER_H

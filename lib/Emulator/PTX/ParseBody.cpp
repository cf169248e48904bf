//===- ParseBody.cpp - Statements of PTX functions ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

using namespace fp8emu;

/// Braces within braces; more is no program but an attempt on the stack.
static constexpr unsigned kMaxDepth = 64;
static constexpr uint32_t kMaxRegisters = 1 << 20;

std::string_view BodyParser::intern(std::string name) {
  return function.names.emplace_back(std::move(name));
}

void BodyParser::openScope() {
  if (scopes.size() >= kMaxDepth)
    fail("expected at most " + std::to_string(kMaxDepth) +
         " scopes within each other, but got more");
  scopes.emplace_back();
}

/// A label that is not in a scope may be in the one around it.
void BodyParser::closeScope() {
  Scope scope = std::move(scopes.back());
  scopes.pop_back();
  for (LabelUse &use : scope.uses) {
    Operand &operand = function.statements[use.statement].operands[use.operand];
    auto it = scope.labels.find(operand.name);
    if (it != scope.labels.end()) {
      operand.kind = Operand::Label;
      operand.value = it->second;
    } else if (!scopes.empty()) {
      scopes.back().uses.push_back(use);
    }
  }
}

void BodyParser::addRegister(std::string_view name, uint8_t bits) {
  if (function.registers.size() >= kMaxRegisters)
    fail("expected at most 2^20 registers, but got more");
  auto index = static_cast<uint32_t>(function.registers.size());
  if (!scopes.back().registers.try_emplace(name, index).second)
    fail("register '" + std::string(name) + "' is declared already");
  function.registers.push_back({name, bits});
}

const uint32_t *BodyParser::findRegister(std::string_view name) const {
  for (auto scope = scopes.rbegin(); scope != scopes.rend(); ++scope) {
    auto it = scope->registers.find(name);
    if (it != scope->registers.end())
      return &it->second;
  }
  return nullptr;
}

void BodyParser::parseRegisters() {
  if (lexer.peek().kind != Token::Word)
    failToken("a type of registers");
  std::string_view type = lexer.take().text;
  unsigned bits = type[0] == '.' ? getTypeBits(type.substr(1)) : 0;
  if (bits == 0)
    fail("expected a type of registers, but got '" + std::string(type) + "'");
  bits = bits == 8 ? 16 : bits; // no instruction works on less
  do {
    std::string_view name = expectName("the name of a register");
    if (!lexer.takeIf("<")) {
      addRegister(name, static_cast<uint8_t>(bits));
      continue;
    }
    uint64_t count = expectInteger("a number of registers");
    expect(">");
    if (count > kMaxRegisters)
      fail("expected at most 2^20 registers, but got " + std::to_string(count));
    for (uint64_t i = 0; i < count; ++i)
      addRegister(intern(std::string(name) + std::to_string(i)),
                  static_cast<uint8_t>(bits));
  } while (lexer.takeIf(","));
  expect(";");
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

Operand BodyParser::parseName() {
  Operand operand;
  operand.name = lexer.take().text;
  if (const uint32_t *index = findRegister(operand.name)) {
    operand.kind = Operand::Reg;
    operand.index = *index;
  } else if (operand.name[0] == '%') {
    operand.kind = Operand::Special;
  } else if (operand.name == "WARP_SZ") {
    operand.kind = Operand::Integer;
    operand.value = 32;
  } else if (operand.name != "_") {
    operand.kind = Operand::Symbol;
  }
  return operand;
}

/// A register, a number, or a symbol with an offset.
Operand BodyParser::parseValue() {
  Operand operand;
  bool negative = lexer.takeIf("-");
  const Token &token = lexer.peek();
  switch (token.kind) {
  case Token::Word:
    if (negative || token.text[0] == '.')
      failToken("a number");
    operand = parseName();
    break;
  case Token::Integer:
    operand.kind = Operand::Integer;
    operand.value = static_cast<int64_t>(lexer.take().value);
    if (negative)
      operand.value =
          static_cast<int64_t>(-static_cast<uint64_t>(operand.value));
    return operand;
  case Token::Float:
  case Token::Float32: {
    bool narrow = token.kind == Token::Float32;
    operand.kind = narrow ? Operand::Float32 : Operand::Float;
    uint64_t bits = lexer.take().value;
    if (negative)
      bits ^= uint64_t{1} << (narrow ? 31 : 63);
    operand.value = static_cast<int64_t>(bits);
    return operand;
  }
  default:
    failToken("an operand");
  }
  bool inBrackets = depth > 0;
  if ((operand.kind == Operand::Symbol ||
       (operand.kind == Operand::Reg && !inBrackets)) &&
      lexer.takeIf("+")) {
    bool minus = lexer.takeIf("-");
    auto offset = static_cast<int64_t>(expectInteger("an offset"));
    operand.value = minus ? -offset : offset;
  }
  return operand;
}

Operand BodyParser::parseMemory() {
  Operand memory;
  memory.kind = Operand::Memory;
  expect("[");
  ++depth;
  memory.elements.push_back(parseValue());
  --depth;
  while (lexer.peek().is("+") || lexer.peek().is("-")) {
    bool minus = lexer.take().is("-");
    if (lexer.takeIf("-"))
      minus = !minus;
    auto offset = static_cast<int64_t>(expectInteger("an offset"));
    memory.value += minus ? -offset : offset;
  }
  if (lexer.takeIf(","))
    memory.elements.push_back(parseVector());
  expect("]");
  return memory;
}

Operand BodyParser::parseVector() {
  Operand vector;
  vector.kind = Operand::Vector;
  expect("{");
  if (!lexer.takeIf("}")) {
    do
      vector.elements.push_back(parseValue());
    while (lexer.takeIf(","));
    expect("}");
  }
  return vector;
}

Operand BodyParser::parseOperand() {
  if (lexer.peek().is("["))
    return parseMemory();
  if (lexer.peek().is("{"))
    return parseVector();
  if (lexer.takeIf("!")) {
    Operand operand = parseValue();
    if (operand.kind != Operand::Reg)
      fail("expected a predicate after '!', but got another operand");
    operand.negated = true;
    return operand;
  }
  Operand operand = parseValue();
  if (!lexer.takeIf("|"))
    return operand;
  Operand pair;
  pair.kind = Operand::Pair;
  pair.elements.push_back(std::move(operand));
  pair.elements.push_back(parseValue());
  return pair;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

void BodyParser::parseStatement() {
  Statement statement;
  statement.line = lexer.peek().line;
  if (lexer.takeIf("@")) {
    statement.hasGuard = true;
    statement.guard.negated = lexer.takeIf("!");
    if (lexer.peek().kind != Token::Word)
      failToken("a predicate");
    bool negated = statement.guard.negated;
    statement.guard = parseName();
    statement.guard.negated = negated;
    if (statement.guard.kind != Operand::Reg ||
        function.registers[statement.guard.index].bits != 1)
      fail("expected a predicate as guard, but got '" +
           std::string(statement.guard.name) + "'");
  }
  if (lexer.peek().kind != Token::Word || lexer.peek().text[0] == '.')
    failToken("an instruction");
  statement.line = lexer.peek().line;
  statement.opcode = lexer.take().text;
  if (!lexer.peek().is(";")) {
    do
      // (results), (arguments) of calls are vectors of a kind.
      if (lexer.peek().is("(")) {
        expect("(");
        Operand list;
        list.kind = Operand::Vector;
        if (!lexer.takeIf(")")) {
          do
            list.elements.push_back(parseValue());
          while (lexer.takeIf(","));
          expect(")");
        }
        statement.operands.push_back(std::move(list));
      } else {
        statement.operands.push_back(parseOperand());
      }
    while (lexer.takeIf(","));
  }
  expect(";");
  for (size_t i = 0; i < statement.operands.size(); ++i)
    if (statement.operands[i].kind == Operand::Symbol)
      scopes.back().uses.push_back(
          {function.statements.size(), i, statement.line});
  function.statements.push_back(std::move(statement));
}

void BodyParser::parseItem() {
  if (lexer.takeIf("{"))
    return openScope();
  if (lexer.takeIf("}"))
    return closeScope();
  if (lexer.takeIf(".reg"))
    return parseRegisters();
  for (auto [word, space] :
       {std::pair{".shared", Space::Shared}, std::pair{".local", Space::Local},
        std::pair{".param", Space::Param}}) {
    if (!lexer.takeIf(word))
      continue;
    function.variables.push_back(parseVariable(space));
    return expect(";");
  }
  if (lexer.takeIf(".loc")) {
    unsigned line = lexer.peek().line;
    while (lexer.peek().kind != Token::End && lexer.peek().line == line)
      lexer.take();
    return;
  }
  if (lexer.takeIf(".pragma"))
    return skipToSemicolon();
  if (lexer.takeIf(";"))
    return;
  // A label, or a statement: known by what follows the word.
  if (lexer.peek().kind == Token::Word && lexer.peek().text[0] != '.') {
    Lexer ahead = lexer;
    Token name = ahead.take();
    if (ahead.takeIf(":")) {
      lexer = ahead;
      auto index = static_cast<int64_t>(function.statements.size());
      if (!scopes.back().labels.try_emplace(name.text, index).second)
        throw PTXError(name.line, "label '" + std::string(name.text) +
                                      "' is there already");
      return;
    }
  }
  parseStatement();
}

void BodyParser::parse() {
  openScope();
  while (!scopes.empty()) {
    if (lexer.peek().kind == Token::End)
      failToken("'}' at the end of function '" + std::string(function.name) +
                "'");
    parseItem();
  }
}

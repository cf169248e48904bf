//===- ParseModule.cpp - Directives of PTX modules ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parser.h"

#include <cstring>

using namespace fp8emu;

/// More than any device has; so that sums of extents do not overflow.
static constexpr uint64_t kMaxBytes = uint64_t{1} << 40;

unsigned fp8emu::getTypeBits(std::string_view type) {
  static const std::unordered_map<std::string_view, unsigned> types = {
      {"pred", 1},  {"b8", 8},   {"u8", 8},   {"s8", 8},     {"b16", 16},
      {"u16", 16},  {"s16", 16}, {"f16", 16}, {"bf16", 16},  {"b32", 32},
      {"u32", 32},  {"s32", 32}, {"f32", 32}, {"f16x2", 32}, {"bf16x2", 32},
      {"tf32", 32}, {"b64", 64}, {"u64", 64}, {"s64", 64},   {"f64", 64},
      {"b128", 128}};
  auto it = types.find(type);
  return it == types.end() ? 0 : it->second;
}

void ParserBase::failToken(const std::string &expected) const {
  const Token &token = lexer.peek();
  fail("expected " + expected + ", but got " +
       (token.kind == Token::End ? "the end of the module"
                                 : "'" + std::string(token.text) + "'"));
}

std::string_view ParserBase::expectName(const char *what) {
  if (lexer.peek().kind != Token::Word || lexer.peek().text[0] == '.')
    failToken(what);
  return lexer.take().text;
}

uint64_t ParserBase::expectInteger(const char *what) {
  if (lexer.peek().kind != Token::Integer)
    failToken(what);
  return lexer.take().value;
}

void ParserBase::skipToSemicolon() {
  while (lexer.peek().kind != Token::End && !lexer.takeIf(";"))
    lexer.take();
}

void ParserBase::skipBraces() {
  expect("{");
  for (unsigned depth = 1; depth > 0;) {
    if (lexer.peek().kind == Token::End)
      failToken("'}'");
    Token token = lexer.take();
    depth += token.is("{");
    depth -= token.is("}");
  }
}

void ParserBase::parseInitial(Variable &variable, uint64_t elementBytes,
                              bool isFloat) {
  unsigned depth = 0;
  do {
    while (lexer.takeIf("{"))
      ++depth;
    bool negative = lexer.takeIf("-");
    Token token = lexer.take();
    if (token.kind != Token::Integer && token.kind != Token::Float &&
        token.kind != Token::Float32)
      throw PTXError(token.line,
                     "expected a number as initial value, but got '" +
                         std::string(token.text) + "'");
    uint64_t bits = token.value;
    if (isFloat && elementBytes == 4 && token.kind != Token::Float32) {
      double wide = static_cast<double>(token.value);
      if (token.kind == Token::Float)
        std::memcpy(&wide, &token.value, sizeof(wide));
      float narrow = static_cast<float>(wide);
      uint32_t word;
      std::memcpy(&word, &narrow, sizeof(word));
      bits = word;
    }
    if (negative)
      bits = isFloat ? bits ^ uint64_t{1} << (8 * elementBytes - 1) : -bits;
    for (uint64_t i = 0; i < elementBytes; ++i)
      variable.initial.push_back(static_cast<uint8_t>(bits >> 8 * (i % 8)));
    if (variable.initial.size() > variable.bytes)
      fail("expected at most " + std::to_string(variable.bytes) +
           " bytes of initial values, but got more");
    while (depth > 0 && lexer.takeIf("}"))
      --depth;
  } while (lexer.takeIf(","));
  if (depth > 0)
    failToken("'}'");
}

Variable ParserBase::parseVariable(Space space) {
  Variable variable;
  variable.space = space;
  variable.line = lexer.peek().line;
  uint64_t elementBytes = 0;
  bool isFloat = false, givenAlign = false;
  while (lexer.peek().kind == Token::Word && lexer.peek().text[0] == '.') {
    std::string_view word = lexer.take().text.substr(1);
    if (word == "align") {
      uint64_t align = expectInteger("an alignment");
      if (align == 0 || align > 1u << 20 || (align & (align - 1)))
        fail("expected an alignment that is a power of two, but got " +
             std::to_string(align));
      // A parameter's first alignment is its own, that after .ptr is of what it
      // points to.
      if (!givenAlign)
        variable.align = static_cast<uint32_t>(align);
      givenAlign = true;
    } else if (word == "ptr") {
      givenAlign = true;
    } else if (word == "v2" || word == "v4") {
      elementBytes = word == "v2" ? 2 : 4;
    } else if (unsigned bits = getTypeBits(word)) {
      elementBytes = std::max<uint64_t>(elementBytes, 1) * ((bits + 7) / 8);
      isFloat = word == "f32" || word == "f64";
    } else if (word != "global" && word != "const" && word != "shared" &&
               word != "local" && word != "attribute") {
      fail("unknown attribute '." + std::string(word) + "' of a variable");
    }
  }
  if (elementBytes == 0)
    failToken("a type");
  variable.name = expectName("the name of a variable");
  variable.align =
      std::max(variable.align, static_cast<uint32_t>(elementBytes));
  variable.bytes = elementBytes;
  while (lexer.takeIf("[")) {
    if (lexer.takeIf("]")) {
      variable.bytes = 0;
      continue;
    }
    uint64_t extent = expectInteger("the number of elements");
    if (extent > kMaxBytes ||
        (extent > 0 && variable.bytes > kMaxBytes / extent))
      fail("expected less than 2^40 bytes of '" + std::string(variable.name) +
           "', but got more");
    variable.bytes *= extent;
    expect("]");
  }
  if (lexer.takeIf("="))
    parseInitial(variable, elementBytes, isFloat);
  return variable;
}

namespace {
class ModuleParser : ParserBase {
public:
  ModuleParser(Lexer &lexer, Module &module)
      : ParserBase(lexer), module(module) {}
  void parse();

private:
  void parseHeader();
  void parseDirective();
  void parseFunction(bool isEntry, bool isExtern);
  void parseParams(std::vector<Variable> &params);
  void parsePerformance(Function &function);
  void parseExtents(uint32_t (&extents)[3]);

  Module &module;
};
} // namespace

void ModuleParser::parseHeader() {
  if (!lexer.takeIf(".version"))
    failToken("'.version' at the beginning of the module");
  if (lexer.peek().kind != Token::Float)
    failToken("a version such as 8.0");
  double version;
  uint64_t bits = lexer.take().value;
  std::memcpy(&version, &bits, sizeof(version));
  if (!(version >= 1 && version < 1000))
    fail("expected a version such as 8.0, but got another number");
  module.version = static_cast<unsigned>(version * 10 + 0.5);
  if (!lexer.takeIf(".target"))
    failToken("'.target' after the version");
  module.target = expectName("an architecture");
  while (lexer.takeIf(","))
    expectName("an option of the target");
  if (lexer.takeIf(".address_size"))
    if (uint64_t size = expectInteger("a size of addresses"); size != 64)
      fail("expected addresses of 64 bits, but got " + std::to_string(size));
}

void ModuleParser::parseParams(std::vector<Variable> &params) {
  expect("(");
  if (lexer.takeIf(")"))
    return;
  do {
    if (!lexer.takeIf(".param") && !lexer.takeIf(".reg"))
      failToken("'.param'");
    params.push_back(parseVariable(Space::Param));
  } while (lexer.takeIf(","));
  expect(")");
}

void ModuleParser::parseExtents(uint32_t (&extents)[3]) {
  for (int i = 0; i < 3; ++i) {
    extents[i] = 1;
    if (i == 0 || lexer.takeIf(",")) {
      uint64_t extent = expectInteger("an extent");
      if (extent == 0 || extent > UINT32_MAX)
        fail("expected an extent of 32 bits, but got " +
             std::to_string(extent));
      extents[i] = static_cast<uint32_t>(extent);
    }
  }
}

void ModuleParser::parsePerformance(Function &function) {
  for (;;) {
    if (lexer.takeIf(".maxntid")) {
      parseExtents(function.maxThreads);
    } else if (lexer.takeIf(".reqntid")) {
      parseExtents(function.reqThreads);
    } else if (lexer.takeIf(".reqnctapercluster")) {
      parseExtents(function.reqCluster);
    } else if (lexer.takeIf(".explicitcluster")) {
      function.explicitCluster = true;
    } else if (lexer.takeIf(".maxnreg")) {
      function.maxRegisters =
          static_cast<uint32_t>(expectInteger("a number of registers"));
    } else if (lexer.takeIf(".minnctapersm") ||
               lexer.takeIf(".maxclusterrank")) {
      expectInteger("a number");
    } else if (lexer.takeIf(".pragma")) {
      skipToSemicolon();
    } else if (!lexer.takeIf(".noreturn") &&
               !lexer.takeIf(".blocksareclusters")) {
      return;
    }
  }
}

void ModuleParser::parseFunction(bool isEntry, bool isExtern) {
  Function &function = module.functions.emplace_back();
  function.isEntry = isEntry;
  function.line = lexer.peek().line;
  std::vector<Variable> results;
  if (!isEntry && lexer.peek().is("("))
    parseParams(results);
  function.name = expectName("the name of a function");
  if (lexer.peek().is("("))
    parseParams(function.params);
  parsePerformance(function);
  if (lexer.takeIf(";")) { // a declaration
    module.functions.pop_back();
    return;
  }
  if (isExtern)
    failToken("';' after a function that is elsewhere");
  expect("{");
  BodyParser(lexer, function).parse();
}

void ModuleParser::parseDirective() {
  bool isExtern = false;
  for (;;) {
    if (lexer.takeIf(".extern"))
      isExtern = true;
    else if (!lexer.takeIf(".visible") && !lexer.takeIf(".weak") &&
             !lexer.takeIf(".common"))
      break;
  }
  if (lexer.takeIf(".entry"))
    return parseFunction(/*isEntry=*/true, isExtern);
  if (lexer.takeIf(".func"))
    return parseFunction(/*isEntry=*/false, isExtern);
  for (auto [word, space] :
       {std::pair{".global", Space::Global}, std::pair{".const", Space::Const},
        std::pair{".shared", Space::Shared}}) {
    if (!lexer.takeIf(word))
      continue;
    module.variables.push_back(parseVariable(space));
    module.variables.back().isExtern = isExtern;
    return expect(";");
  }
  if (lexer.takeIf(".file") || lexer.takeIf(".loc")) {
    unsigned line = lexer.peek().line;
    while (lexer.peek().kind != Token::End && lexer.peek().line == line)
      lexer.take();
    return;
  }
  if (lexer.takeIf(".section")) {
    lexer.take();
    return skipBraces();
  }
  if (lexer.takeIf(".pragma") || lexer.takeIf(".alias"))
    return skipToSemicolon();
  failToken("a directive of a module");
}

void ModuleParser::parse() {
  parseHeader();
  while (lexer.peek().kind != Token::End)
    parseDirective();
}

std::unique_ptr<Module> fp8emu::parseModule(std::string text) {
  auto module = std::make_unique<Module>();
  module->text = std::move(text);
  Lexer lexer(module->text);
  ModuleParser(lexer, *module).parse();
  return module;
}

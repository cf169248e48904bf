//===- Module.h - What the parser makes of PTX ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The text stays where it is: names and opcodes are views of it. Scopes are
// gone: a register is an index into its function's table, a label the index of
// a statement.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_PTX_MODULE_H
#define FP8_LIB_EMULATOR_PTX_MODULE_H

#include <cstdint>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace fp8emu {

/// What is wrong with a module's text, and where.
struct PTXError : std::runtime_error {
  PTXError(unsigned line, const std::string &what)
      : std::runtime_error("line " + std::to_string(line) + ": " + what) {}
};

enum class Space : uint8_t { Generic, Const, Global, Local, Param, Shared };

/// A variable of a module or function, or a parameter. A size of 0 is that of
/// dynamic shared memory.
struct Variable {
  std::string_view name;
  Space space = Space::Generic;
  bool isExtern = false;
  uint32_t align = 1;
  uint64_t bytes = 0;
  std::vector<uint8_t> initial; /* may be shorter: the rest are zeros */
  unsigned line = 0;
};

struct Register {
  std::string_view name;
  uint8_t bits; /* 1 is a predicate */
};

/// An operand as it is written.
struct Operand {
  enum Kind : uint8_t {
    Reg,     /* index, plus value; negated of a predicate */
    Special, /* name: %tid.x */
    Integer, /* value */
    Float,   /* value: bits of an f64 */
    Float32, /* value: bits of an f32, 0f3F800000 */
    Symbol,  /* name of a variable, plus value */
    Label,   /* value: a statement */
    Memory,  /* elements[0]: base, + value; elements[1], if any: coordinates */
    Vector,  /* elements */
    Pair,    /* elements: d|p */
    Sink,    /* _ */
  };
  Kind kind = Sink;
  bool negated = false;
  uint32_t index = 0;
  int64_t value = 0;
  std::string_view name;
  std::vector<Operand> elements;
};

struct Statement {
  unsigned line = 0;
  std::string_view opcode;
  bool hasGuard = false;
  Operand guard;
  std::vector<Operand> operands;
};

struct Function {
  std::string_view name;
  bool isEntry = false;
  unsigned line = 0;
  std::vector<Variable> params;
  std::vector<Variable> variables; /* .shared and .local */
  std::vector<Register> registers;
  std::deque<std::string> names; /* of registers that are declared by range */
  std::vector<Statement> statements;
  uint32_t maxThreads[3] = {0, 0, 0}; /* .maxntid */
  uint32_t reqThreads[3] = {0, 0, 0}; /* .reqntid */
  uint32_t reqCluster[3] = {0, 0, 0}; /* .reqnctapercluster */
  uint32_t maxRegisters = 0;          /* .maxnreg */
  bool explicitCluster = false;
};

struct Module {
  std::string text;
  unsigned version = 0;    /* 90 is 9.0 */
  std::string_view target; /* sm_90a */
  std::vector<Variable> variables;
  std::deque<Function> functions;
};

/// Throws PTXError.
std::unique_ptr<Module> parseModule(std::string text);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_PTX_MODULE_H

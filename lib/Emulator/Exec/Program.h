//===- Program.h - A kernel, decoded ----------------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A statement becomes an operation: a handler, and where its operands lie in a
// warp's register file. There, a register is a row of 32 lanes; a predicate is
// a word of 32 bits. Constants and special registers are rows too, filled when
// a warp begins, so that handlers know no other operands.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_EXEC_PROGRAM_H
#define FP8_LIB_EMULATOR_EXEC_PROGRAM_H

#include "PTX/Module.h"

#include <unordered_map>

namespace fp8emu {

class Warp;
struct Op;

/// Lanes, the first in the lowest bit.
using Mask = uint32_t;
constexpr unsigned kLanes = 32;

/// What a handler says of the operation.
enum class Step : uint8_t {
  Next, /* done */
  Jump, /* the handler has set the group's place, or split it */
  Wait, /* not done: again when something has happened */
  Exit, /* the lanes have ended */
};

using Handler = Step (*)(Warp &, const Op &, Mask);

struct Op {
  Handler handler = nullptr;
  uint32_t d = 0;      /* the row of the result */
  uint32_t s[4] = {0}; /* rows of the sources */
  uint32_t guard = 0;  /* a predicate, if hasGuard */
  bool hasGuard = false;
  bool guardNegated = false;
  /// All lanes of the warp that live come here before it begins.
  bool aligned = false;
  bool usesTensorCore = false;
  uint8_t width = 0;  /* of elements of memory, in bytes */
  uint16_t count = 0; /* of elements or operands in Program::rows */
  uint32_t flags = 0; /* of the handler */
  uint32_t rows = 0;  /* the first of more operands in Program::rows */
  int64_t imm = 0;    /* an offset, a target, a number of groups */
  uint32_t statement = 0;
};

/// What a row holds when a warp begins.
struct InitialRow {
  /// Scratch is where results go that nobody wants.
  enum Kind : uint8_t { Value, SharedAddress, Scratch, Special };
  Kind kind;
  uint8_t bits;
  uint32_t offset;
  uint64_t value; /* of a special register, its SpecialRegister */
};

enum class SpecialRegister : uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  ClusteridX,
  ClusteridY,
  ClusteridZ,
  NclusteridX,
  NclusteridY,
  NclusteridZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  IsExplicitCluster,
  DynamicSmemSize,
  TotalSmemSize,
};

struct ParamSlot {
  uint32_t offset, bytes;
};

/// Offsets of shared memory begin here: what is below belongs to the system, as
/// on the chips, and catches null pointers.
constexpr uint32_t kSharedBase = 1024;

struct Program {
  std::shared_ptr<const Module> module;
  const Function *function = nullptr;
  std::vector<Op> ops;
  std::vector<uint32_t> rows;
  std::vector<InitialRow> initial;
  uint32_t registerBytes = 0;
  /// Rows of the 32-bit registers that operations name, those of ops[i] from
  /// firstOperand[i] on: the race checker follows them.
  struct Operand32 {
    uint32_t row;
    bool isResult;
  };
  std::vector<Operand32> operands;
  std::vector<uint32_t> firstOperand;
  std::vector<ParamSlot> params;
  uint32_t paramBytes = 0;
  uint32_t staticShared = 0; /* bytes, without those of the system */
  uint32_t dynamicOffset = kSharedBase;
  uint32_t localBytes = 0;
  uint32_t registersPerThread = 0; /* an estimate, if the kernel says none */
  unsigned tensorGroup = 0; /* .cta_group of tcgen05; 0 if there is none */
  /// Names of shared variables, for reports: offset to name.
  std::vector<std::pair<uint32_t, std::string_view>> sharedNames;

  unsigned getLine(const Op &op) const {
    return function->statements.empty()
               ? function->line
               : function->statements[op.statement].line;
  }
  /// The statement as it is written; the beginning of a long one.
  std::string getText(const Op &op) const;
};

/// Addresses of a module's variables, by name.
using SymbolTable = std::unordered_map<std::string_view, uint64_t>;

/// Throws PTXError.
std::unique_ptr<Program> decodeFunction(std::shared_ptr<const Module> module,
                                        const Function &function,
                                        const SymbolTable &globals);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_EXEC_PROGRAM_H

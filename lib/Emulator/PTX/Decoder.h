//===- Decoder.h - From statements to operations ----------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_EMULATOR_PTX_DECODER_H
#define FP8_LIB_EMULATOR_PTX_DECODER_H

#include "Exec/Program.h"

#include <map>
#include <optional>
#include <unordered_set>

namespace fp8emu {

/// A type of an instruction.
struct Type {
  enum Kind : uint8_t { Bits, Unsigned, Signed, Float, BFloat, Predicate };
  Kind kind = Bits;
  uint8_t bits = 0;
  bool packed = false; /* two of them in a register */

  bool isInteger() const { return kind <= Signed; }
  bool is(Kind k, unsigned b) const { return kind == k && bits == b; }
  unsigned registerBits() const { return packed ? 2u * bits : bits; }
};

/// An opcode in its parts, of which a decoder takes those that it knows; one
/// that is left is an error.
class Modifiers {
public:
  Modifiers(std::string_view opcode);

  std::string_view stem;
  bool take(std::string_view name);
  /// The first of these that is there; its index.
  std::optional<unsigned> takeOneOf(std::initializer_list<const char *> names);
  /// The next type, in the order they are written.
  std::optional<Type> takeType();
  std::string_view takeNext();
  bool has(std::string_view name) const;
  bool empty() const { return parts.empty(); }
  std::string_view front() const { return parts.front(); }

private:
  std::vector<std::string_view> parts;
};

/// A register's in a warp's register file.
inline uint32_t getRowBytes(unsigned bits) {
  return bits == 1 ? 4 : std::max(bits, 16u) / 8 * kLanes;
}

inline uint64_t alignTo(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

/// Decodes the statements of a function.
class Decoder {
public:
  Decoder(Program &program, const SymbolTable &globals);
  void run();

  /// Throws, with the line and text of the statement.
  [[noreturn]] void fail(const std::string &what) const;

  Type takeType(Modifiers &modifiers) const;
  size_t numOperands() const { return statement->operands.size(); }
  void expectOperands(size_t count) const;
  /// The module is for the architecture, with one of these suffixes.
  void expectTarget(unsigned arch, std::string_view suffixes) const;
  /// The module is for that architecture, or a later one.
  void expectTargetFrom(unsigned arch) const;
  const Operand &operand(size_t i) const;

  /// The row of a source of so many bits: a register or a constant.
  uint32_t source(const Operand &operand, Type type);
  uint32_t source(size_t i, Type type) { return source(operand(i), type); }
  uint32_t sourceBits(const Operand &operand, unsigned bits) {
    return source(operand, {Type::Bits, static_cast<uint8_t>(bits)});
  }
  /// A register that may be wider than what it is used for.
  uint32_t wideSource(const Operand &operand, unsigned minBits, unsigned &bits);
  uint32_t predicate(const Operand &operand, bool &negated);
  /// Whether it is a register of one bit.
  bool isPredicate(const Operand &operand) const {
    return operand.kind == Operand::Reg && registerBits(operand) == 1;
  }
  uint32_t destination(const Operand &operand, unsigned bits);
  uint32_t wideDestination(const Operand &operand, unsigned minBits,
                           unsigned &bits);
  /// Elements of a vector, or the operand itself.
  std::vector<const Operand *> elements(const Operand &operand) const;
  /// An integer that is known when the module is loaded.
  int64_t immediate(const Operand &operand) const;
  /// The base of [base + offset]: its row, and if that has 64 bits.
  struct Address {
    uint32_t row;
    int64_t offset;
    bool wide;
  };
  Address address(const Operand &operand);
  /// A register of 64 bits plus a number, as LLVM writes descriptors.
  Address registerWithOffset(const Operand &operand);
  /// Three entries of Program::rows, where an operation has several addresses
  /// or descriptors.
  void addAddress(std::vector<uint32_t> &rows, const Operand &operand);
  uint32_t addRows(const std::vector<uint32_t> &rows);
  /// The operation is a load whose results are those of Program::rows.
  void addVectorLoad() { vectorLoads.push_back(program.ops.size()); }
  uint32_t constant(unsigned bits, uint64_t value,
                    InitialRow::Kind kind = InitialRow::Value);
  unsigned registerBits(const Operand &operand) const;
  const ParamSlot *findParam(std::string_view name) const;
  /// Whether it is a name of the thread's own memory.
  bool isLocal(const Operand &operand) const;
  int64_t getLocalOffset(const Operand &operand) const;
  const Variable *findLocal(std::string_view name, uint64_t &offset) const;

  Program &program;
  const Function &function;

private:
  void layOut();
  void decodeStatement(const Statement &statement);
  void listOperands(const Operand &operand, bool isResult);
  /// Finds what nobody uses of vector loads (Addresses.h).
  void findUnusedElements();
  uint64_t getSymbol(const Operand &operand, InitialRow::Kind &kind) const;

  struct SharedVariable {
    uint32_t offset;
  };
  const SymbolTable &globals;
  const Statement *statement = nullptr;
  std::vector<uint32_t> registerRows;
  std::vector<size_t> vectorLoads;
  /// Rows of registers that some statement reads.
  std::unordered_set<uint32_t> usedRows;
  std::unordered_map<std::string_view, uint32_t> sharedOffsets;
  std::unordered_map<std::string_view, uint64_t> localOffsets;
  std::unordered_map<std::string_view, ParamSlot> paramSlots;
  std::map<std::tuple<int, unsigned, uint64_t>, uint32_t> constants;
  uint32_t nextRow = 0;
};

using DecodeFn = void (*)(Decoder &, Modifiers &, Op &);
/// Each table adds the instructions that it knows.
using DecodeTable = std::unordered_map<std::string_view, DecodeFn>;
void addArithmetic(DecodeTable &table);
void addLogic(DecodeTable &table);
void addMoves(DecodeTable &table);
void addComparisons(DecodeTable &table);
void addConversions(DecodeTable &table);
void addControl(DecodeTable &table);
void addMemory(DecodeTable &table);
void addSpaces(DecodeTable &table);
void addAtomics(DecodeTable &table);
void addWarpwide(DecodeTable &table);
void addBarriers(DecodeTable &table);
void addMBarriers(DecodeTable &table);
void addAsyncCopies(DecodeTable &table);
void addMatrices(DecodeTable &table);
/// mov and not of predicates.
void decodePredicateMove(Decoder &decoder, Op &op, bool invert);
/// cp.async without bulk, and its groups.
void decodePlainCopy(Decoder &decoder, Modifiers &modifiers, Op &op);
/// The rest of cp.async.bulk.tensor.
void decodeTensorCopy(Decoder &decoder, Modifiers &modifiers, Op &op);
void addWgmma(DecodeTable &table);
void addMma(DecodeTable &table);
void addTcgen05(DecodeTable &table);
void addClusterControl(DecodeTable &table);
/// Decodes pairs of f32; false if it is none.
bool decodePackedArithmetic(Decoder &decoder, Modifiers &modifiers, Op &op);
/// Decodes f32 with terms of 16 bits; false if it is none.
bool decodeMixedArithmetic(Decoder &decoder, Modifiers &modifiers, Op &op);
/// cvt of formats that sm_100 has; false if it is none.
bool decodeNarrowConversion(Decoder &decoder, Modifiers &modifiers, Op &op);

} // namespace fp8emu

#endif // FP8_LIB_EMULATOR_PTX_DECODER_H

//===- Decoder.cpp - From statements to operations ------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include "Exec/Addresses.h"

#include "Parser.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace fp8emu;

Decoder::Decoder(Program &program, const SymbolTable &globals)
    : program(program), function(*program.function), globals(globals) {
  layOut();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

void Decoder::fail(const std::string &what) const {
  throw PTXError(statement->line,
                 what + " in '" + std::string(statement->opcode) + "'");
}

Type Decoder::takeType(Modifiers &modifiers) const {
  std::optional<Type> type = modifiers.takeType();
  if (!type)
    fail("expected a type");
  return *type;
}

void Decoder::expectOperands(size_t count) const {
  if (numOperands() != count)
    fail("expected " + std::to_string(count) + " operands, but got " +
         std::to_string(numOperands()));
}

void Decoder::expectTarget(unsigned arch, std::string_view suffixes) const {
  std::string_view target = program.module->target;
  std::string plain = "sm_" + std::to_string(arch);
  for (char suffix : suffixes)
    if (target == plain + suffix)
      return;
  fail("expected a module for " + plain + suffixes[0] + ", but got one for " +
       std::string(target));
}

void Decoder::expectTargetFrom(unsigned arch) const {
  std::string_view target = program.module->target;
  unsigned number = 0;
  for (char c : target)
    if (c >= '0' && c <= '9' && number < 1000)
      number = number * 10 + static_cast<unsigned>(c - '0');
  if (number < arch)
    fail("expected a module for sm_" + std::to_string(arch) +
         " or later, but got one for " + std::string(target));
}

const Operand &Decoder::operand(size_t i) const {
  if (i >= numOperands())
    fail("expected more than " + std::to_string(numOperands()) + " operands");
  return statement->operands[i];
}

unsigned Decoder::registerBits(const Operand &operand) const {
  return operand.kind == Operand::Reg ? function.registers[operand.index].bits
                                      : 0;
}

uint32_t Decoder::constant(unsigned bits, uint64_t value,
                           InitialRow::Kind kind) {
  if (kind == InitialRow::Value && bits < 64)
    value &= (uint64_t{1} << bits) - 1;
  auto [it, isNew] = constants.try_emplace({kind, bits, value}, 0);
  if (!isNew)
    return it->second;
  nextRow = static_cast<uint32_t>(alignTo(nextRow, bits == 1 ? 4 : 64));
  it->second = nextRow;
  program.initial.push_back({kind, static_cast<uint8_t>(bits), nextRow, value});
  nextRow += getRowBytes(bits);
  return it->second;
}

static const std::unordered_map<std::string_view, SpecialRegister> &
getSpecials() {
  using S = SpecialRegister;
  static const std::unordered_map<std::string_view, SpecialRegister> map = {
      {"%tid.x", S::TidX},
      {"%tid.y", S::TidY},
      {"%tid.z", S::TidZ},
      {"%ntid.x", S::NtidX},
      {"%ntid.y", S::NtidY},
      {"%ntid.z", S::NtidZ},
      {"%ctaid.x", S::CtaidX},
      {"%ctaid.y", S::CtaidY},
      {"%ctaid.z", S::CtaidZ},
      {"%nctaid.x", S::NctaidX},
      {"%nctaid.y", S::NctaidY},
      {"%nctaid.z", S::NctaidZ},
      {"%laneid", S::LaneId},
      {"%warpid", S::WarpId},
      {"%nwarpid", S::NwarpId},
      {"%smid", S::SmId},
      {"%nsmid", S::NsmId},
      {"%gridid", S::GridId},
      {"%lanemask_eq", S::LanemaskEq},
      {"%lanemask_le", S::LanemaskLe},
      {"%lanemask_lt", S::LanemaskLt},
      {"%lanemask_ge", S::LanemaskGe},
      {"%lanemask_gt", S::LanemaskGt},
      {"%clusterid.x", S::ClusteridX},
      {"%clusterid.y", S::ClusteridY},
      {"%clusterid.z", S::ClusteridZ},
      {"%nclusterid.x", S::NclusteridX},
      {"%nclusterid.y", S::NclusteridY},
      {"%nclusterid.z", S::NclusteridZ},
      {"%cluster_ctaid.x", S::ClusterCtaidX},
      {"%cluster_ctaid.y", S::ClusterCtaidY},
      {"%cluster_ctaid.z", S::ClusterCtaidZ},
      {"%cluster_nctaid.x", S::ClusterNctaidX},
      {"%cluster_nctaid.y", S::ClusterNctaidY},
      {"%cluster_nctaid.z", S::ClusterNctaidZ},
      {"%cluster_ctarank", S::ClusterCtarank},
      {"%cluster_nctarank", S::ClusterNctarank},
      {"%is_explicit_cluster", S::IsExplicitCluster},
      {"%dynamic_smem_size", S::DynamicSmemSize},
      {"%total_smem_size", S::TotalSmemSize}};
  return map;
}

uint64_t Decoder::getSymbol(const Operand &operand,
                            InitialRow::Kind &kind) const {
  auto offset = static_cast<uint64_t>(operand.value);
  kind = InitialRow::Value;
  if (auto it = sharedOffsets.find(operand.name); it != sharedOffsets.end()) {
    kind = InitialRow::SharedAddress;
    return it->second + offset;
  }
  if (auto it = localOffsets.find(operand.name); it != localOffsets.end())
    return it->second + offset;
  if (auto it = paramSlots.find(operand.name); it != paramSlots.end())
    return it->second.offset + offset;
  if (auto it = globals.find(operand.name); it != globals.end())
    return it->second + offset;
  fail("unknown name '" + std::string(operand.name) + "'");
}

uint32_t Decoder::source(const Operand &operand, Type type) {
  unsigned bits = type.registerBits();
  switch (operand.kind) {
  case Operand::Reg:
    if (function.registers[operand.index].bits != bits)
      fail("expected '" + std::string(operand.name) + "' to have " +
           std::to_string(bits) + " bits, but got " +
           std::to_string(function.registers[operand.index].bits));
    if (operand.negated)
      fail("expected '!' only before predicates, but got one before '" +
           std::string(operand.name) + "'");
    if (operand.value != 0)
      fail("expected no number after '" + std::string(operand.name) + "'");
    return registerRows[operand.index];
  case Operand::Special: {
    auto it = getSpecials().find(operand.name);
    if (it == getSpecials().end())
      fail("unknown register '" + std::string(operand.name) + "'");
    return constant(bits, static_cast<uint64_t>(it->second),
                    InitialRow::Special);
  }
  case Operand::Integer:
    if (type.kind == Type::Float && bits == 32) {
      auto number = static_cast<float>(operand.value);
      uint32_t word;
      std::memcpy(&word, &number, sizeof(word));
      return constant(32, word);
    }
    return constant(bits, static_cast<uint64_t>(operand.value));
  case Operand::Float32:
    if (bits != 32)
      fail("expected an operand of " + std::to_string(bits) +
           " bits, but got a number of 32");
    return constant(32, static_cast<uint64_t>(operand.value));
  case Operand::Float: {
    if (bits == 64)
      return constant(64, static_cast<uint64_t>(operand.value));
    double wide;
    std::memcpy(&wide, &operand.value, sizeof(wide));
    auto narrow = static_cast<float>(wide);
    uint32_t word;
    std::memcpy(&word, &narrow, sizeof(word));
    if (bits != 32)
      fail("expected an operand of " + std::to_string(bits) +
           " bits, but got a floating-point number");
    return constant(32, word);
  }
  case Operand::Symbol: {
    InitialRow::Kind kind;
    uint64_t value = getSymbol(operand, kind);
    return constant(bits, value, kind);
  }
  default:
    fail("expected a register or a number, but got another operand");
  }
}

uint32_t Decoder::wideSource(const Operand &operand, unsigned minBits,
                             unsigned &bits) {
  bits = registerBits(operand);
  if (bits == 0)
    bits = std::max(minBits, 16u);
  if (bits < minBits || bits == 1)
    fail("expected an operand of at least " + std::to_string(minBits) +
         " bits, but got " + std::to_string(bits));
  return sourceBits(operand, bits);
}

uint32_t Decoder::predicate(const Operand &operand, bool &negated) {
  negated = operand.negated;
  if (operand.kind == Operand::Integer)
    return constant(1, operand.value != 0 ? 1 : 0);
  if (operand.kind != Operand::Reg || registerBits(operand) != 1)
    fail("expected a predicate, but got '" + std::string(operand.name) + "'");
  return registerRows[operand.index];
}

uint32_t Decoder::destination(const Operand &operand, unsigned bits) {
  if (operand.kind == Operand::Sink) {
    return constant(bits, 0, InitialRow::Scratch);
  }
  if (operand.kind != Operand::Reg || operand.value != 0)
    fail("expected a register as result, but got another operand");
  unsigned got = function.registers[operand.index].bits;
  if (got != bits)
    fail("expected '" + std::string(operand.name) + "' to have " +
         std::to_string(bits) + " bits, but got " + std::to_string(got));
  return registerRows[operand.index];
}

uint32_t Decoder::wideDestination(const Operand &operand, unsigned minBits,
                                  unsigned &bits) {
  bits = operand.kind == Operand::Sink ? std::max(minBits, 16u)
                                       : registerBits(operand);
  if (bits < minBits || bits == 1)
    fail("expected a result of at least " + std::to_string(minBits) +
         " bits, but got " + std::to_string(bits));
  return destination(operand, bits);
}

std::vector<const Operand *> Decoder::elements(const Operand &operand) const {
  std::vector<const Operand *> list;
  if (operand.kind != Operand::Vector)
    return {&operand};
  for (const Operand &element : operand.elements)
    list.push_back(&element);
  return list;
}

int64_t Decoder::immediate(const Operand &operand) const {
  if (operand.kind != Operand::Integer)
    fail("expected a number, but got another operand");
  return operand.value;
}

Decoder::Address Decoder::address(const Operand &operand) {
  if (operand.kind != Operand::Memory)
    fail("expected an address in brackets, but got another operand");
  const Operand &base = operand.elements[0];
  unsigned bits = registerBits(base);
  if (bits == 0)
    bits = 64;
  if (bits != 32 && bits != 64)
    fail("expected an address of 32 or 64 bits, but got " +
         std::to_string(bits));
  return {sourceBits(base, bits), operand.value, bits == 64};
}

Decoder::Address Decoder::registerWithOffset(const Operand &operand) {
  Operand base = operand;
  base.value = operand.kind == Operand::Reg ? 0 : operand.value;
  return {sourceBits(base, 64), operand.value - base.value, true};
}

void Decoder::addAddress(std::vector<uint32_t> &rows, const Operand &operand) {
  Address at = operand.kind == Operand::Memory ? address(operand)
                                               : registerWithOffset(operand);
  if (at.offset < INT32_MIN || at.offset > INT32_MAX)
    fail("expected an offset of 32 bits, but got " + std::to_string(at.offset));
  rows.insert(rows.end(),
              {at.row, static_cast<uint32_t>(at.offset), uint32_t{at.wide}});
}

uint32_t Decoder::addRows(const std::vector<uint32_t> &rows) {
  auto first = static_cast<uint32_t>(program.rows.size());
  program.rows.insert(program.rows.end(), rows.begin(), rows.end());
  return first;
}

bool Decoder::isLocal(const Operand &operand) const {
  return operand.kind == Operand::Symbol &&
         localOffsets.find(operand.name) != localOffsets.end();
}

int64_t Decoder::getLocalOffset(const Operand &operand) const {
  return static_cast<int64_t>(localOffsets.at(operand.name));
}

const ParamSlot *Decoder::findParam(std::string_view name) const {
  auto it = paramSlots.find(name);
  return it == paramSlots.end() ? nullptr : &it->second;
}

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

static const DecodeTable &getTable() {
  static const DecodeTable table = [] {
    DecodeTable t;
    for (auto add :
         {addArithmetic, addLogic, addMoves, addComparisons, addConversions,
          addControl, addMemory, addSpaces, addAtomics, addWarpwide,
          addBarriers, addMBarriers, addAsyncCopies, addMatrices, addWgmma,
          addMma, addTcgen05, addClusterControl})
      add(t);
    return t;
  }();
  return table;
}

void Decoder::listOperands(const Operand &operand, bool isResult) {
  if (registerBits(operand) == 32)
    program.operands.push_back({registerRows[operand.index], isResult});
  if (!isResult && registerBits(operand) != 0)
    usedRows.insert(registerRows[operand.index]);
  // The base of an address is read, whatever is done there.
  isResult &= operand.kind != Operand::Memory;
  for (const Operand &element : operand.elements)
    listOperands(element, isResult);
}

void Decoder::decodeStatement(const Statement &s) {
  statement = &s;
  program.firstOperand.push_back(
      static_cast<uint32_t>(program.operands.size()));
  Modifiers modifiers(s.opcode);
  auto it = getTable().find(modifiers.stem);
  if (it == getTable().end())
    throw PTXError(s.line,
                   "unknown instruction '" + std::string(s.opcode) + "'");
  Op op;
  op.statement = static_cast<uint32_t>(&s - function.statements.data());
  if (s.hasGuard) {
    op.hasGuard = true;
    op.guardNegated = s.guard.negated;
    op.guard = registerRows[s.guard.index];
  }
  bool hasResult = modifiers.stem != "bar" && modifiers.stem != "barrier";
  for (const Operand &operand : s.operands)
    listOperands(operand, hasResult && &operand == &s.operands[0]);
  it->second(*this, modifiers, op);
  if (!modifiers.empty() || !op.handler)
    throw PTXError(s.line,
                   "unknown instruction '" + std::string(s.opcode) + "'" +
                       (modifiers.empty()
                            ? std::string()
                            : ": its '." + std::string(modifiers.front()) +
                                  "' is not known"));
  program.ops.push_back(op);
}

void Decoder::run() {
  for (const Statement &s : function.statements)
    decodeStatement(s);
  // Falling off the end is a return, and labels may be there.
  static const Statement noStatement;
  statement = &noStatement;
  Op end;
  Modifiers modifiers("ret");
  getTable().at("ret")(*this, modifiers, end);
  end.statement = function.statements.empty()
                      ? 0
                      : static_cast<uint32_t>(function.statements.size() - 1);
  program.ops.push_back(end);
  program.firstOperand.resize(program.ops.size() + 1,
                              static_cast<uint32_t>(program.operands.size()));
  program.registerBytes = static_cast<uint32_t>(alignTo(nextRow, 64));
  findUnusedElements();
}

void Decoder::findUnusedElements() {
  for (size_t index : vectorLoads) {
    Op &op = program.ops[index];
    uint32_t used = 0;
    for (unsigned e = 0; e < op.count; ++e)
      if (usedRows.count(program.rows[op.rows + e]))
        used |= ((uint64_t{1} << op.width) - 1) << (e * op.width);
    if (used == (uint64_t{1} << (op.count * op.width)) - 1)
      continue;
    op.s[3] = used;
    op.flags |= kPartlyUsed;
  }
}

std::string Program::getText(const Op &op) const {
  if (function->statements.empty())
    return "";
  std::string_view opcode = function->statements[op.statement].opcode;
  std::string_view text = module->text;
  auto begin = static_cast<size_t>(opcode.data() - text.data());
  size_t end = text.find(';', begin);
  std::string_view all = text.substr(begin, end - begin);
  all = all.substr(0, all.find('\n'));
  constexpr size_t most = 160;
  if (all.size() <= most)
    return std::string(all);
  return std::string(all.substr(0, most)) + "...";
}

std::unique_ptr<Program>
fp8emu::decodeFunction(std::shared_ptr<const Module> module,
                       const Function &function, const SymbolTable &globals) {
  auto program = std::make_unique<Program>();
  program->module = std::move(module);
  program->function = &function;
  program->registersPerThread = function.maxRegisters;
  Decoder(*program, globals).run();
  return program;
}

//===- Layout.cpp - Where registers and variables lie ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"

#include <algorithm>

using namespace fp8emu;

void Decoder::layOut() {
  registerRows.resize(function.registers.size());
  for (unsigned bits : {128, 64, 32, 16, 8, 1})
    for (size_t i = 0; i < registerRows.size(); ++i)
      if (function.registers[i].bits == bits) {
        registerRows[i] = nextRow;
        nextRow += getRowBytes(bits);
      }
  nextRow = static_cast<uint32_t>(alignTo(nextRow, 64));

  uint64_t offset = 0;
  for (const Variable &param : function.params) {
    offset = alignTo(offset, param.align);
    ParamSlot slot{static_cast<uint32_t>(offset),
                   static_cast<uint32_t>(param.bytes)};
    program.params.push_back(slot);
    paramSlots[param.name] = slot;
    offset += param.bytes;
    if (offset > 32764)
      throw PTXError(
          param.line,
          "expected at most 32764 bytes of parameters, but got more");
  }
  program.paramBytes = static_cast<uint32_t>(offset);

  // Dynamic shared memory is what comes after all other.
  uint64_t shared = kSharedBase, dynamicAlign = 16, local = 0;
  auto addShared = [&](const Variable &variable) {
    if (variable.bytes == 0) {
      dynamicAlign = std::max<uint64_t>(dynamicAlign, variable.align);
      return;
    }
    shared = alignTo(shared, variable.align);
    sharedOffsets[variable.name] = static_cast<uint32_t>(shared);
    program.sharedNames.emplace_back(shared, variable.name);
    shared += variable.bytes;
    if (shared > 1u << 20)
      throw PTXError(variable.line, "expected less shared memory than 2^20 "
                                    "bytes, but got more");
  };
  auto isUsed = [&](const Variable &variable) {
    for (const Statement &s : function.statements)
      for (const Operand &o : s.operands)
        if (o.name == variable.name ||
            (!o.elements.empty() && o.elements[0].name == variable.name))
          return true;
    return false;
  };
  std::vector<const Variable *> all;
  for (const Variable &variable : program.module->variables)
    if (variable.space == Space::Shared && isUsed(variable))
      all.push_back(&variable);
  for (const Variable &variable : function.variables) {
    if (variable.space == Space::Shared) {
      all.push_back(&variable);
    } else if (variable.space == Space::Local ||
               variable.space == Space::Param) {
      // Parameters of calls, each in a scope of its own, are the thread's too.
      local = alignTo(local, variable.align);
      localOffsets[variable.name] = local;
      local += variable.bytes;
      if (local > 512 << 10)
        throw PTXError(variable.line, "expected at most 512 KiB of local "
                                      "memory, but got more");
    }
  }
  for (const Variable *variable : all)
    addShared(*variable);
  program.staticShared = static_cast<uint32_t>(shared - kSharedBase);
  program.dynamicOffset = static_cast<uint32_t>(alignTo(shared, dynamicAlign));
  for (const Variable *variable : all)
    if (variable->bytes == 0) {
      sharedOffsets[variable->name] = program.dynamicOffset;
      program.sharedNames.emplace_back(program.dynamicOffset, variable->name);
    }
  program.localBytes = static_cast<uint32_t>(alignTo(local, 16));
}

//===- Modifiers.cpp - Opcodes in their parts -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Decoder.h"
#include "Parser.h"

#include <algorithm>

using namespace fp8emu;

Modifiers::Modifiers(std::string_view opcode) {
  size_t dot = opcode.find('.');
  stem = opcode.substr(0, dot);
  while (dot != opcode.npos) {
    opcode.remove_prefix(dot + 1);
    dot = opcode.find('.');
    parts.push_back(opcode.substr(0, dot));
  }
}

bool Modifiers::has(std::string_view name) const {
  return std::find(parts.begin(), parts.end(), name) != parts.end();
}

bool Modifiers::take(std::string_view name) {
  auto it = std::find(parts.begin(), parts.end(), name);
  if (it == parts.end())
    return false;
  parts.erase(it);
  return true;
}

std::optional<unsigned>
Modifiers::takeOneOf(std::initializer_list<const char *> names) {
  unsigned index = 0;
  for (const char *name : names) {
    if (take(name))
      return index;
    ++index;
  }
  return std::nullopt;
}

std::string_view Modifiers::takeNext() {
  std::string_view next = parts.front();
  parts.erase(parts.begin());
  return next;
}

static std::optional<Type> parseType(std::string_view name) {
  if (name == "pred")
    return Type{Type::Predicate, 1};
  if (name == "f16x2" || name == "bf16x2")
    return Type{name[0] == 'f' ? Type::Float : Type::BFloat, 16, true};
  if (name == "u16x2" || name == "s16x2")
    return Type{name[0] == 'u' ? Type::Unsigned : Type::Signed, 16, true};
  unsigned bits = getTypeBits(name);
  if (bits == 0)
    return std::nullopt;
  Type::Kind kind = name[0] == 'u'              ? Type::Unsigned
                    : name[0] == 's'            ? Type::Signed
                    : name[0] == 'f'            ? Type::Float
                    : name.substr(0, 2) == "bf" ? Type::BFloat
                                                : Type::Bits;
  return Type{kind, static_cast<uint8_t>(bits)};
}

std::optional<Type> Modifiers::takeType() {
  for (auto it = parts.begin(); it != parts.end(); ++it)
    if (std::optional<Type> type = parseType(*it)) {
      parts.erase(it);
      return type;
    }
  return std::nullopt;
}

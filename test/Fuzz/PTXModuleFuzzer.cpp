//===- PTXModuleFuzzer.cpp - Any bytes as a module of PTX -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PTX/Decoder.h"

#include <cstdlib>
#include <cstring>

using namespace fp8emu;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text(reinterpret_cast<const char *>(data), size);
  try {
    std::shared_ptr<const Module> module = parseModule(std::move(text));
    SymbolTable symbols;
    for (const Variable &variable : module->variables)
      symbols[variable.name] = 4096;
    for (const Function &function : module->functions) {
      auto program = decodeFunction(module, function, symbols);
      for (const Op &op : program->ops)
        if (!op.handler)
          std::abort();
    }
  } catch (const PTXError &error) {
    // Whoever wrote it is told where.
    if (std::strncmp(error.what(), "line ", 5) != 0)
      std::abort();
  }
  return 0;
}

//===- Module.cpp - Modules, functions and tensor maps --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Async/TensorMap.h"
#include "Driver.h"

#include <cstdio>
#include <cstdlib>

using namespace fp8emu;

/// The newest PTX that the parser was written for.
static constexpr unsigned kMaxVersion = 92;

ModuleState::~ModuleState() {
  for (uint64_t address : globals)
    release(address);
}

/// Text of the error, into the buffer that the caller may have given.
static void writeLog(const std::string &text, unsigned count,
                     const int *options, void **values) {
  char *log = nullptr;
  size_t size = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (options[i] == 5)
      log = static_cast<char *>(values[i]);
    if (options[i] == 6)
      size = reinterpret_cast<size_t>(values[i]);
  }
  if (log && size > 0)
    std::snprintf(log, size, "%s\n", text.c_str());
}

/// sm_90a runs on 90 only, sm_90 on all that come later, sm_100f on those of
/// its family.
static bool canRun(std::string_view target) {
  if (target.substr(0, 3) != "sm_")
    return false;
  unsigned arch = 0;
  char suffix = 0;
  for (char c : target.substr(3)) {
    if (c >= '0' && c <= '9' && arch < 10000)
      arch = arch * 10 + static_cast<unsigned>(c - '0');
    else
      suffix = c;
  }
  unsigned device = getSettings().arch;
  return suffix == 'a'   ? arch == device
         : suffix == 'f' ? arch <= device && arch / 10 == device / 10
                         : arch <= device;
}

static void placeGlobals(ModuleState &state) {
  for (const Variable &variable : state.module->variables) {
    if (variable.space == Space::Shared || variable.bytes == 0)
      continue;
    uint64_t address = allocate(variable.bytes, nullptr, /*managed=*/false);
    if (!address)
      throw PTXError(variable.line,
                     "no memory for '" + std::string(variable.name) + "'");
    state.globals.push_back(address);
    state.symbols[variable.name] = address;
    auto *bytes = reinterpret_cast<uint8_t *>(address);
    std::memset(bytes, 0, variable.bytes);
    markWritten(address, variable.bytes);
    std::memcpy(bytes, variable.initial.data(), variable.initial.size());
  }
}

static int loadModule(ModuleState &state, const char *text) {
  state.module = parseModule(text);
  if (state.module->version > kMaxVersion)
    return kUnsupportedPTXVersion;
  if (!canRun(state.module->target))
    throw PTXError(1, "expected code for sm_" +
                          std::to_string(getSettings().arch) + ", but got " +
                          std::string(state.module->target));
  placeGlobals(state);
  for (const Function &function : state.module->functions) {
    if (!function.isEntry)
      continue;
    FunctionState &entry = state.functions.emplace_back();
    entry.module = &state;
    entry.program = decodeFunction(state.module, function, state.symbols);
    entry.maxDynamicShared =
        kDefaultShared - static_cast<int>(entry.program->staticShared);
  }
  return kSuccess;
}

FP8EMU_API int cuModuleLoadDataEx(ModuleState **module, const void *image,
                                  unsigned count, const int *options,
                                  void **values) {
  if (int error = enter(/*unsafe=*/true))
    return error;
  const auto *bytes = static_cast<const char *>(image);
  // A cubin or a fatbin is for the chip.
  if (std::memcmp(bytes, "\177ELF", 4) == 0 ||
      std::memcmp(bytes, "\x50\xed\x55\xba", 4) == 0)
    return kNoBinaryForGPU;
  auto state = std::make_unique<ModuleState>();
  state->context = getCurrent();
  try {
    if (int error = loadModule(*state, bytes))
      return error;
  } catch (const PTXError &error) {
    writeLog(error.what(), count, options, values);
    return kInvalidPTX;
  } catch (const std::bad_alloc &) {
    return kOutOfMemory;
  }
  *module = state.release();
  return kSuccess;
}

FP8EMU_API int cuModuleLoadData(ModuleState **module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}

FP8EMU_API int cuModuleUnload(ModuleState *module) {
  if (int error = enter(/*unsafe=*/true))
    return error;
  delete module;
  return kSuccess;
}

FP8EMU_API int cuModuleGetFunction(FunctionState **function,
                                   ModuleState *module, const char *name) {
  if (int error = enter())
    return error;
  for (FunctionState &entry : module->functions)
    if (entry.program->function->name == name) {
      *function = &entry;
      return kSuccess;
    }
  return kNotFound;
}

FP8EMU_API int cuModuleGetGlobal_v2(uint64_t *address, size_t *bytes,
                                    ModuleState *module, const char *name) {
  if (int error = enter())
    return error;
  for (const Variable &variable : module->module->variables)
    if (auto it = module->symbols.find(variable.name);
        variable.name == name && it != module->symbols.end()) {
      if (address)
        *address = it->second;
      if (bytes)
        *bytes = variable.bytes;
      return kSuccess;
    }
  return kNotFound;
}

/// As many registers as leave room for the threads that the kernel says.
static int getRegisters(const Program &program) {
  if (program.registersPerThread)
    return static_cast<int>(program.registersPerThread);
  const uint32_t *required = program.function->reqThreads;
  uint32_t threads = required[0] ? required[0] * required[1] * required[2]
                                 : uint32_t{kMaxThreads};
  return static_cast<int>(std::min(255u, 65536u / std::max(threads, 1u)));
}

FP8EMU_API int cuFuncGetAttribute(int *value, int attribute,
                                  FunctionState *function) {
  if (int error = enter())
    return error;
  const Program &program = *function->program;
  const Function &source = *program.function;
  switch (attribute) {
  case 0: {
    const uint32_t *most =
        source.reqThreads[0] ? source.reqThreads : source.maxThreads;
    *value =
        most[0] ? static_cast<int>(most[0] * most[1] * most[2]) : kMaxThreads;
    break;
  }
  case 1:
    *value = static_cast<int>(program.staticShared);
    break;
  case 2:
    *value = 0;
    break; // constant memory
  case 3:
    *value = static_cast<int>(program.localBytes);
    break;
  case 4:
    *value = getRegisters(program);
    break;
  case 5:
    *value = static_cast<int>(program.module->version);
    break;
  case 6:
    *value = static_cast<int>(getSettings().arch);
    break;
  case 8:
    *value = function->maxDynamicShared;
    break;
  default:
    return kInvalidValue;
  }
  return kSuccess;
}

FP8EMU_API int cuFuncSetAttribute(FunctionState *function, int attribute,
                                  int value) {
  if (int error = enter())
    return error;
  // Hints, and clusters of 16 blocks, which are always allowed.
  constexpr int carveout = 9, largeClusters = 14;
  if (attribute == carveout || attribute == largeClusters)
    return kSuccess;
  if (attribute != 8 || value < 0 ||
      value >
          getMaxShared() - static_cast<int>(function->program->staticShared))
    return kInvalidValue;
  function->maxDynamicShared = value;
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Tensor maps
//===----------------------------------------------------------------------===//

FP8EMU_API int
cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address,
                       const uint64_t *sizes, const uint64_t *strides,
                       const uint32_t *box, const uint32_t *elementStrides,
                       int interleave, int swizzle, int promotion, int fill) {
  if (int error = enter())
    return error;
  if (getSettings().arch < 90)
    return kNotSupported;
  static constexpr uint8_t elementBytes[] = {1, 2, 4, 4, 8, 8, 2, 4,
                                             8, 2, 4, 4, 4, 1, 1};
  // Two elements of 4 bits are one of a byte. Those of 6 bits, type 15, are not
  // modelled.
  uint32_t perByte = type == kPacked4 ? 2 : 1;
  auto base = reinterpret_cast<uint64_t>(address);
  if (reinterpret_cast<uintptr_t>(map) % 64 != 0 || type < 0 ||
      type >= static_cast<int>(std::size(elementBytes)) || rank < 1 ||
      rank > 5 || !address || base % 16 != 0 || swizzle < 0 || swizzle > 3 ||
      promotion < 0 || promotion > 3)
    return kInvalidValue;
  if (interleave != 0 || fill != 0)
    return kNotSupported;
  TensorMap made = {};
  made.magic = kTensorMapMagic;
  made.address = base;
  made.elementBytes = elementBytes[type];
  made.rank = static_cast<uint8_t>(rank);
  made.swizzle = static_cast<uint8_t>(swizzle);
  made.type = static_cast<uint8_t>(type);
  made.promotion = static_cast<uint8_t>(promotion);
  made.strides[0] = made.elementBytes;
  if (type == kPadded4 && (base % 32 != 0 || sizes[0] % 128 != 0 ||
                           box[0] != 128 || (swizzle != 0 && swizzle != 3)))
    return kInvalidValue;
  for (uint32_t i = 0; i < rank; ++i) {
    uint32_t divisor = i == 0 ? perByte : 1;
    if (sizes[i] % divisor != 0 || box[i] % divisor != 0)
      return kInvalidValue;
    if (sizes[i] == 0 || sizes[i] > uint64_t{1} << 32 || box[i] == 0 ||
        box[i] > 256 || elementStrides[i] != 1)
      return kInvalidValue;
    made.lastIndex[i] = static_cast<uint32_t>(sizes[i] / divisor - 1);
    made.box[i] = static_cast<uint16_t>(box[i] / divisor);
    if (i == 0)
      continue;
    if (strides[i - 1] % 16 != 0 || strides[i - 1] >= uint64_t{1} << 40)
      return kInvalidValue;
    made.strides[i] = strides[i - 1];
  }
  uint32_t row = box[0] / perByte * made.elementBytes;
  if (row % 16 != 0 || (swizzle != 0 && row > getSwizzleBytes(made.swizzle)))
    return kInvalidValue;
  std::memset(map, 0, 128);
  std::memcpy(map, &made, sizeof(made));
  return kSuccess;
}

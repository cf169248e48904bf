//===- ProgramFile.cpp - Programs in shared objects -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The loader maps a file without asking whether all of it is there, and a
// missing page ends the process: the extent of its segments is checked first.
//
//===----------------------------------------------------------------------===//

#include "ProgramDetail.h"
#include "StatusDetail.h"

#include <cerrno>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <fstream>
#include <string>
#include <sys/stat.h>
#include <vector>

using namespace fp8rt;
using detail::fail;

struct fp8rt_program {
  void *library;
  const fp8rt_program_info *info;
};

fp8rt_status detail::checkProgram(const fp8rt_program_info &info) {
  if (info.version / 1000 == FP8RT_VERSION_MAJOR &&
      info.version % 1000 <= FP8RT_VERSION_MINOR)
    return FP8RT_OK;
  auto print = [](uint32_t version) {
    return std::to_string(version / 1000) + "." +
           std::to_string(version % 1000);
  };
  return fail(FP8RT_ERROR_VERSION,
              "expected a program for libfp8rt " + print(FP8RT_VERSION) +
                  " or an earlier minor version, but got one for " +
                  print(info.version) + "; compile it again");
}

//===----------------------------------------------------------------------===//
// ELF
//===----------------------------------------------------------------------===//

#if defined(__x86_64__)
static constexpr uint16_t kMachine = EM_X86_64;
#elif defined(__aarch64__)
static constexpr uint16_t kMachine = EM_AARCH64;
#else
#error "expected x86-64 or AArch64"
#endif

static fp8rt_status failFile(const char *path, const std::string &message) {
  return fail(FP8RT_ERROR_FILE, std::string(path) + ": " + message);
}

static fp8rt_status checkFile(const char *path) {
  // Opening a pipe that nobody writes to would wait.
  struct stat status;
  if (::stat(path, &status) == 0 && !S_ISREG(status.st_mode))
    return failFile(path, "expected a regular file");
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file)
    return failFile(path, std::string("cannot open: ") + std::strerror(errno));
  uint64_t size = file.tellg();
  Elf64_Ehdr header = {};
  file.seekg(0);
  if (!file.read(reinterpret_cast<char *>(&header), sizeof(header)) ||
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_type != ET_DYN)
    return failFile(path, "expected a 64-bit ELF shared object");
  if (header.e_machine != kMachine)
    return failFile(path, "expected a program for this machine (ELF machine " +
                              std::to_string(kMachine) + "), but got one for " +
                              std::to_string(header.e_machine));
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  file.seekg(header.e_phoff);
  bool isWhole = header.e_phentsize == sizeof(Elf64_Phdr) &&
                 file.read(reinterpret_cast<char *>(segments.data()),
                           static_cast<std::streamsize>(segments.size() *
                                                        sizeof(Elf64_Phdr)));
  for (const Elf64_Phdr &segment : segments)
    isWhole &=
        segment.p_offset <= size && segment.p_filesz <= size - segment.p_offset;
  // Written last, and nothing of it is needed to run.
  isWhole &=
      header.e_shoff + uint64_t(header.e_shnum) * header.e_shentsize <= size;
  return isWhole ? FP8RT_OK
                 : failFile(path, "expected a whole file, but got one of " +
                                      std::to_string(size) +
                                      " bytes that was cut off");
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static fp8rt_status checkInfo(const char *path,
                              const fp8rt_program_info *info) {
  if (!info ||
      std::memcmp(info->magic, FP8RT_PROGRAM_MAGIC, sizeof(info->magic)) != 0)
    return failFile(path, "expected a program made by fp8-compile, but the "
                          "file has no " FP8RT_PROGRAM_SYMBOL);
  if (fp8rt_status status = detail::checkProgram(*info))
    return fail(status, std::string(path) + ": " + fp8rt_get_last_error());
  return FP8RT_OK;
}

fp8rt_status fp8rt_program_open(const char *path, fp8rt_program **program) {
  return detail::guard([&]() -> fp8rt_status {
    if (!path || !program)
      return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                  "expected path and program to be given, but got null");
    if (fp8rt_status status = checkFile(path))
      return status;
    // Without a slash it would be a name to look for.
    std::string file = std::strchr(path, '/') ? path : "./" + std::string(path);
    void *library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
      return fail(FP8RT_ERROR_FILE, std::string("cannot load: ") + dlerror());
    auto *info = static_cast<const fp8rt_program_info *>(
        dlsym(library, FP8RT_PROGRAM_SYMBOL));
    if (fp8rt_status status = checkInfo(path, info)) {
      dlclose(library);
      return status;
    }
    *program = new fp8rt_program{library, info};
    return FP8RT_OK;
  });
}

fp8rt_status fp8rt_program_close(fp8rt_program *program) {
  if (program)
    dlclose(program->library);
  delete program;
  return FP8RT_OK;
}

static fp8rt_status failNull() {
  return fail(FP8RT_ERROR_INVALID_ARGUMENT,
              "expected every argument to be given, but got null");
}

fp8rt_status fp8rt_program_get_info(const fp8rt_program *program,
                                    const fp8rt_program_info **info) {
  if (!program || !info)
    return failNull();
  *info = program->info;
  return FP8RT_OK;
}

fp8rt_status
fp8rt_program_get_function(const fp8rt_program_info *info, const char *name,
                           const fp8rt_program_function **function) {
  if (!info || !name || !function)
    return failNull();
  return detail::guard([&]() -> fp8rt_status {
    std::string names;
    for (uint32_t i = 0; i < info->num_functions; ++i) {
      const fp8rt_program_function *candidate = &info->functions[i];
      if (std::strcmp(candidate->name, name) == 0) {
        *function = candidate;
        return FP8RT_OK;
      }
      names += std::string(names.empty() ? "'" : ", '") + candidate->name + "'";
    }
    return fail(FP8RT_ERROR_NOT_FOUND,
                std::string("expected a function of program '") + info->name +
                    "' (" + names + "), but got '" + name + "'");
  });
}

fp8rt_status fp8rt_program_create_state(const fp8rt_program_info *info,
                                        fp8rt_state *state) {
  if (!info || !state)
    return failNull();
  if (!info->state_manifest)
    return fail(FP8RT_ERROR_INVALID_ARGUMENT,
                "expected a program with scaling state, but it has none");
  return fp8rt_state_create(info->state_manifest,
                            std::strlen(info->state_manifest), state);
}

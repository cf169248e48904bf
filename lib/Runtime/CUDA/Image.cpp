//===- Image.cpp - What is in the image of a module -----------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Image.h"

#include <algorithm>
#include <cstring>
#include <elf.h>

using namespace fp8rt;
using namespace fp8rt::cuda;

//===----------------------------------------------------------------------===//
// Cubins
//===----------------------------------------------------------------------===//

/// The end of `count` entries of `size` bytes at `offset`; the largest number
/// if there is no such.
static uint64_t getEnd(uint64_t offset, uint64_t count, uint64_t size) {
  uint64_t bytes, end;
  if (__builtin_mul_overflow(count, size, &bytes) ||
      __builtin_add_overflow(offset, bytes, &end))
    return UINT64_MAX;
  return end;
}

/// The flags hold the architecture, in bits that moved with CUDA 13 (EF_CUDA_SM
/// and EF_CUDA_ACCELERATORS in LLVM's BinaryFormat/ELF.h). CUDA 13.0's ptxas
/// does not set the latter: its sm_90a says sm_90.
static void readArch(const Elf64_Ehdr &header, Image &image) {
  constexpr unsigned char kFlagsMoved = 8;
  bool moved = header.e_ident[EI_ABIVERSION] >= kFlagsMoved;
  image.arch = moved ? header.e_flags >> 8 & 0xff : header.e_flags & 0xff;
  if (header.e_flags & (moved ? 0x8 : 0x800))
    image.archSuffix = 'a';
}

static void inspectCubin(std::string_view bytes, Image &image) {
  Elf64_Ehdr header;
  image.kind = ImageKind::Cubin;
  image.declaredSize = sizeof(header);
  if (bytes.size() < sizeof(header))
    return;
  std::memcpy(&header, bytes.data(), sizeof(header));
  readArch(header, image);
  image.declaredSize =
      std::max({image.declaredSize,
                getEnd(header.e_phoff, header.e_phnum, header.e_phentsize),
                getEnd(header.e_shoff, header.e_shnum, header.e_shentsize)});
  if (bytes.size() < image.declaredSize ||
      header.e_shentsize < sizeof(Elf64_Shdr))
    return;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section;
    std::memcpy(&section,
                bytes.data() + header.e_shoff + i * header.e_shentsize,
                sizeof(section));
    if (section.sh_type != SHT_NOBITS)
      image.declaredSize = std::max(
          image.declaredSize, getEnd(section.sh_offset, section.sh_size, 1));
  }
}

//===----------------------------------------------------------------------===//
// Fatbins
//===----------------------------------------------------------------------===//

/// Magic, version, size of the header, size of what follows (fatbinary.h).
static void inspectFatbin(std::string_view bytes, Image &image) {
  image.kind = ImageKind::Fatbin;
  image.declaredSize = 16;
  if (bytes.size() < image.declaredSize)
    return;
  uint16_t headerSize;
  uint64_t size;
  std::memcpy(&headerSize, bytes.data() + 6, sizeof(headerSize));
  std::memcpy(&size, bytes.data() + 8, sizeof(size));
  image.declaredSize = getEnd(headerSize, size, 1);
}

//===----------------------------------------------------------------------===//
// PTX
//===----------------------------------------------------------------------===//

/// The first word after a directive; "" if there is none. One in a comment may
/// be taken for it: then the driver's compiler finds out.
static std::string_view findDirective(std::string_view text,
                                      std::string_view directive) {
  constexpr std::string_view blanks = " \t\r\n";
  for (size_t at = text.find(directive); at != std::string_view::npos;
       at = text.find(directive, at + 1)) {
    std::string_view rest = text.substr(at + directive.size());
    size_t begin = rest.find_first_not_of(blanks);
    bool isWord = at == 0 || blanks.find(text[at - 1]) != blanks.npos;
    if (!isWord || begin == 0 || begin == rest.npos)
      continue;
    rest.remove_prefix(begin);
    return rest.substr(0, rest.find_first_of(" \t\r\n,"));
  }
  return {};
}

static void inspectPTX(std::string_view text, Image &image) {
  // PTX ISA, "PTX Module Directives": .version is the first, then .target.
  std::string_view version = findDirective(text, ".version");
  std::string_view target = findDirective(text, ".target");
  if (version.empty())
    return;
  image.kind = ImageKind::PTX;
  image.declaredSize = text.size();
  image.ptxVersion = version.substr(0, 16);
  if (target.substr(0, 3) != "sm_")
    return;
  target.remove_prefix(3);
  while (!target.empty() && target[0] >= '0' && target[0] <= '9' &&
         image.arch < 10000) {
    image.arch = image.arch * 10 + (target[0] - '0');
    target.remove_prefix(1);
  }
  if (target == "a" || target == "f")
    image.archSuffix = target[0];
}

//===----------------------------------------------------------------------===//
// All
//===----------------------------------------------------------------------===//

Image cuda::inspectImage(std::string_view bytes) {
  Image image;
  if (bytes.substr(0, SELFMAG) == ELFMAG)
    inspectCubin(bytes, image);
  else if (bytes.substr(0, 4) == "\x50\xed\x55\xba")
    inspectFatbin(bytes, image);
  else
    inspectPTX(bytes.substr(0, bytes.find('\0')), image);
  return image;
}

std::string cuda::describe(const Image &image) {
  std::string text = image.kind == ImageKind::PTX ? "PTX " + image.ptxVersion
                     : image.kind == ImageKind::Cubin ? "a cubin"
                                                      : "a fatbin";
  if (image.arch != 0)
    text += " for sm_" + std::to_string(image.arch);
  if (image.arch != 0 && image.archSuffix)
    text += image.archSuffix;
  return text;
}

bool cuda::canRunOn(const Image &image, int major, int minor) {
  if (image.arch == 0)
    return true;
  int device = major * 10 + minor;
  if (image.archSuffix == 'a')
    return image.arch == device;
  // Cubins, and PTX for a family, stay within the major number.
  bool sameMajor = image.kind == ImageKind::Cubin || image.archSuffix == 'f';
  return image.arch <= device && (!sameMajor || image.arch / 10 == major);
}

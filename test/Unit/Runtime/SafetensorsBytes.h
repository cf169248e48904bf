//===- SafetensorsBytes.h - Files for tests that read them ------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_UNIT_RUNTIME_SAFETENSORSBYTES_H
#define FP8_TEST_UNIT_RUNTIME_SAFETENSORSBYTES_H

#include <cstdint>
#include <string>

/// The bytes of a file whose length field says `length`.
inline std::string makeFile(uint64_t length, const std::string &rest) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(length >> (8 * i));
  return bytes + rest;
}

/// The bytes of a file with `header` and as much data.
inline std::string makeFile(const std::string &header, size_t dataSize) {
  return makeFile(header.size(), header + std::string(dataSize, '\1'));
}

#endif // FP8_TEST_UNIT_RUNTIME_SAFETENSORSBYTES_H

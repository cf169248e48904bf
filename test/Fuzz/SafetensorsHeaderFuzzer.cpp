//===- SafetensorsHeaderFuzzer.cpp - Any bytes as a header ----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/Safetensors.h"

#include <cstdlib>

using namespace fp8rt;

/// What the parser accepts must hold together, whatever the bytes were.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  SafetensorsHeader header;
  std::string error;
  if (!parseSafetensorsHeader(data, size, size, "file", header, error)) {
    if (error.empty() || error.find('\n') != std::string::npos)
      std::abort();
    return 0;
  }
  uint64_t position = 0;
  for (const TensorInfo &info : header.tensors) {
    uint64_t byteSize = getByteWidth(info.dtype);
    for (int64_t dim : info.shape)
      byteSize *= static_cast<uint64_t>(dim);
    if (info.begin != position || info.getByteSize() != byteSize ||
        header.lookup(info.name) != &info)
      std::abort();
    position = info.end;
  }
  if (header.dataOffset + position != size)
    std::abort();
  return 0;
}

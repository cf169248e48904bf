//===- SafetensorsDetail.h - Shared by header and file ----------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_TENSORS_SAFETENSORSDETAIL_H
#define FP8_LIB_RUNTIME_TENSORS_SAFETENSORSDETAIL_H

#include "fp8/Runtime/Safetensors.h"

namespace fp8rt::detail {

inline uint64_t readHeaderLength(const uint8_t *bytes) {
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | bytes[i];
  return length;
}

std::string stringifyShape(const std::vector<int64_t> &shape);

/// Nothing if the size, or a stride of the tensor, exceeds 63 bits. Dimensions
/// are not negative.
std::optional<uint64_t> computeByteSize(const std::vector<int64_t> &shape,
                                        DType dtype);

/// The header's text, padded with spaces to a multiple of 8 bytes; nothing if a
/// name or a metadata string is not UTF-8.
std::optional<std::string> printHeader(const std::vector<TensorInfo> &tensors,
                                       const Metadata &metadata);

} // namespace fp8rt::detail

#endif // FP8_LIB_RUNTIME_TENSORS_SAFETENSORSDETAIL_H

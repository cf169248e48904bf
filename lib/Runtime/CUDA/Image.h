//===- Image.h - What is in the image of a module ---------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The driver is given no size, so it reads past the end of an image that was
// cut off, and of code for another GPU it says no more than that. Hence a look
// at the image before, and a better one if it fails.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_IMAGE_H
#define FP8_LIB_RUNTIME_CUDA_IMAGE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fp8rt::cuda {

enum class ImageKind { Unknown, Cubin, Fatbin, PTX };

struct Image {
  ImageKind kind = ImageKind::Unknown;
  /// The least number of bytes that the image says it has.
  uint64_t declaredSize = 0;
  /// E.g. 90, and 'a', 'f' or 0; 0 where the image does not say.
  int arch = 0;
  char archSuffix = 0;
  /// E.g. "8.7"; of PTX only.
  std::string ptxVersion;
};

Image inspectImage(std::string_view bytes);

/// "a cubin for sm_90a"; "PTX 8.7 for sm_90a".
std::string describe(const Image &image);

/// Whether code for that architecture can run on a device of compute capability
/// major.minor; true where the image does not say.
bool canRunOn(const Image &image, int major, int minor);

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_IMAGE_H

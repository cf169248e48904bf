//===- Capture.h - Streams that are captured --------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_CAPTURE_H
#define FP8_LIB_RUNTIME_CUDA_CAPTURE_H

#include "fp8/Runtime/Stream.h"

namespace fp8rt::cuda {

/// Whether what the stream is given is captured, or cannot be told, because
/// another capture forbids to ask.
bool isCapturing(int32_t device, fp8rt_stream stream);

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_CAPTURE_H

//===- Memory.h - Memory, for those who know the device ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_RUNTIME_CUDA_MEMORY_H
#define FP8_LIB_RUNTIME_CUDA_MEMORY_H

#include "Context.h"

namespace fp8rt::cuda {

/// In the device's context: memory from the device's pool in stream order, or,
/// where there are no pools, at once.
fp8rt_status allocateInStream(const Driver &driver, int32_t device,
                              Stream stream, size_t bytes, DevicePtr &ptr);
fp8rt_status freeInStream(const Driver &driver, int32_t device, Stream stream,
                          DevicePtr ptr);

/// Fills new memory with NaN if FP8_POISON asks for it, so that results that
/// nobody writes show.
Result poison(const Driver &driver, Stream stream, DevicePtr ptr, size_t bytes);

struct PointerOwner {
  bool isDevice = false;  /* of the device `device` */
  bool isManaged = false; /* of all */
  bool isPooled = false;
  int device = -1;
};

fp8rt_status getOwner(const Driver &driver, const void *ptr,
                      PointerOwner &owner);

} // namespace fp8rt::cuda

#endif // FP8_LIB_RUNTIME_CUDA_MEMORY_H

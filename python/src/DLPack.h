//===- DLPack.h - What DLPack adds to fp8-c/Tensor.h ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Structs of https://github.com/dmlc/dlpack (include/dlpack/dlpack.h, version
// 1.3), field by field, with the C API's names. DLTensor is fp8c_tensor,
// DLManagedTensor is fp8c_managed_tensor.
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PYTHON_DLPACK_H
#define FP8_PYTHON_DLPACK_H

#include "fp8-c/Tensor.h"

#include <cstdint>

namespace fp8py {

/// DLManagedTensorVersioned.
struct VersionedTensor {
  uint32_t major, minor;
  void *manager;
  void (*deleter)(VersionedTensor *self);
  uint64_t flags;
  fp8c_tensor tensor;
};

/// DLPACK_FLAG_BITMASK_READ_ONLY.
inline constexpr uint64_t kReadOnly = 1;

inline constexpr const char *kCapsule = "dltensor";
inline constexpr const char *kUsedCapsule = "used_dltensor";
inline constexpr const char *kVersionedCapsule = "dltensor_versioned";
inline constexpr const char *kUsedVersionedCapsule = "used_dltensor_versioned";

/// DLPackExchangeAPI: what a framework offers without a call of Python, in the
/// attribute `__dlpack_c_exchange_api__` of its arrays' type. Functions return
/// 0, or -1 with an exception set.
struct ExchangeAPI {
  uint32_t major, minor;
  ExchangeAPI *previous;
  int (*allocate)(fp8c_tensor *prototype, VersionedTensor **tensor,
                  void *context,
                  void (*setError)(void *context, const char *kind,
                                   const char *message));
  int (*exportManaged)(void *array, VersionedTensor **tensor);
  int (*import)(VersionedTensor *tensor, void **array);
  /// What it writes is valid as long as the array is. May be null.
  int (*view)(void *array, fp8c_tensor *tensor);
  int (*getCurrentStream)(int32_t deviceType, int32_t device, void **stream);
};

inline constexpr const char *kExchangeAPIAttribute =
    "__dlpack_c_exchange_api__";
inline constexpr const char *kExchangeAPICapsule = "dlpack_exchange_api";

} // namespace fp8py

#endif // FP8_PYTHON_DLPACK_H

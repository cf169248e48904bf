//===- Tensor.cpp - Types and owners of tensors ---------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Status.h"

#include "fp8-c/Tensor.h"
#include "llvm/ADT/StringRef.h"

using namespace mlir::fp8::capi;

namespace {
struct NamedType {
  llvm::StringRef name;
  uint8_t code, bits;
  uint16_t lanes = 1;
};
} // namespace

static constexpr NamedType kTypes[] = {
    {"F64", FP8C_FLOAT, 64},
    {"F32", FP8C_FLOAT, 32},
    {"F16", FP8C_FLOAT, 16},
    {"BF16", FP8C_BFLOAT, 16},
    {"F8_E4M3", FP8C_FLOAT8_E4M3FN, 8},
    {"F8_E5M2", FP8C_FLOAT8_E5M2, 8},
    {"F8_E8M0", FP8C_FLOAT8_E8M0FNU, 8},
    {"F4x2", FP8C_FLOAT4_E2M1FN, 4, 2},
    {"I64", FP8C_INT, 64},
    {"I32", FP8C_INT, 32},
    {"I16", FP8C_INT, 16},
    {"I8", FP8C_INT, 8},
    {"U8", FP8C_UINT, 8},
    {"BOOL", FP8C_BOOL, 8},
};

fp8rt_status fp8c_dtype_from_name(const char *name, fp8c_dtype *dtype) {
  if (!name || !dtype)
    return failNull();
  for (const NamedType &type : kTypes)
    if (type.name == name) {
      *dtype = {type.code, type.bits, type.lanes};
      return FP8RT_OK;
    }
  return fail(FP8RT_ERROR_NOT_FOUND,
              llvm::Twine("expected the name of a dtype, such as BF16, but "
                          "got '") +
                  name + "'");
}

const char *fp8c_dtype_get_name(fp8c_dtype dtype) {
  for (const NamedType &type : kTypes)
    if (type.code == dtype.code && type.bits == dtype.bits &&
        type.lanes == dtype.lanes)
      return type.name.data();
  return nullptr;
}

void fp8c_managed_tensor_destroy(fp8c_managed_tensor *tensor) {
  if (tensor && tensor->deleter)
    tensor->deleter(tensor);
}

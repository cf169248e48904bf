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
  uint16_t lanes;
};
} // namespace

static constexpr NamedType kTypes[] = {
#define FP8_DTYPE(NAME, FILE, CODE, BITS, LANES, ...)                          \
  {#NAME, FP8C_##CODE, BITS, LANES},
#include "fp8/Formats.def"
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

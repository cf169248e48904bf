//===- TorchValues.cpp - Tensors of PyTorch in a call ---------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TorchValues.h"

#include "Arrays.h"

#include <algorithm>

using namespace fp8py;

//===----------------------------------------------------------------------===//
// Of a call
//===----------------------------------------------------------------------===//

static bool isRowMajor(const fp8c_tensor &tensor) {
  int64_t stride = 1;
  for (int32_t i = tensor.rank; i-- > 0 && tensor.strides;
       stride *= tensor.sizes[i])
    if (tensor.sizes[i] != 1 && tensor.strides[i] != stride)
      return false;
  return true;
}

static bool isAligned(const fp8c_tensor &tensor) {
  constexpr uintptr_t kBytes = 16;
  return reinterpret_cast<uintptr_t>(getData(tensor)) % kBytes == 0;
}

bool TorchValues::set(nb::list list) {
  tensors.reserve(nb::len(list));
  for (nb::handle value : list) {
    tensors.emplace_back();
    if (value.is_none())
      continue;
    const ArrayType &type = ArrayType::get(value);
    if (type.kind != ArrayType::Kind::ExchangeAPI || !type.isTorch)
      return false;
    api = type.api;
    if (api->view(value.ptr(), &tensors.back()) != 0) {
      PyErr_Clear();
      return false;
    }
    // Without memory it is empty, or its class has it elsewhere. One that
    // kernels cannot read where it is gets copied by a call of another kind.
    if (!tensors.back().data || !isAligned(tensors.back()) ||
        !isRowMajor(tensors.back()) || isNegative(value, tensors.back().dtype))
      return false;
  }
  return api && !isForwardMode();
}

//===----------------------------------------------------------------------===//
// What stays
//===----------------------------------------------------------------------===//

KeptTensor::KeptTensor(const fp8c_tensor &given) : tensor(given) {
  extents.assign(given.sizes, given.sizes + given.rank);
  if (given.strides)
    extents.insert(extents.end(), given.strides, given.strides + given.rank);
  tensor.sizes = extents.data();
  if (given.strides)
    tensor.strides = extents.data() + given.rank;
}

char *fp8py::getData(const fp8c_tensor &tensor) {
  return static_cast<char *>(tensor.data) + tensor.byte_offset;
}

bool fp8py::isSameType(fp8c_dtype a, fp8c_dtype b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

bool fp8py::isSameDevice(fp8c_device a, fp8c_device b) {
  return a.type == b.type && a.index == b.index;
}

bool fp8py::isSameTensor(const fp8c_tensor &a, const fp8c_tensor &b) {
  return getData(a) == getData(b) && a.rank == b.rank &&
         isSameType(a.dtype, b.dtype) && isSameDevice(a.device, b.device) &&
         std::equal(a.sizes, a.sizes + a.rank, b.sizes) &&
         !a.strides == !b.strides &&
         (!a.strides || std::equal(a.strides, a.strides + a.rank, b.strides));
}

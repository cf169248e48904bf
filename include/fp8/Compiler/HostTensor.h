//===- HostTensor.h - Tensors between files and programs --------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_COMPILER_HOSTTENSOR_H
#define FP8_COMPILER_HOSTTENSOR_H

#include "fp8/Program/Signature.h"
#include "llvm/Support/Error.h"

#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::fp8 {

/// Memory aligned for the widest vectors.
struct FreeDeleter {
  void operator()(void *memory) const { std::free(memory); }
};
using Buffer = std::unique_ptr<void, FreeDeleter>;
llvm::Expected<Buffer> allocateBuffer(size_t size);

/// A tensor with all dimensions known, dense and row-major; a scalar has none.
struct HostTensor {
  std::string name;
  Type elementType;
  fp8rt::DType dtype;
  SmallVector<int64_t> shape;
  Buffer data;
  /// Whether the first dimension counts steps.
  bool isPerStep = false;

  /// Codes that share a byte are an element each.
  int64_t getNumElements() const;
  size_t getByteSize() const {
    return ShapedType::getNumElements(shape) * fp8rt::getByteWidth(dtype);
  }
  ArrayRef<int64_t> getStepShape() const {
    return ArrayRef(shape).drop_front(isPerStep);
  }
  size_t getStepByteSize() const {
    return isPerStep ? getByteSize() / shape[0] : getByteSize();
  }
  const char *getStepData(int64_t step) const {
    return static_cast<const char *>(data.get()) +
           (isPerStep ? step * getStepByteSize() : 0);
  }
};

/// The value of element `index`; 64-bit integers are rounded.
double getElement(const HostTensor &tensor, int64_t index);

/// Reads one tensor for each of `infos` from the .safetensors file at `path`,
/// which must hold those, and no others unless it is to `ignoreExtra`. Given a
/// number of `steps`, a tensor may have that as one more dimension in front.
llvm::Expected<std::vector<HostTensor>>
readTensors(ArrayRef<ValueInfo> infos, const std::string &path,
            std::optional<int64_t> steps, bool ignoreExtra = false);

/// Writes `tensors` to the file at `path`, or leaves it as it is.
llvm::Error writeTensors(ArrayRef<HostTensor> tensors, const std::string &path);

} // namespace mlir::fp8

#endif // FP8_COMPILER_HOSTTENSOR_H

//===- Outputs.cpp - The results of all steps -----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Compiler/Outputs.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::fp8;

llvm::Expected<char *> Outputs::place(size_t index, const ValueInfo &info,
                                      int64_t step, ArrayRef<int64_t> shape) {
  if (step == 0) {
    SmallVector<int64_t> all;
    if (steps)
      all.push_back(*steps);
    llvm::append_range(all, shape);
    int64_t size = fp8rt::getByteWidth(info.dtype);
    bool overflow = false;
    for (int64_t dim : all)
      overflow |= llvm::MulOverflow(size, dim, size) != 0;
    if (overflow)
      return llvm::createStringError("cannot allocate " +
                                     describe(info.dtype, all) +
                                     " for result '" + info.name + "'");
    auto data = allocateBuffer(size);
    if (!data)
      return data.takeError();
    tensors.push_back({info.name, info.getElementType(), info.dtype, all,
                       std::move(*data), steps.has_value()});
  }
  const HostTensor &tensor = tensors[index];
  if (tensor.getStepShape() != shape)
    return llvm::createStringError(
        "expected result '" + info.name +
        "' to have the same shape in every step, but got " +
        describe(info.dtype, tensor.getStepShape()) + " in step 0 and " +
        describe(info.dtype, shape) + " in step " + Twine(step));
  return static_cast<char *>(tensor.data.get()) +
         step * tensor.getStepByteSize();
}

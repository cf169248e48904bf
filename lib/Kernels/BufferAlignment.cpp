//===- BufferAlignment.cpp - What kernels ask of a buffer -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BufferAlignment.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::fp8;

/// Whether `count` times `stride` elements, `count` being any number if it is
/// not known, are a multiple of `multiple`.
static bool isMultiple(std::optional<int64_t> count, int64_t stride,
                       int64_t multiple) {
  return !ShapedType::isDynamic(stride) &&
         count.value_or(1) * stride % multiple == 0;
}

/// Whether the first element is a multiple of `multiple` elements from where
/// an allocation or an argument starts.
static bool hasAlignedStart(Value memref, int64_t multiple) {
  if (cast<MemRefType>(memref.getType()).getLayout().isIdentity())
    return true;
  Operation *op = memref.getDefiningOp();
  if (isa_and_present<memref::CastOp, memref::CollapseShapeOp,
                      memref::ExpandShapeOp>(op))
    return hasAlignedStart(op->getOperand(0), multiple);
  auto subview = dyn_cast_if_present<memref::SubViewOp>(op);
  if (!subview)
    return false;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(subview.getSourceType().getStridesAndOffset(strides, offset)))
    return false;
  for (auto [begin, stride] :
       llvm::zip_equal(subview.getMixedOffsets(), strides))
    if (!isMultiple(getConstantIntValue(begin), stride, multiple))
      return false;
  return hasAlignedStart(subview.getSource(), multiple);
}

bool fp8::hasAlignedRows(Value memref, int64_t bytes) {
  auto type = cast<MemRefType>(memref.getType());
  bool isScalar = type.hasStaticShape() && type.getNumElements() == 1;
  if (type.getLayout().isIdentity() || isScalar)
    return true;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return false;
  int64_t multiple =
      bytes / std::max<int64_t>(type.getElementTypeBitWidth() / 8, 1);
  if (!strides.empty() && strides.pop_back_val() != 1)
    return false;
  for (int64_t stride : strides)
    if (!isMultiple(/*count=*/1, stride, multiple))
      return false;
  return hasAlignedStart(memref, multiple);
}

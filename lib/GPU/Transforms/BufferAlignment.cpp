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

/// Whether rows start at multiples of `multiple` elements, which lie together.
static bool hasAlignedRows(Value memref, ArrayRef<int64_t> strides,
                           int64_t multiple) {
  return (strides.empty() || strides.back() == 1) &&
         llvm::all_of(strides.drop_back(strides.empty() ? 0 : 1),
                      [&](int64_t stride) {
                        return isMultiple(/*count=*/1, stride, multiple);
                      }) &&
         hasAlignedStart(memref, multiple);
}

/// Whether dimensions whose strides the kernel is not told lie as in a dense
/// tensor, or outside one element of a dimension whose stride it is told, which
/// then is theirs.
static bool isDense(MemRefType type, ArrayRef<int64_t> strides,
                    LaunchAttr launch, int64_t number) {
  std::optional<int64_t> dense = 1;
  for (int64_t dim = type.getRank(); dim-- > 0;) {
    int64_t size = type.getDimSize(dim), stride = strides[dim];
    bool isTold = launch.takesStride(number, dim);
    if (size == 1) {
      if (isTold)
        dense = std::nullopt;
      continue;
    }
    if (!isTold && dense && (ShapedType::isDynamic(stride) || stride != *dense))
      return false;
    dense = ShapedType::isDynamic(size) || ShapedType::isDynamic(stride)
                ? ShapedType::kDynamic
                : size * stride;
  }
  return true;
}

std::string fp8::describeWanted(Value memref, LaunchAttr launch,
                                int64_t number) {
  auto type = cast<MemRefType>(memref.getType());
  bool isScalar = type.hasStaticShape() && type.getNumElements() == 1;
  if (type.getLayout().isIdentity() || isScalar)
    return "";
  SmallVector<int64_t> strides;
  int64_t offset;
  KernelArgumentAttr argument = launch.getArgument(number);
  int64_t alignment = argument.getAlignment(),
          bytes = argument.getElementBytes();
  if (failed(type.getStridesAndOffset(strides, offset)) ||
      !isDense(type, strides, launch, number))
    return "elements that lie together";
  // Who copies words of dense rows that begin anywhere knows their extent.
  bool mayBeginAnywhere =
      alignment <= 4 &&
      llvm::none_of(llvm::seq<int64_t>(type.getRank()), [&](int64_t dim) {
        return launch.takesStride(number, dim);
      });
  bool hasRows = mayBeginAnywhere
                     ? hasAlignedStart(memref, alignment / bytes)
                     : hasAlignedRows(memref, strides, alignment / bytes);
  if (alignment > bytes && !hasRows)
    return ("rows whose elements lie together, at multiples of " +
            Twine(alignment) + " bytes")
        .str();
  return "";
}

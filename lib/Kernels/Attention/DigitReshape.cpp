//===- DigitReshape.cpp - Tensors in another order of digits --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DigitReshape.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace mlir::fp8;

static Digits flatten(const DigitTable &digits, const Place &place) {
  Digits flat;
  for (const Digits &index : place)
    llvm::append_range(flat, digits.resolve(index));
  return flat;
}

bool fp8::haveSameOrder(const DigitTable &digits, const Place &from,
                        const Place &to) {
  return flatten(digits, from) == flatten(digits, to);
}

/// Groups of as many single digits as each index has; indices of none join a
/// neighbour, or, where there is no other, have none.
static SmallVector<ReassociationIndices> getGroups(const Place &place) {
  SmallVector<ReassociationIndices> groups;
  int64_t next = 0;
  for (const Digits &index : place) {
    ReassociationIndices &group = groups.emplace_back();
    for (size_t i = 0; i < index.size(); ++i)
      group.push_back(next++);
  }
  return groups;
}

/// The dimensions of `place` by digit: that of a digit, and those of no digits
/// before or, at the front, after it.
static SmallVector<ReassociationIndices> getCarriers(const Place &place) {
  SmallVector<ReassociationIndices> carriers;
  ReassociationIndices pending;
  for (auto [dim, index] : llvm::enumerate(place)) {
    if (!index.empty()) {
      carriers.push_back(std::move(pending));
      pending.clear();
      carriers.back().push_back(dim);
    } else if (carriers.empty()) {
      pending.push_back(dim);
    } else {
      carriers.back().push_back(dim);
    }
  }
  return carriers;
}

static Place dropEmpty(const Place &place) {
  Place kept;
  for (const Digits &index : place)
    if (!index.empty())
      kept.push_back(index);
  return kept;
}

static SmallVector<int64_t> getExtents(const DigitTable &digits,
                                       const Place &place) {
  SmallVector<int64_t> extents;
  for (const Digits &index : place)
    extents.push_back(digits.getExtent(index));
  return extents;
}

static Place toSingles(ArrayRef<unsigned> flat) {
  Place place;
  for (unsigned digit : flat)
    place.push_back({digit});
  return place;
}

/// `tensor` with dimensions of `shape`, each of them one of its own in parts.
static Value expand(OpBuilder &b, Location loc, Value tensor,
                    ArrayRef<int64_t> shape,
                    ArrayRef<ReassociationIndices> groups) {
  auto type = cast<RankedTensorType>(tensor.getType()).clone(shape);
  if (type == tensor.getType())
    return tensor;
  for (const ReassociationIndices &group : groups)
    if (llvm::count_if(group, [&](int64_t dim) {
          return ShapedType::isDynamic(shape[dim]);
        }) > 1)
      return {};
  std::optional<SmallVector<OpFoldResult>> sizes =
      tensor::ExpandShapeOp::inferOutputShape(
          b, loc, cast<RankedTensorType>(type), groups,
          tensor::getMixedSizes(b, loc, tensor));
  if (!sizes)
    return {};
  return tensor::ExpandShapeOp::create(b, loc, type, tensor, groups, *sizes);
}

static Value collapse(OpBuilder &b, Location loc, Value tensor,
                      ArrayRef<ReassociationIndices> groups) {
  if (groups.size() ==
      static_cast<size_t>(cast<RankedTensorType>(tensor.getType()).getRank()))
    return tensor;
  return tensor::CollapseShapeOp::create(b, loc, tensor, groups);
}

Value fp8::reshapeDigits(OpBuilder &b, Location loc, const DigitTable &digits,
                         Value tensor, const Place &from, const Place &to,
                         RankedTensorType type) {
  Place source = digits.resolve(from), target = digits.resolve(to);
  Digits before = flatten(digits, source), after = flatten(digits, target);
  auto cast = [&](Value value) -> Value {
    return !value || !type || value.getType() == type
               ? value
               : b.createOrFold<tensor::CastOp>(loc, type, value);
  };
  // Loops may have extents that what they read has not.
  auto known = mlir::cast<RankedTensorType>(tensor.getType())
                   .clone(getExtents(digits, source));
  if (!tensor::CastOp::areCastCompatible(tensor.getType(), known))
    return {};
  if (tensor.getType() != known)
    tensor = tensor::CastOp::create(b, loc, known, tensor);
  if (source == target)
    return cast(tensor);
  // Dimensions of one element go first, and come last. A tensor of nothing else
  // is none that anybody attends to.
  if (before.empty() || before.size() != after.size())
    return {};
  Value value = collapse(b, loc, tensor, getCarriers(source));
  Place held = dropEmpty(source), wanted = dropEmpty(target);
  if (held != wanted) {
    value = expand(b, loc, value, getExtents(digits, toSingles(before)),
                   getGroups(held));
    if (!value)
      return {};
    if (before != after) {
      SmallVector<int64_t> permutation;
      for (unsigned digit : after)
        permutation.push_back(llvm::find(before, digit) - before.begin());
      SmallVector<OpFoldResult> sizes =
          applyPermutation(tensor::getMixedSizes(b, loc, value), permutation);
      Value init = tensor::EmptyOp::create(
          b, loc, sizes, getElementTypeOrSelf(value.getType()));
      value = linalg::TransposeOp::create(b, loc, value, init, permutation)
                  ->getResult(0);
    }
    value = collapse(b, loc, value, getGroups(wanted));
  }
  return cast(
      expand(b, loc, value, getExtents(digits, target), getCarriers(target)));
}

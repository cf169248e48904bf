//===- TensorMemory.cpp - Memory of tensors, before it exists -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Analysis/TensorMemory.h"
#include "fp8/IR/FP8Ops.h"
#include "fp8/IR/PackedCodes.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::fp8;

static bool isInMemory(Type type) { return isa<ShapedType, ScaledType>(type); }

bool fp8::isLarge(Type type) {
  if (auto scaled = dyn_cast<ScaledType>(type))
    type = scaled.getPayloadType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && (!tensor.hasStaticShape() || tensor.getNumElements() > 1);
}

std::optional<double> fp8::getBytes(Type type) {
  if (!isInMemory(type))
    return std::nullopt;
  double bytes = 0;
  auto add = [&](ShapedType part) {
    if (!part.hasStaticShape() || !part.getElementType().isIntOrFloat())
      return false;
    auto tensor = dyn_cast<RankedTensorType>(part);
    if (tensor)
      part = getStoredType(tensor);
    bytes += double(part.getNumElements()) *
             llvm::divideCeil(part.getElementTypeBitWidth(), 8);
    return true;
  };
  if (auto shaped = dyn_cast<ShapedType>(type))
    return shaped.hasRank() && add(shaped) ? std::optional(bytes)
                                           : std::nullopt;
  auto scaled = cast<ScaledType>(type);
  SmallVector<RankedTensorType> parts{scaled.getPayloadType(),
                                      scaled.getScaleInvType()};
  if (scaled.getHasTensorScale())
    parts.push_back(scaled.getTensorScaleInvType());
  // A single factor passes by what moves codes.
  llvm::erase_if(parts, [](Type part) { return !isLarge(part); });
  return llvm::all_of(parts, add) ? std::optional(bytes) : std::nullopt;
}

bool fp8::isViewOfTensor(Operation *op) {
  return isa<AssembleOp, DisassembleOp, tensor::CastOp, tensor::CollapseShapeOp,
             tensor::EmptyOp, tensor::ExpandShapeOp, tensor::ExtractSliceOp>(
      op);
}

std::optional<double> fp8::getMadeBytes(Operation *op) {
  double made = 0;
  for (Type type : op->getResultTypes()) {
    if (!isInMemory(type))
      continue;
    std::optional<double> bytes = getBytes(type);
    if (!bytes)
      return std::nullopt;
    made += *bytes;
  }
  return made;
}

Operation *fp8::getLastUser(Value value, Block &block) {
  Operation *last = nullptr;
  llvm::SetVector<Value> values;
  values.insert(value);
  for (size_t i = 0; i < values.size(); ++i)
    for (Operation *user : values[i].getUsers()) {
      if (isViewOfTensor(user))
        values.insert_range(user->getResults());
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      if (inBlock && (!last || last->isBeforeInBlock(inBlock)))
        last = inBlock;
    }
  return last;
}

/// What `value` is a view of, with all parts if it is scaled.
static void collectRoots(Value value, llvm::SetVector<Value> &roots) {
  Operation *op = value.getDefiningOp();
  if (!op || !isViewOfTensor(op)) {
    roots.insert(value);
    return;
  }
  for (Value operand : op->getOperands())
    if (isInMemory(operand.getType()))
      collectRoots(operand, roots);
}

std::optional<double> fp8::getFreedBytes(Operation *op) {
  llvm::SetVector<Value> used, roots;
  used.insert_range(op->getOperands());
  getUsedValuesDefinedAbove(op->getRegions(), used);
  for (Value value : used)
    if (isInMemory(value.getType()))
      collectRoots(value, roots);
  double freed = 0;
  for (Value root : roots) {
    Operation *definition = root.getDefiningOp();
    if (!definition || definition->getBlock() != op->getBlock() ||
        definition->hasTrait<OpTrait::ConstantLike>() ||
        getLastUser(root, *op->getBlock()) != op)
      continue;
    std::optional<double> bytes = getBytes(root.getType());
    if (!bytes)
      return std::nullopt;
    freed += *bytes;
  }
  return freed;
}

std::optional<MemoryProfile> MemoryProfile::get(Block &block) {
  MemoryProfile profile;
  for (Operation &op : block)
    profile.positions.try_emplace(&op, profile.positions.size());
  profile.allocated.assign(profile.positions.size(), 0);
  for (Operation &op : block) {
    if (isViewOfTensor(&op) || op.hasTrait<OpTrait::ConstantLike>())
      continue;
    for (Value result : op.getResults()) {
      if (!isInMemory(result.getType()))
        continue;
      std::optional<double> bytes = getBytes(result.getType());
      if (!bytes)
        return std::nullopt;
      Operation *last = getLastUser(result, block);
      profile.add(&op, last ? last->getNextNode() : op.getNextNode(), *bytes);
    }
  }
  return profile;
}

double MemoryProfile::getPeak() const {
  return allocated.empty() ? 0 : *llvm::max_element(allocated);
}

double MemoryProfile::getPeak(Operation *first, Operation *end) const {
  double most = 0;
  for (size_t i = positions.lookup(first); i < positions.lookup(end); ++i)
    most = std::max(most, allocated[i]);
  return most;
}

double MemoryProfile::getAllocated(Operation *op) const {
  return allocated[positions.lookup(op)];
}

void MemoryProfile::add(Operation *first, Operation *end, double bytes) {
  size_t last = end ? positions.lookup(end) : allocated.size();
  for (size_t i = positions.lookup(first); i < last; ++i)
    allocated[i] += bytes;
}

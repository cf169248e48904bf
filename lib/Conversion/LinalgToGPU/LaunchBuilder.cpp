//===- LaunchBuilder.cpp - Launches of loops ------------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchBuilder.h"
#include "fp8/GPU/IR/FP8GPUDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::fp8;

Value IndexBuilder::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value IndexBuilder::get(OpFoldResult value) {
  return getValueOrCreateConstantIndexOp(b, loc, value);
}

Value IndexBuilder::add(Value lhs, Value rhs) {
  return arith::AddIOp::create(b, loc, lhs, rhs);
}

Value IndexBuilder::multiply(Value lhs, Value rhs) {
  return arith::MulIOp::create(b, loc, lhs, rhs);
}

Value IndexBuilder::divide(Value lhs, Value rhs) {
  return arith::DivUIOp::create(b, loc, lhs, rhs);
}

Value IndexBuilder::isBelow(Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, lhs, rhs);
}

Value IndexBuilder::isAtMost(Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ule, lhs, rhs);
}

Value IndexBuilder::isZero(Value value) {
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, value,
                               constant(0));
}

void IndexBuilder::branch(Value condition, llvm::function_ref<void()> ifSo,
                          llvm::function_ref<void()> ifNot) {
  auto ifOp =
      scf::IfOp::create(b, loc, condition, /*withElseRegion=*/bool(ifNot));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(ifOp.thenBlock());
  ifSo();
  if (!ifNot)
    return;
  b.setInsertionPointToStart(ifOp.elseBlock());
  ifNot();
}

SmallVector<Value> IndexBuilder::loop(
    Value from, Value to, Value step, ValueRange carried,
    llvm::function_ref<SmallVector<Value>(Value, ValueRange)> inner) {
  auto forOp = scf::ForOp::create(b, loc, from, to, step, carried);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(forOp.getBody());
  SmallVector<Value> next =
      inner(forOp.getInductionVar(), forOp.getRegionIterArgs());
  if (!carried.empty())
    scf::YieldOp::create(b, loc, next);
  return llvm::to_vector_of<Value>(forOp.getResults());
}

SmallVector<Value> fp8::delinearize(OpBuilder &b, Location loc, Value index,
                                    ArrayRef<Value> sizes) {
  SmallVector<Value> indices(sizes.size());
  for (size_t dim = sizes.size(); dim-- > 1;) {
    indices[dim] = arith::RemUIOp::create(b, loc, index, sizes[dim]);
    index = arith::DivUIOp::create(b, loc, index, sizes[dim]);
  }
  if (!sizes.empty())
    indices[0] = index;
  return indices;
}

LaunchBuilder::Place LaunchBuilder::open(Location loc, StringRef name,
                                         Value blocks,
                                         ArrayRef<MemRefType> shared) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  auto symbol = [&](const Twine &text) {
    return FlatSymbolRefAttr::get(b.getContext(), text.str());
  };
  Value one = constant(1);
  SmallVector<Type> types(shared.begin(), shared.end());
  auto launch = gpu::LaunchOp::create(
      b, loc, blocks, one, one, constant(kBlockSize), one, one,
      /*dynamicSharedMemorySize=*/Value(), /*asyncTokenType=*/Type(),
      /*asyncDependencies=*/ValueRange(), types, TypeRange(), Value(), Value(),
      Value(), symbol(kKernelModuleName),
      symbol(name + "_" + Twine(numKernels++)));
  b.setInsertionPointToStart(&launch.getBody().front());
  gpu::TerminatorOp::create(b, loc);
  b.setInsertionPointToStart(&launch.getBody().front());
  return {launch.getBlockIds().x, launch.getThreadIds().x,
          llvm::to_vector_of<Value>(launch.getWorkgroupAttributions())};
}

SmallVector<Value> LaunchBuilder::build(Location loc, StringRef name,
                                        ArrayRef<OpFoldResult> sizes) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIndexOp::create(b, loc, value);
  };
  Value threads = constant(kBlockSize), count = constant(1);
  SmallVector<Value> extents;
  for (OpFoldResult size : sizes) {
    extents.push_back(getValueOrCreateConstantIndexOp(b, loc, size));
    count = arith::MulIOp::create(b, loc, count, extents.back());
  }
  Place place =
      open(loc, name, arith::CeilDivUIOp::create(b, loc, count, threads));
  Value index = arith::AddIOp::create(
      b, loc, arith::MulIOp::create(b, loc, place.block, threads),
      place.thread);
  Value inside =
      arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, index, count);
  auto ifOp = scf::IfOp::create(b, loc, inside, /*withElseRegion=*/false);
  b.setInsertionPointToStart(ifOp.thenBlock());
  return delinearize(b, loc, index, extents);
}

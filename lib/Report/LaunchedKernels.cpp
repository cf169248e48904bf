//===- LaunchedKernels.cpp - What a lowered program launches --------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LaunchedKernels.h"
#include "fp8/GPU/IR/FP8GPUOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::fp8;

using Kind = LaunchedKernel::Kind;

/// Stands in front of the number in the name of a location.
static constexpr StringLiteral kTagPrefix = "fp8-report-fusion:";

void fp8::tagOrigin(Operation *op, unsigned tag) {
  auto name = StringAttr::get(op->getContext(), kTagPrefix + Twine(tag));
  op->walk([&](Operation *inner) {
    inner->setLoc(NameLoc::get(name, inner->getLoc()));
  });
}

static SmallVector<unsigned> getTags(Location loc) {
  SmallVector<unsigned> tags;
  loc->walk([&](Location inner) {
    auto name = dyn_cast<NameLoc>(inner);
    unsigned tag;
    StringRef text = name ? name.getName().getValue() : StringRef();
    if (!text.consume_front(kTagPrefix) || !llvm::to_integer(text, tag))
      return WalkResult::advance();
    if (!llvm::is_contained(tags, tag))
      tags.push_back(tag);
    // What is inside is the program's own, whatever it is called.
    return WalkResult::skip();
  });
  return tags;
}

static LaunchedKernel makeKernel(Kind kind, Operation *op) {
  bool isConditional = !isa<FunctionOpInterface>(op->getParentOp());
  LaunchedKernel kernel(kind, op->getLoc(), isConditional);
  kernel.origins = getTags(op->getLoc());
  return kernel;
}

static LaunchedKernel getKernel(LaunchOp op) {
  LaunchedKernel kernel = makeKernel(Kind::Kernel, op);
  kernel.symbol = op.getKernel().getLeafReference().str();
  for (OpOperand &operand : op->getOpOperands()) {
    KernelArgumentAttr argument = op.getArgument(operand);
    if (!argument)
      continue;
    Type type = operand.get().getType();
    if (argument.getAccess() != KernelAccess::Write)
      kernel.reads.push_back(type);
    if (argument.getAccess() != KernelAccess::Read)
      kernel.writes.push_back(type);
  }
  return kernel;
}

static LaunchedKernel getKernel(linalg::LinalgOp op) {
  LaunchedKernel kernel = makeKernel(
      isa<linalg::FillOp>(op.getOperation()) ? Kind::Fill : Kind::Loop, op);
  llvm::SmallPtrSet<Value, 4> seen;
  for (OpOperand &operand : op->getOpOperands()) {
    Type type = operand.get().getType();
    if (!isa<MemRefType>(type))
      continue;
    // An operand twice is in the cache the second time.
    if (op.payloadUsesValueFromOperand(&operand) &&
        seen.insert(operand.get()).second)
      kernel.reads.push_back(type);
    if (op.isDpsInit(&operand))
      kernel.writes.push_back(type);
  }
  return kernel;
}

SmallVector<LaunchedKernel> fp8::getLaunchedKernels(Operation *function) {
  SmallVector<LaunchedKernel> kernels;
  function->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto launch = dyn_cast<LaunchOp>(op)) {
      kernels.push_back(getKernel(launch));
    } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
      kernels.push_back(getKernel(linalgOp));
      return WalkResult::skip();
    } else if (auto copy = dyn_cast<memref::CopyOp>(op)) {
      LaunchedKernel kernel = makeKernel(Kind::Copy, op);
      kernel.reads.push_back(copy.getSource().getType());
      kernel.writes.push_back(copy.getTarget().getType());
      kernels.push_back(std::move(kernel));
    } else if (auto store = dyn_cast<memref::StoreOp>(op)) {
      LaunchedKernel kernel = makeKernel(Kind::Loop, op);
      kernel.writes.push_back(MemRefType::get({1}, store.getValue().getType()));
      kernels.push_back(std::move(kernel));
    } else if (isa<scf::ForallOp>(op)) {
      LaunchedKernel kernel = makeKernel(Kind::Loop, op);
      kernel.hasAddresses = true;
      kernels.push_back(std::move(kernel));
      return WalkResult::skip();
    }
    return WalkResult::advance();
  });
  return kernels;
}

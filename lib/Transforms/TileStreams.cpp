//===- TileStreams.cpp - Passes over memory, a tile at a time -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StreamFunction.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-tile-streams"

namespace mlir::fp8 {
#define GEN_PASS_DEF_TILESTREAMSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

/// Whether one function computes both.
static bool areEqual(StreamOp a, StreamOp b) {
  return a->getOperandTypes() == b->getOperandTypes() &&
         a->getResultTypes() == b->getResultTypes() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

/// The same for equal ones.
static llvm::hash_code hash(StreamOp op) {
  llvm::hash_code result = llvm::hash_combine_range(op->getOperandTypes());
  for (Operation &inner : op.getBody().front())
    result = llvm::hash_combine(
        result, OperationEquivalence::computeHash(
                    &inner, OperationEquivalence::ignoreHashValue,
                    OperationEquivalence::ignoreHashValue,
                    OperationEquivalence::IgnoreLocations));
  return result;
}

namespace {
struct TileStreamsPass : fp8::impl::TileStreamsPassBase<TileStreamsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (elements < 1) {
      getOperation()->emitError("expected elements to be 1 or more, but got ")
          << elements.getValue();
      return signalPassFailure();
    }
    IRRewriter rewriter(&getContext());
    SymbolTable symbols(getOperation());
    SmallVector<StreamOp> streams;
    getOperation()->walk([&](StreamOp op) {
      if (op->getParentOfType<func::FuncOp>())
        streams.push_back(op);
    });
    // Layers of a model are the same again and again.
    DenseMap<llvm::hash_code, SmallVector<std::pair<StreamOp, func::FuncOp>>>
        known;
    SmallVector<StreamOp> tiled;
    for (StreamOp stream : streams) {
      auto &alike = known[hash(stream)];
      auto *equal = llvm::find_if(
          alike, [&](auto &other) { return areEqual(other.first, stream); });
      func::FuncOp function;
      if (equal != alike.end()) {
        function = equal->second;
      } else {
        std::string reason;
        FailureOr<StreamTiling> tiling =
            StreamTiling::get(stream, elements, reason);
        if (failed(tiling)) {
          LDBG() << "not cut: " << reason << ": " << stream.getLoc();
          ++numWhole;
          continue;
        }
        auto parent = stream->getParentOfType<func::FuncOp>();
        function = buildStreamFunction(rewriter, stream, *tiling,
                                       parent.getName() + "_stream");
        symbols.insert(function, std::next(Block::iterator(parent)));
        alike.push_back({stream, function});
        ++numFunctions;
      }
      rewriter.setInsertionPoint(stream);
      auto call = func::CallOp::create(rewriter, stream.getLoc(), function,
                                       stream.getInputs());
      rewriter.replaceAllUsesWith(stream->getResults(), call.getResults());
      tiled.push_back(stream);
      ++numTiled;
    }
    // They are compared with until the end.
    for (StreamOp stream : tiled)
      stream.erase();
  }
};
} // namespace

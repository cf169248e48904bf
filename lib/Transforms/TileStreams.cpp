//===- TileStreams.cpp - Passes over memory, a tile at a time -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EqualRegions.h"
#include "StreamFunction.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
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

namespace {
/// A function, and the first stream that it computes.
struct StreamFunction {
  StreamOp stream;
  StreamTiling tiling;
  func::FuncOp function;
};

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
    DenseMap<Region *, StreamFunction, EqualRegions> functions;
    SmallVector<StreamOp> tiled;
    for (StreamOp stream : streams) {
      auto it = functions.find(&stream.getBody());
      if (it == functions.end()) {
        std::string reason;
        FailureOr<StreamTiling> tiling =
            StreamTiling::get(stream, elements, reason);
        if (failed(tiling)) {
          LDBG() << "not cut: " << reason << ": " << stream.getLoc();
          ++numWhole;
          continue;
        }
        auto parent = stream->getParentOfType<func::FuncOp>();
        func::FuncOp function = buildStreamFunction(
            rewriter, stream, *tiling, parent.getName() + "_stream");
        symbols.insert(function, std::next(Block::iterator(parent)));
        it = functions
                 .insert({&stream.getBody(),
                          {stream, std::move(*tiling), function}})
                 .first;
        ++numFunctions;
      }
      rewriter.setInsertionPoint(stream);
      const StreamFunction &function = it->second;
      SmallVector<Value> operands(stream.getInputs());
      llvm::append_range(operands,
                         createStreamMemory(rewriter, function.stream,
                                            function.tiling, operands));
      auto call = func::CallOp::create(rewriter, stream.getLoc(),
                                       function.function, operands);
      rewriter.replaceAllUsesWith(stream->getResults(), call.getResults());
      tiled.push_back(stream);
      ++numTiled;
    }
    // They are keys until the end.
    for (StreamOp stream : tiled)
      stream.erase();
  }
};
} // namespace

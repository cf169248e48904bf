//===- TileFusions.cpp - Passes over memory, a tile at a time -------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FusionFunction.h"
#include "Utils/EqualRegions.h"
#include "fp8/Transforms/Passes.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "fp8-tile-fusions"

namespace mlir::fp8 {
#define GEN_PASS_DEF_TILEFUSIONSPASS
#include "fp8/Transforms/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// A function, and the first fusion that it computes.
struct FusionFunction {
  FusionOp fusion;
  FusionTiling tiling;
  func::FuncOp function;
};

struct TileFusionsPass : fp8::impl::TileFusionsPassBase<TileFusionsPass> {
  using Base::Base;

  void runOnOperation() override {
    if (elements < 1) {
      getOperation()->emitError("expected elements to be 1 or more, but got ")
          << elements.getValue();
      return signalPassFailure();
    }
    IRRewriter rewriter(&getContext());
    SymbolTable symbols(getOperation());
    SmallVector<FusionOp> fusions;
    getOperation()->walk([&](FusionOp op) {
      if (op->getParentOfType<func::FuncOp>())
        fusions.push_back(op);
    });
    // Layers of a model are the same again and again.
    DenseMap<Region *, FusionFunction, EqualRegions> functions;
    SmallVector<FusionOp> tiled;
    for (FusionOp fusion : fusions) {
      auto it = functions.find(&fusion.getBody());
      if (it == functions.end()) {
        std::string reason;
        FailureOr<FusionTiling> tiling =
            FusionTiling::get(fusion, elements, reason);
        if (failed(tiling)) {
          LDBG() << "not cut: " << reason << ": " << fusion.getLoc();
          ++numWhole;
          continue;
        }
        auto parent = fusion->getParentOfType<func::FuncOp>();
        func::FuncOp function = buildFusionFunction(
            rewriter, fusion, *tiling, parent.getName() + "_fusion");
        symbols.insert(function, std::next(Block::iterator(parent)));
        it = functions
                 .insert({&fusion.getBody(),
                          {fusion, std::move(*tiling), function}})
                 .first;
        ++numFunctions;
      }
      rewriter.setInsertionPoint(fusion);
      const FusionFunction &function = it->second;
      SmallVector<Value> operands(fusion.getInputs());
      llvm::append_range(operands,
                         createFusionMemory(rewriter, function.fusion,
                                            function.tiling, operands));
      auto call = func::CallOp::create(rewriter, fusion.getLoc(),
                                       function.function, operands);
      rewriter.replaceAllUsesWith(fusion->getResults(), call.getResults());
      tiled.push_back(fusion);
      ++numTiled;
    }
    // They are keys until the end.
    for (FusionOp fusion : tiled)
      fusion.erase();
  }
};
} // namespace

//===- EndlessCalls.cpp - Calls that never return -------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EndlessCalls.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::fp8;

/// The calls that each call of a function makes: those of its first block.
static SmallVector<func::CallOp> getCertainCalls(func::FuncOp function) {
  if (function.isExternal())
    return {};
  return llvm::to_vector(function.front().getOps<func::CallOp>());
}

LogicalResult fp8::checkEndlessCalls(ModuleOp module) {
  SymbolTable symbols(module);
  enum class State { Entered, Returns };
  DenseMap<func::FuncOp, State> states;
  struct Frame {
    func::FuncOp function;
    SmallVector<func::CallOp> left;
  };
  // Depth first, without recursion of its own.
  for (auto root : module.getOps<func::FuncOp>()) {
    if (!states.try_emplace(root, State::Entered).second)
      continue;
    SmallVector<Frame> stack = {{root, getCertainCalls(root)}};
    while (!stack.empty()) {
      if (stack.back().left.empty()) {
        states[stack.back().function] = State::Returns;
        stack.pop_back();
        continue;
      }
      func::CallOp call = stack.back().left.pop_back_val();
      auto callee = symbols.lookup<func::FuncOp>(call.getCallee());
      if (!callee)
        continue;
      auto [state, isNew] = states.try_emplace(callee, State::Entered);
      if (isNew)
        stack.push_back({callee, getCertainCalls(callee)});
      else if (state->second == State::Entered)
        return call.emitOpError("expected a call that may end, but '")
               << callee.getName() << "' calls itself whatever its arguments "
               << "are";
    }
  }
  return success();
}

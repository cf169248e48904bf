//===- CheckStack.cpp - Calls that go too deep ----------------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../GPUToRuntime/RuntimeCalls.h"
#include "fp8/Conversion/Passes.h"
#include "llvm/ADT/SCCIterator.h"

namespace mlir::fp8 {
#define GEN_PASS_DEF_CHECKSTACKPASS
#include "fp8/Conversion/Passes.h.inc"
} // namespace mlir::fp8

using namespace mlir;
using namespace mlir::fp8;

namespace {
/// A function, and those that it names: a loop over threads is given the one
/// that it calls.
struct Node {
  LLVM::LLVMFuncOp function;
  SmallVector<Node *> callees;
};

struct CallGraph {
  explicit CallGraph(ModuleOp module);

  std::vector<Node> nodes;
  /// Calls all functions.
  Node root;
};
} // namespace

template <>
struct llvm::GraphTraits<CallGraph *> {
  using NodeRef = Node *;
  using ChildIteratorType = SmallVector<Node *>::iterator;
  static NodeRef getEntryNode(CallGraph *graph) { return &graph->root; }
  static ChildIteratorType child_begin(NodeRef node) {
    return node->callees.begin();
  }
  static ChildIteratorType child_end(NodeRef node) {
    return node->callees.end();
  }
};

CallGraph::CallGraph(ModuleOp module) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (!function.isExternal())
      nodes.push_back({function, {}});
  DenseMap<StringAttr, Node *> places;
  for (Node &node : nodes) {
    places[node.function.getSymNameAttr()] = &node;
    root.callees.push_back(&node);
  }
  for (Node &node : nodes) {
    auto uses = SymbolTable::getSymbolUses(&node.function.getBody());
    if (!uses)
      continue;
    for (SymbolTable::SymbolUse use : *uses)
      if (Node *callee = places.lookup(use.getSymbolRef().getRootReference()))
        node.callees.push_back(callee);
  }
}

namespace {
struct CheckStackPass : fp8::impl::CheckStackPassBase<CheckStackPass> {
  using Base::Base;
  void runOnOperation() override;
};
} // namespace

/// Without tail calls, which would need no stack and never find its end. Nor is
/// the function inlined: LLVM would look at all of the cycle again after each.
static void checkStack(LLVM::LLVMFuncOp function, RuntimeTexts &texts) {
  auto b =
      ImplicitLocOpBuilder::atBlockBegin(function.getLoc(), &function.front());
  Value name =
      LLVM::AddressOfOp::create(b, getLLVMType<const char *>(b.getContext()),
                                texts.get(b, b.getLoc(), function.getName()));
  createRuntimeCall(b, runtime::fp8rt_program_check_stack, name);
  SmallVector<Attribute> attributes;
  if (ArrayAttr others = function.getPassthroughAttr())
    llvm::append_range(attributes, others);
  attributes.push_back(b.getStrArrayAttr({"disable-tail-calls", "true"}));
  attributes.push_back(b.getStringAttr("noinline"));
  function.setPassthroughAttr(b.getArrayAttr(attributes));
}

void CheckStackPass::runOnOperation() {
  ModuleOp module = getOperation();
  CallGraph graph(module);
  SmallVector<LLVM::LLVMFuncOp> cyclic;
  for (auto it = llvm::scc_begin(&graph); !it.isAtEnd(); ++it)
    if (it.hasCycle())
      for (Node *node : *it)
        cyclic.push_back(node->function);
  if (cyclic.empty())
    return;
  if (failed(verifyRuntimeSymbol(module, runtime::fp8rt_program_check_stack)))
    return signalPassFailure();
  RuntimeTexts texts(module);
  for (LLVM::LLVMFuncOp function : cyclic)
    checkStack(function, texts);
}

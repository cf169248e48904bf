//===- MLIR.cpp - Declarations of the runtime's functions -----------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fp8/Runtime/ABI/MLIR.h"

using namespace mlir;

LogicalResult fp8::detail::verifyRuntimeSymbol(ModuleOp module, StringRef name,
                                               LLVM::LLVMFunctionType type) {
  Operation *symbol = module.lookupSymbol(name);
  if (!symbol)
    return success();
  auto function = dyn_cast<LLVM::LLVMFuncOp>(symbol);
  if (function && function.isExternal() && function.getFunctionType() == type)
    return success();
  return symbol->emitError("expected '")
         << name << "' to be the runtime's function, " << type;
}

Value fp8::detail::createRuntimeCall(ImplicitLocOpBuilder &b, StringRef name,
                                     LLVM::LLVMFunctionType type,
                                     ValueRange arguments) {
  Operation *parent = b.getInsertionBlock()->getParentOp();
  auto module = parent->getParentOfType<ModuleOp>();
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!callee) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(module.getBody());
    callee = LLVM::LLVMFuncOp::create(b, name, type);
  }
  auto call = LLVM::CallOp::create(b, callee, arguments);
  return call.getNumResults() ? call.getResult() : Value();
}

FailureOr<func::FuncOp>
fp8::detail::declareRuntimeFunction(OpBuilder &b, Operation *op, StringRef name,
                                    TypeRange parameters) {
  constexpr StringLiteral prefix = "_mlir_ciface_";
  bool hasCInterface = name.consume_front(prefix);
  auto type = b.getFunctionType(parameters, {});
  Operation *table = SymbolTable::getNearestSymbolTable(op);
  if (Operation *symbol = SymbolTable::lookupSymbolIn(table, name)) {
    auto function = dyn_cast<func::FuncOp>(symbol);
    if (!function || !function.isExternal() ||
        function.getFunctionType() != type)
      return failure();
    return function;
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(&table->getRegion(0).front());
  auto function = func::FuncOp::create(b, op->getLoc(), name, type);
  function.setPrivate();
  if (hasCInterface)
    function->setAttr(LLVM::LLVMDialect::getEmitCWrapperAttrName(),
                      b.getUnitAttr());
  return function;
}

//===- MatmulFunction.cpp - A matmul kernel's function --------------------===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MatmulFunction.h"

using namespace mlir;
using namespace mlir::fp8;

/// The function, with the builder at its start.
static LLVM::LLVMFuncOp createFunction(OpBuilder &builder, Location loc,
                                       const MatmulSignature &matmul,
                                       StringRef name) {
  LLVM::LLVMFuncOp function = matmul.signature.create(
      builder, loc, name, matmul.launch, KernelMath::Approximate);
  // Without it ptxas does not know how many registers a thread has at entry,
  // and ignores setmaxnreg.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    builder.getI32IntegerAttr(1));
  builder.setInsertionPointToStart(function.addEntryBlock(builder));
  return function;
}

MatmulFunction::MatmulFunction(OpBuilder &builder, Location loc,
                               const MatmulSpec &spec, const MatmulForm &form,
                               StringRef name)
    : guard(builder), matmul(builder.getContext(), spec, form),
      function(createFunction(builder, loc, matmul, name)), b(loc, builder),
      shared(LLVM::AddressOfOp::create(
          b, LLVM::LLVMPointerType::get(builder.getContext(), 3),
          KernelSignature::kSharedName)) {}

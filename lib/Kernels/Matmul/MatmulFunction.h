//===- MatmulFunction.h - A matmul kernel's function ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_MATMUL_MATMULFUNCTION_H
#define FP8_LIB_KERNELS_MATMUL_MATMULFUNCTION_H

#include "../Blocks/KernelBuilder.h"
#include "MatmulSignature.h"
#include "fp8/Kernels/Matmul/MatmulSpec.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {

/// A matmul kernel's function, whose body is to be built; `builder` is where it
/// was once this is gone.
class MatmulFunction {
public:
  MatmulFunction(OpBuilder &builder, Location loc, const MatmulSpec &spec,
                 const MatmulForm &form, StringRef name);

  llvm::StringMap<Value> getParams() {
    return matmul.signature.getParams(function);
  }

private:
  OpBuilder::InsertionGuard guard;
  MatmulSignature matmul;

public:
  LLVM::LLVMFuncOp function;
  KernelBuilder b;
  /// Dynamic shared memory.
  Value shared;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_MATMUL_MATMULFUNCTION_H

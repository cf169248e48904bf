//===- ConstantProgram.h - Computing values while compiling -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_PIPELINES_CONSTANTPROGRAM_H
#define FP8_LIB_PIPELINES_CONSTANTPROGRAM_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace mlir::fp8 {

/// The tensors that a value is passed as: the parts of a scaled value, a tensor
/// itself, a scalar as a tensor of rank 0.
SmallVector<RankedTensorType> getPartTypes(Type type);

/// Bytes of a value of `type` in memory; nothing if it does not consist of
/// static tensors whose elements take whole bytes.
std::optional<int64_t> getByteSize(Type type);

/// Whether the program can be given `constant`, a tensor whose bytes are there.
bool isArgument(arith::ConstantOp constant);

/// Operations that follow from constants.
struct ConstantComputation {
  /// Definitions before uses. All operands are results of these operations.
  SmallVector<Operation *> ops;
  /// Results of `ops` that are asked for.
  SmallVector<Value> results;
};

/// Computations as functions of their constant tensors, in a module to be
/// lowered and run. Equal ones share a function, whatever their constants are:
/// a model has many weights of few shapes. And the compiler never looks at a
/// weight.
class ConstantProgram {
public:
  /// The functions go into `module`, which is empty.
  explicit ConstantProgram(ModuleOp module) : module(module) {}

  void add(const ConstantComputation &computation);
  size_t getNumFunctions() const { return functions.size(); }

  /// Compiles the module, which has been lowered to the LLVM dialect, for this
  /// machine and runs it. Returns for each computation the parts of its
  /// results, one after the other.
  llvm::Expected<SmallVector<SmallVector<TypedAttr>>> run();

private:
  /// One execution of a function; computations with equal arguments share it.
  struct Call {
    size_t function;
    SmallVector<TypedAttr> arguments;
    SmallVector<RankedTensorType> results;
  };

  ModuleOp module;
  SmallVector<Operation *> functions;
  SmallVector<Call> calls;
  /// For each computation the number of its call.
  SmallVector<size_t> computations;
};

} // namespace mlir::fp8

#endif // FP8_LIB_PIPELINES_CONSTANTPROGRAM_H

//===- Signature.h - What a program takes and gives -------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_PROGRAM_SIGNATURE_H
#define FP8_PROGRAM_SIGNATURE_H

#include "fp8/Runtime/Safetensors.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::func {
class FuncOp;
} // namespace mlir::func

namespace mlir::fp8 {

/// An argument or result of the entry function, as the user wrote it: the
/// pipeline leaves nothing of its names and tensors.
struct ValueInfo {
  std::string name;
  /// For as long as its context is there, which programs outlive.
  Type type;
  fp8rt::DType dtype;
  /// `ShapedType::kDynamic` for `?`; empty for a scalar. In bytes where two
  /// codes share one.
  SmallVector<int64_t> shape;
  /// Properties of the type.
  bool shaped = false, memRef = false;

  bool isShaped() const { return shaped; }
  bool isMemRef() const { return memRef; }
  Type getElementType() const { return getElementTypeOrSelf(type); }
};

struct Signature {
  std::string entry;
  SmallVector<ValueInfo> arguments;
  SmallVector<ValueInfo> results;
  /// Whether a scaling state comes behind the arguments as they are written;
  /// compiling adds one too.
  bool takesState = false;

  /// What is written: the results or, for a program that has none, the memrefs
  /// that it may have changed.
  SmallVector<ValueInfo> getOutputs() const;
};

/// Text such as "F32 [4, ?]"; "F4 [4, 32]" for 4 x 16 bytes of codes.
std::string describe(fp8rt::DType dtype, ArrayRef<int64_t> shape);

/// Whether `function` is one of the program: public, with a body, and not the
/// one that fp8-build-state-update has added.
bool isEntry(func::FuncOp function);

/// The function called `name` or, if `name` is empty, the only entry. Reports
/// an error if there is none.
FailureOr<func::FuncOp> findEntry(ModuleOp module, StringRef name);

/// A info of that name and type; failure for a type that cannot be passed.
FailureOr<ValueInfo> getValueInfo(StringRef name, Type type);

/// Names and types of the entry. Reports types that cannot be passed through a
/// file.
FailureOr<Signature> getSignature(func::FuncOp entry);

} // namespace mlir::fp8

#endif // FP8_PROGRAM_SIGNATURE_H

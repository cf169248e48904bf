//===- Toy.h - Kernels and an architecture from outside ---------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What another project would write: an operation, what its kernel computes, how
// kernels of that kind are built, and a GPU to build them for. It includes
// nothing but what is installed, and no library of ours knows of it.
//
//===----------------------------------------------------------------------===//

#ifndef TOY_TOY_H
#define TOY_TOY_H

#include "fp8/Kernels/Architecture.h"
#include "fp8/Kernels/KernelOpInterface.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "ToyDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ToyAttrs.h.inc"

#define GET_OP_CLASSES
#include "ToyOps.h.inc"

namespace toy {

/// What a toy.scale's kernel is made from.
struct ScaleSpec : mlir::fp8::KernelSpec {
  static constexpr llvm::StringLiteral kKind = "toy_scale";

  ScaleSpec(mlir::RankedTensorType type) : KernelSpec(kKind), type(type) {}
  static bool classof(const KernelSpec *spec) {
    return spec->getKind() == kKind;
  }

  bool hasKnownExtents() const override { return type.hasStaticShape(); }
  /// "f32 4x8".
  std::string describe() const override;

  mlir::RankedTensorType type;
};

std::unique_ptr<mlir::fp8::KernelGenerator> createScaleGenerator();

/// Adds a GPU that this project has no kernels for, with those of toy.scale.
/// Before contexts are made.
void registerToyArchitecture();

} // namespace toy

#endif // TOY_TOY_H

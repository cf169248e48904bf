//===- TargetLookup.h - The architecture of a module ------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_TARGETLOOKUP_H
#define FP8_LIB_KERNELS_TARGETLOOKUP_H

#include "fp8/IR/FP8Ops.h"
#include "fp8/Kernels/Architecture.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::fp8 {

struct MatmulSpec;

struct KernelTarget {
  GPUTargetAttr attribute;
  const Architecture *architecture;
};

/// What the kernels of `module` are for; reports an error if nobody has said
/// so, or of a chip that there is no architecture for.
FailureOr<KernelTarget> lookupTarget(ModuleOp module);

/// What kernels for `chip` would be for: the target of `module` if it has one.
/// Reports an error of a chip that there is no architecture for.
FailureOr<KernelTarget> lookupChip(ModuleOp module, StringRef chip);

/// A kernel that an architecture has, and what takes its config.
struct SelectedKernel {
  const KernelGenerator *generator;
  KernelConfigAttrInterface config;

  /// What it is expected to take, with usual extents in place of unknown ones.
  double getCost(const MatmulSpec &spec, const KernelTarget &target) const;
};

/// What selection takes for `spec`; fails, with the reason, if there is no
/// kernel.
FailureOr<SelectedKernel> selectKernel(const KernelSpec &spec,
                                       const KernelTarget &target,
                                       std::string &reason);

/// Whether a kernel for `target` computes what `spec` says; says why if none
/// does.
bool hasKernel(const KernelSpec &spec, const KernelTarget &target,
               std::string &reason);

/// Whether a kernel for `target` computes `op`, any matmul.
bool hasKernel(Operation *op, const KernelTarget &target);

/// Whether that kernel has the tensor cores multiply the factors of blocks,
/// which they do as fast as codes.
bool multipliesFactors(Operation *op, const KernelTarget &target);

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_TARGETLOOKUP_H

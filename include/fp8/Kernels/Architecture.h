//===- Architecture.h - The GPUs that kernels are built for -----*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_ARCHITECTURE_H
#define FP8_KERNELS_ARCHITECTURE_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "fp8/IR/TensorCoreAccumulation.h"
#include "fp8/Kernels/KernelSpec.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringMap.h"

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace mlir::fp8 {

/// What builds the kernels of one kind for one architecture. Generators know
/// the spec and the configs of their kind; who calls them knows neither.
class KernelGenerator {
public:
  virtual ~KernelGenerator();

  /// The configs worth trying for `spec`, best first where nothing is known of
  /// its extents; each fits. `exhaustive` adds those that differ in decisions
  /// which selection makes by rule, for tuning.
  virtual SmallVector<KernelConfigAttrInterface>
  getCandidates(const KernelSpec &spec, GPUTargetAttr target,
                bool exhaustive = false) const = 0;

  /// Fails, with the reason, if a kernel for `spec` cannot be built so.
  virtual LogicalResult checkFit(const KernelSpec &spec,
                                 KernelConfigAttrInterface config,
                                 GPUTargetAttr target,
                                 std::string &reason) const = 0;

  /// An estimate of the time that the kernel takes, in clocks, for a spec whose
  /// extents are known. Good for comparing configs of one spec.
  virtual double getCost(const KernelSpec &spec,
                         KernelConfigAttrInterface config,
                         GPUTargetAttr target) const = 0;

  /// The config to build with; fails, with the reason, if none fits. By default
  /// the candidate of least cost, or the first if not all extents are known.
  virtual FailureOr<KernelConfigAttrInterface>
  select(const KernelSpec &spec, GPUTargetAttr target,
         std::string &reason) const;

  /// How such a kernel adds up products, for CPUs that do the same; nothing of
  /// kernels that have none, which is what others need not say.
  virtual std::optional<TensorCoreAccumulation>
  getSums(const KernelSpec &spec, KernelConfigAttrInterface config) const {
    return std::nullopt;
  }

  /// What the program should be told of such a kernel when it is selected, such
  /// as what its operands cost it; empty for nothing.
  virtual std::string getRemark(const KernelSpec &spec,
                                KernelConfigAttrInterface config,
                                GPUTargetAttr target) const {
    return "";
  }

  /// What selection would take for an invariant operation that were not, and
  /// what its own config costs beside it; empty for nothing.
  virtual std::string describeInvariance(const KernelSpec &spec,
                                         KernelConfigAttrInterface config,
                                         GPUTargetAttr target) const {
    return "";
  }

  /// What tells kernels of different specs apart beside the config, a part of
  /// their names: letters, digits and underscores. Need not tell all.
  virtual std::string getLabel(const KernelSpec &spec) const = 0;

  /// Builds the kernel at the builder's insertion point, in a gpu.module, as
  /// the function `name` with the attribute `fp8_gpu.launch`; fails, with the
  /// reason, if it cannot.
  virtual FailureOr<LLVM::LLVMFuncOp>
  build(OpBuilder &builder, Location loc, const KernelSpec &spec,
        KernelConfigAttrInterface config, GPUTargetAttr target, StringRef name,
        std::string &reason) const = 0;
};

/// A GPU architecture: its chip, and a generator for each kind of kernel that
/// it has.
class Architecture {
public:
  explicit Architecture(StringRef chip) : chip(chip) {}
  virtual ~Architecture();

  StringRef getChip() const { return chip; }
  /// The GPU that is meant where nobody says otherwise.
  virtual GPUTargetAttr getTarget(MLIRContext *context) const = 0;
  /// Whether GPUs of later architectures run its kernels, as PTX that their
  /// drivers assemble.
  virtual bool isPortable() const { return false; }
  /// Adds the dialects that its configs are attributes of.
  virtual void registerDialects(DialectRegistry &registry) const {}

  void addGenerator(StringRef kind, std::unique_ptr<KernelGenerator> generator);
  /// What builds kernels of the spec's kind; null, with the reason, if nothing
  /// does.
  const KernelGenerator *getGenerator(const KernelSpec &spec,
                                      std::string &reason) const;

private:
  std::string chip;
  llvm::StringMap<std::unique_ptr<KernelGenerator>> generators;
};

/// Adds an architecture to those that programs can be compiled for; the first
/// of a chip stays. Before any program is compiled.
void registerArchitecture(std::unique_ptr<Architecture> architecture);

/// Null if there is none for the chip.
const Architecture *lookupArchitecture(StringRef chip);

/// The chips, in the order in which they were registered.
SmallVector<StringRef> getArchitectureChips();

/// The chip of the portable architecture; empty if there is none.
StringRef getPortableChip();

/// What architectures and kinds of kernels need in a context: dialects of
/// configs, and the interface of operations that kernels compute.
void registerKernelDialects(DialectRegistry &registry);

/// Registers the architectures of this project. May be called again.
void registerAllArchitectures();

} // namespace mlir::fp8

#endif // FP8_KERNELS_ARCHITECTURE_H

//===- KernelSignature.h - What a kernel takes ------------------*- C++ -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_LIB_KERNELS_BLOCKS_KERNELSIGNATURE_H
#define FP8_LIB_KERNELS_BLOCKS_KERNELSIGNATURE_H

#include "fp8/GPU/IR/FP8GPUAttrs.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/StringMap.h"

namespace mlir::fp8 {

/// Whether kernels of the chip can begin while the one before them ends, and
/// wait for it (PTX ISA, griddepcontrol).
inline bool hasDependentLaunches(GPUTargetAttr target) {
  return target.getComputeCapability() >= 90;
}
/// Whether blocks of a launch can be clusters.
inline bool hasClusters(GPUTargetAttr target) {
  return target.getComputeCapability() >= 90;
}

/// The parameters of a kernel by name, and where each comes from when it is
/// launched; then the launch, and the function. Arguments and extents come
/// first.
class KernelSignature {
public:
  KernelSignature(MLIRContext *context, ArrayRef<KernelArgumentAttr> arguments);

  /// Dimension `dim` of an argument as a symbol of expressions.
  AffineExpr addExtent(StringRef name, StringRef argument, int64_t dim);
  /// Device memory for the time of the launch.
  int64_t addWorkspace(AffineExpr bytes, bool zero);

  //===--- Parameters -----------------------------------------------------===//

  void addTensorMap(const Twine &name, StringRef argument,
                    ArrayRef<int64_t> box, int64_t swizzle, int64_t l2,
                    std::optional<int64_t> tail = std::nullopt);
  void addPointer(const Twine &name, StringRef argument);
  void addStride(const Twine &name, StringRef argument, int64_t dim);
  void addValue(const Twine &name, AffineExpr value, unsigned width);
  void addCapture(const Twine &name, Type type);
  void addScratch(const Twine &name, int64_t workspace);

  bool hasArgument(StringRef name) const { return numbers.contains(name); }

  //===--- The kernel -----------------------------------------------------===//

  /// What is left to say of the launch; see #fp8_gpu.launch.
  struct Launch {
    SmallVector<AffineExpr> grid;
    int64_t block, cluster = 1, sharedBytes = 0, resident = 0;
    bool overlap = false;
    AffineExpr flops = {};
  };
  /// The function, empty, with the attributes that the launch and the code
  /// generator want; and in the module around it, if the launch asks for any,
  /// dynamic shared memory, aligned to 1024 bytes.
  LLVM::LLVMFuncOp create(OpBuilder &builder, Location loc, StringRef name,
                          const Launch &launch, KernelMath math) const;
  /// The parameters of a function that `create` made, by name.
  llvm::StringMap<Value> getParams(LLVM::LLVMFuncOp function) const;

  /// Name of the dynamic shared memory.
  static constexpr StringLiteral kSharedName = "fp8_shared";

private:
  struct Param {
    std::string name;
    Type type;
    Attribute source;
  };
  void add(const Twine &name, Type type, Attribute source);
  int64_t getNumber(StringRef argument) const;
  AffineMapAttr getMap(ArrayRef<AffineExpr> results) const;
  LaunchAttr getLaunch(const Launch &launch) const;

  MLIRContext *context;
  SmallVector<Attribute> arguments, extents, workspaces;
  SmallVector<std::pair<AffineExpr, bool>> spaces;
  llvm::StringMap<int64_t> numbers;
  /// Maps are made when all extents are known.
  SmallVector<std::pair<Param, AffineExpr>> params;
  int64_t numCaptures = 0;
};

} // namespace mlir::fp8

#endif // FP8_LIB_KERNELS_BLOCKS_KERNELSIGNATURE_H

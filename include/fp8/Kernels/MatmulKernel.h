//===- MatmulKernel.h - Generated matmul kernels and their interface -*- C++
//-*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_KERNELS_MATMULKERNEL_H
#define FP8_KERNELS_MATMULKERNEL_H

#include "fp8/Kernels/MatmulSpec.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

namespace mlir::fp8 {

/// One parameter of a kernel: its name, as in docs/Kernels.md, and its type.
/// Tensor maps are 128 bytes by value.
struct KernelParam {
  std::string name;
  Type type;
  bool isTensorMap = false;
};

/// Where a matmul kernel keeps what in shared memory, and how it is launched.
/// Offsets are in bytes; the ring's operands are 1024-byte aligned, as the
/// 128-byte swizzle repeats after 8 rows of 128 bytes.
struct MatmulLayout {
  int64_t rowsBytes, colsBytes;
  int64_t rowScales = 0, colScales = 0;
  int64_t offsetRows, offsetCols, offsetStaging, offsetRowScales,
      offsetColScales, offsetBarriers;
  int64_t sharedBytes;
  int64_t threads;
  /// Registers of a producer and of a consumer thread after setmaxnreg.
  int64_t producerRegisters, consumerRegisters;
  /// Extent in bytes along N of one bulk tensor store, 64 rows high; 0 with
  /// direct stores.
  int64_t storeBytes = 0;
  /// Buffers of one consumer that such stores are made from.
  int64_t stagingBuffers = 2;

  /// Shared memory and registers of the kernel; says why if the config does not
  /// fit the spec on the target.
  static FailureOr<MatmulLayout>
  get(const MatmulSpec &spec, GemmConfigAttr config, std::string &reason);

private:
  /// Offsets, from the sizes.
  void place(GemmConfigAttr config);
};

/// The parameters of the kernel, in order.
SmallVector<KernelParam> getMatmulParams(MLIRContext *context,
                                         const MatmulSpec &spec,
                                         GemmConfigAttr config);

/// e4m3_e4m3_bf16_tensor_tensor_fast: types of A, B and the result, factors,
/// accumulation.
std::string getMatmulTypesName(const MatmulSpec &spec);

/// fp8_matmul_sm90a_e4m3_e4m3_bf16_128x256_s4...: unique among kernels without
/// epilogues.
std::string getMatmulKernelName(const MatmulSpec &spec, GemmConfigAttr config);

/// Attributes of the kernel function for whoever launches it: see
/// docs/Kernels.md.
DictionaryAttr getMatmulLaunchInfo(MLIRContext *context, const MatmulSpec &spec,
                                   GemmConfigAttr config,
                                   const MatmulLayout &layout);

/// Builds the sm_90a kernel at the builder's insertion point, in a gpu.module.
FailureOr<LLVM::LLVMFuncOp>
buildMatmulSM90(OpBuilder &builder, Location loc, const MatmulSpec &spec,
                GemmConfigAttr config, StringRef name, std::string &reason);

} // namespace mlir::fp8

#endif // FP8_KERNELS_MATMULKERNEL_H
